package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-gateway/penstock/test/pg"
)

// asProgram makes the test binary the program itself, so that signals can be tried.
const asProgram = "PENSTOCK_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// environment is this process's without what would change a start.
func environment() []string {
	return append(os.Environ(), asProgram+"=1", "DATABASE_URL=", "LITELLM_MASTER_KEY=", "PENSTOCK_MASTER_KEY=")
}

// instance is a running program.
type instance struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
}

// launch starts the program; nobody reads its log unless the test fails.
func launch(t *testing.T, args ...string) *instance {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = environment()
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &instance{t: t, cmd: cmd, out: bufio.NewReader(out)}
}

// until reads what is printed up to a line that matches.
func (p *instance) until(pattern string) (text string) {
	p.t.Helper()
	for re := regexp.MustCompile(pattern); ; {
		line, err := p.out.ReadString('\n')
		if text += line; re.MatchString(line) {
			return text
		}
		if err != nil {
			p.t.Fatalf("cannot find %q: %v in:\n%s", pattern, err, text)
		}
	}
}

// end waits for the program.
func (p *instance) end() error {
	_, _ = io.Copy(io.Discard, p.out)
	return p.cmd.Wait()
}

func (p *instance) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// run runs the program to its end and returns what it printed.
func run(t *testing.T, args ...string) (out, log string, err error) {
	t.Helper()
	var o, l strings.Builder
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = &o, &l
	err = cmd.Run()
	return o.String(), l.String(), err
}

func serveArgs(folder string, more ...string) []string {
	return append([]string{"serve", "--port", "0", "--metrics-listen", "127.0.0.1:0", "--data", folder}, more...)
}

// post sends what the greeting's curl line sends.
func post(ctx context.Context, t *testing.T, greeting string) (int, string) {
	t.Helper()
	m := regexp.MustCompile(`curl -s (http://\S+/chat/completions) -H 'Authorization: (Bearer sk-\S+)' .* -d '(.*)'`).FindStringSubmatch(greeting)
	if m == nil {
		t.Fatalf("there is no curl line in:\n%s", greeting)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m[1], strings.NewReader(m[3]))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", m[2])
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

func TestServe(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := launch(t, serveArgs(folder)...)
	greeting := p.until("spend/logs")
	if status, body := post(t.Context(), t, greeting); status != http.StatusOK {
		t.Errorf("got %d %s", status, body)
	}
	if out, log, err := run(t, serveArgs(folder)...); err == nil || out != "" || !strings.Contains(log, "in use by another penstock serve (--data)") {
		t.Errorf("a second process on the folder: %q %q", out, log)
	}
	p.signal(os.Interrupt)
	p.until("^stopping: .*at most 30s; Ctrl-C again")
	p.until("^stopped: every record is booked")
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// Who starts it in vain is not told that it listens.
func TestServeFails(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	taken := l.Addr().String()
	_, port, _ := net.SplitHostPort(taken)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why  string
		args []string
		want string
	}{
		{"the port is taken", []string{"--port", port}, "choose --port"},
		{"the metrics' port is taken", []string{"--metrics-listen", taken}, "choose --metrics-listen, or '' for none"},
		{"the metrics' address is none", []string{"--metrics-listen", "nowhere"}, "(--metrics-listen)"},
		{"the data folder is a file", []string{"--data", file}, "(--data)"},
		{"not a URL of PostgreSQL", []string{"--database-url", "mysql://u:hush@h/db"}, "want postgres://user:password@host:port/database"},
		{"not a URL", []string{"--database-url", "postgres://u:hush@h:port/db"}, "want postgres://user:password@host:port/database"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			out, log, err := run(t, serveArgs(t.TempDir(), c.args...)...)
			if err == nil || out != "" || !strings.Contains(log, c.want) || strings.Contains(log, "hush") {
				t.Errorf("got %v, %q, %q", err, out, log)
			}
		})
	}
}

// The first Ctrl-C waits for a request, the second does not.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		<-release
	}))
	t.Cleanup(provider.Close)
	t.Cleanup(func() { close(release) })
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "model_list:\n- {model_name: slow, litellm_params: {model: openai/x, api_base: '" + provider.URL + "', api_key: k, input_cost_per_token: 1e-6, output_cost_per_token: 1e-6}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, serveArgs(t.TempDir(), "--config", file)...)
	greeting := p.until("spend/logs")
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		post(t.Context(), t, greeting)
	}()
	<-asked
	metrics := regexp.MustCompile(`http://\S+/metrics`).FindString(greeting)
	for !inFlightIsOne(t, strings.Replace(metrics, "/metrics", "/rates", 1)) {
		time.Sleep(20 * time.Millisecond) // polls another process
	}
	p.signal(os.Interrupt)
	p.until("^stopping: 1 request in flight, at most 30s")
	p.signal(os.Interrupt)
	_ = p.end()
	if s, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGINT {
		t.Errorf("ended with %v", p.cmd.ProcessState)
	}
	<-answered
}

func inFlightIsOne(t *testing.T, rates string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rates, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode == http.StatusOK && strings.Contains(string(body), `"workers":1,"in_flight_requests":1,`)
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	server, err := pg.Start(t.Context(), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	url := server.URL(server.Database(t))
	url = strings.Replace(url, "postgres@", "postgres:hush@", 1)
	folder := t.TempDir()

	out, log, err := run(t, serveArgs(folder, "--database-url", url)...)
	if err == nil || out != "" || !strings.Contains(log, "run: penstock migrate --database-url 'postgres://") || strings.Contains(log, "hush") {
		t.Errorf("not migrated yet: %v, %q, %q", err, out, log)
	}
	if out, log, err = run(t, "migrate", "--database-url", url); err != nil || !strings.HasPrefix(out, "applied 0001 ledger\n") {
		t.Errorf("migrate: %v, %q, %q", err, out, log)
	}
	// The folder has a key, the database has one of another folder, and both go on.
	for _, data := range []string{t.TempDir(), folder} {
		p := launch(t, serveArgs(data, "--database-url", url)...)
		if status, body := post(t.Context(), t, p.until("spend/logs")); status != http.StatusOK {
			t.Errorf("got %d %s", status, body)
		}
		p.signal(syscall.SIGTERM)
		if err := p.end(); err != nil {
			t.Error(err)
		}
	}
}
