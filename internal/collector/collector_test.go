package collector_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/sqlite"
)

const masterKey = "sk-master-0123456789"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle is one collector over its own database, and a worker's client to it.
type bundle struct {
	t      *testing.T
	dir    string
	store  store.Store // below any faults
	faults *faultyStore
	cfg    collector.Config
	c      *collector.Collector
	client ledgerv1.LedgerClient
	conn   *grpc.ClientConn
}

// setup starts a collector. adjust may be nil.
func setup(t *testing.T, adjust func(*collector.Config)) *bundle {
	t.Helper()
	// t.TempDir is too long for a socket's path.
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "ledger.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	b := &bundle{t: t, dir: filepath.Join(dir, "run"), store: s, faults: &faultyStore{Store: s}}
	b.cfg = collector.Config{
		Store:           b.faults,
		RunDir:          b.dir,
		MasterKeySHA256: sha256.Sum256([]byte(masterKey)),
		Logger:          slog.New(slog.NewTextHandler(io.Discard, nil)),
		BatchWait:       5 * time.Millisecond,
		PollEvery:       20 * time.Millisecond,
		ScanEvery:       20 * time.Millisecond,
	}
	if adjust != nil {
		adjust(&b.cfg)
	}
	b.start()
	t.Cleanup(func() {
		b.faults.heal()
		b.stop()
	})
	return b
}

func (b *bundle) start() {
	b.t.Helper()
	c, err := collector.New(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := c.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.conn, err = grpc.NewClient("unix:"+filepath.Join(b.dir, "ledger.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.t.Fatal(err)
	}
	b.c, b.client = c, ledgerv1.NewLedgerClient(b.conn)
}

// stop ends the collector well; a second call does nothing.
func (b *bundle) stop() {
	b.t.Helper()
	if b.c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := b.c.Stop(ctx); err != nil {
		b.t.Error(err)
	}
	b.conn.Close()
	b.c = nil
}

// kill ends the collector without letting it finish anything.
func (b *bundle) kill() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.c.Stop(ctx); err == nil {
		b.t.Error("a stop without time must say that something was left")
	}
	b.conn.Close()
	b.c = nil
}

// key makes a budgeted key and returns its hash.
func (b *bundle) key(name string, budget int64) []byte {
	b.t.Helper()
	sum := sha256.Sum256([]byte(name))
	err := b.store.CreateKey(b.t.Context(), store.Key{
		ID: fmt.Sprintf("%x", sum), Name: "sk-...test", Alias: name, MaxBudget: &budget,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return sum[:]
}

// eventually waits for something that another goroutine does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for tick := time.NewTicker(time.Millisecond); time.Now().Before(deadline); <-tick.C {
		if ok() {
			tick.Stop()
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}

func wantCode(t *testing.T, why string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: code %v (%v), want %v", why, got, err, want)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	good := collector.Config{Store: &faultyStore{}, RunDir: "x", MasterKeySHA256: [32]byte{1}}
	for why, spoil := range map[string]func(*collector.Config){
		"no store":          func(c *collector.Config) { c.Store = nil },
		"no run directory":  func(c *collector.Config) { c.RunDir = "" },
		"no master key":     func(c *collector.Config) { c.MasterKeySHA256 = [32]byte{} },
		"negative interval": func(c *collector.Config) { c.BatchWait = -1 },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := collector.New(cfg); err == nil {
			t.Errorf("%s: no error", why)
		}
	}
	if _, err := collector.New(good); err != nil {
		t.Error(err)
	}
}

func TestSockets(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, name := range []string{"ledger.sock", "admin.sock"} {
		info, err := os.Stat(filepath.Join(b.dir, name))
		if err != nil || info.Mode().Perm() != 0o660 || info.Mode().Type() != os.ModeSocket {
			t.Errorf("%s: %v %v, want a socket with mode 0660", name, info, err)
		}
	}
	second, err := collector.New(b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("two collectors on one socket: %v", err)
	}
	b.stop()
	if left, _ := filepath.Glob(filepath.Join(b.dir, "*.sock*")); len(left) > 0 {
		t.Errorf("sockets left after a stop: %v", left)
	}

	// What a killed process leaves: a socket file that nobody listens on.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(b.dir, "ledger.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	b.start()
	if _, err := b.client.Heartbeat(t.Context(), &ledgerv1.HeartbeatRequest{Holder: holder(1)}); err != nil {
		t.Errorf("a stale socket was not replaced: %v", err)
	}
}

func TestAdminSocket(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(b.dir, "admin.sock"))
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://admin/key/generate", bytes.NewBufferString(`{"max_budget":1}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+masterKey)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"key":"sk-`)) {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
}
