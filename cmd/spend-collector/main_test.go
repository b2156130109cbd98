package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is written by the program and read by the test.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

const (
	masterKey = "sk-master-0123456789"
	password  = "hunter2hunter2"
	// Nobody listens on port 1.
	deadURL = "postgres://penstock:" + password + "@127.0.0.1:1/penstock"
)

// execute runs the program with an environment of its own.
func execute(ctx context.Context, out *output, env map[string]string, args ...string) error {
	cmd := command(func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	cmd.SetArgs(args)
	cmd.SetOut(out)
	cmd.SetErr(out)
	return cmd.ExecuteContext(ctx)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "config.yaml")
	yaml := "model_list:\n  - model_name: m\n    litellm_params: {model: mock/m}\n" +
		"general_settings:\n  master_key: " + masterKey + "\n  database_url: " + deadURL + "\n"
	if err := os.WriteFile(config, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	both := env("DATABASE_URL", deadURL, "LITELLM_MASTER_KEY", masterKey)
	for _, c := range []struct {
		why  string
		env  map[string]string
		args []string
		err  string // part of it; empty: good
	}{
		{"all from the environment", both, nil, ""},
		{"the other name of the master key", env("DATABASE_URL", deadURL, "PENSTOCK_MASTER_KEY", masterKey), nil, ""},
		{"the flag's database", env("LITELLM_MASTER_KEY", masterKey), []string{"--database-url", deadURL}, ""},
		{"all from the file", nil, []string{"--config", config}, ""},
		{"no database", env("LITELLM_MASTER_KEY", masterKey), nil, "DATABASE_URL"},
		{"no master key", env("DATABASE_URL", deadURL), nil, "LITELLM_MASTER_KEY"},
		{"not a database", env("DATABASE_URL", "postgres://u:"+password+"@h:port/x", "LITELLM_MASTER_KEY", masterKey), nil, "--database-url"},
		{"a file that is not there", both, []string{"--config", config + ".not"}, "cannot read the configuration"},
		{"a ttl that no worker keeps up with", both, []string{"--ttl", "1s"}, "--ttl"},
		{"a ttl without end", both, []string{"--ttl", "48h"}, "--ttl"},
		{"no connection", both, []string{"--pool-size", "0"}, "--pool-size"},
		{"records that go before they come", both, []string{"--keep-days", "-1"}, "--keep-days"},
		{"negative grace", both, []string{"--grace", "-1s"}, "--grace"},
		{"the master key is no flag", both, []string{"--master-key", "x"}, "unknown flag"},
		{"no arguments", both, []string{"start"}, "unknown command"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			var out output
			err := execute(t.Context(), &out, c.env, append(c.args, "--check")...)
			switch {
			case c.err == "" && (err != nil || !strings.Contains(out.String(), "good")):
				t.Errorf("%v %s", err, out.String())
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("error %v does not name %s", err, c.err)
			}
			wantNoSecrets(t, out.String(), err)
		})
	}
}

func wantNoSecrets(t *testing.T, out string, err error) {
	t.Helper()
	if err != nil {
		out += err.Error()
	}
	for _, secret := range []string{password, masterKey} {
		if strings.Contains(out, secret) {
			t.Errorf("a secret was printed: %s", out)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var out output
	if err := execute(t.Context(), &out, map[string]string{"DATABASE_URL": deadURL, "LITELLM_MASTER_KEY": masterKey}, "--help"); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Examples:", "--run-dir", "--database-url", "--ttl", "--check", "/run/penstock"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the help does not have %s:\n%s", part, out.String())
		}
	}
	wantNoSecrets(t, out.String(), nil)
}

func TestServesWithoutDatabaseAndStopsWell(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "c") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out output
	ended := make(chan error, 1)
	go func() {
		ended <- execute(ctx, &out, map[string]string{"DATABASE_URL": deadURL, "LITELLM_MASTER_KEY": masterKey}, "--run-dir", dir)
	}()

	conn, err := grpc.NewClient("unix:"+filepath.Join(dir, "ledger.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	_, err = ledgerv1.NewLedgerClient(conn).Authenticate(call,
		&ledgerv1.AuthenticateRequest{KeyHash: make([]byte, 32)}, grpc.WaitForReady(true))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("without a database the answer is %v, want Unavailable", err)
	}
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), "the database cannot be used"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log never says that the database is away: %s", out.String())
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("a good stop ended with %v", err)
	}
	wantNoSecrets(t, out.String(), nil)
	if !strings.Contains(out.String(), "connection refused") {
		t.Errorf("the log does not say why the database cannot be used: %s", out.String())
	}
	if !strings.Contains(out.String(), "collector stopped") {
		t.Errorf("the log does not say how it ended: %s", out.String())
	}
}
