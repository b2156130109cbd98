package proxy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/hangup"
	"github.com/penstock-gateway/penstock/internal/journal"
	"github.com/penstock-gateway/penstock/internal/keyring"
	"github.com/penstock-gateway/penstock/internal/record"
	"github.com/penstock-gateway/penstock/internal/route"
	"github.com/penstock-gateway/penstock/internal/telemetry"
	"github.com/penstock-gateway/penstock/internal/tokens"
	"github.com/penstock-gateway/penstock/internal/upstream"
)

const master = "sk-master-0123456789"

// serve starts a Proxy whose provider streams body. The master key needs no ledger.
func serve(t *testing.T, body string, change func(*Config)) (*Proxy, string) {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(provider.Close)
	path := filepath.Join(t.TempDir(), "config.yaml")
	yaml := fmt.Sprintf("model_list:\n- model_name: m\n  litellm_params: {model: openai/gpt-4o, api_base: %q, api_key: k}\n", provider.URL)
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Load(config.Source{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Create(journal.Config{Root: t.TempDir(), Identity: journal.Identity{PodUID: "pod"}, SegmentBytes: 256 << 10, MaxSegments: 2})
	if err != nil {
		t.Fatal(err)
	}
	client := upstream.New(upstream.Config{})
	watcher, err := hangup.NewWatcher(hangup.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Config: c, Routes: route.New(c), Keys: keyring.New(keyring.Config{MasterHash: sha256.Sum256([]byte(master))}),
		Records: record.New(record.Config{Journal: j}), Client: client, Tokens: counter,
		Metrics: telemetry.New(telemetry.Config{}), Logger: slog.New(slog.DiscardHandler), AdminSocket: filepath.Join(t.TempDir(), "admin.sock"),
		MaxInFlight: 2, MaxBytesInFlight: 1 << 20, Ready: func() error { return nil },
	}
	change(&cfg)
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(watcher.Listener(l)) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		client.Close()
		_ = watcher.Close()
		_ = j.Stop()
	})
	return p, "http://" + l.Addr().String()
}

func ask(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"Hello!"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", master)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

// TestPanicEndsOneRequest: a bug in one request is that client's 500 and nobody else's
// trouble, and what the request held comes back.
func TestPanicEndsOneRequest(t *testing.T) {
	t.Parallel()
	const text = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}` + "\n\n"
	p, url := serve(t, text, func(c *Config) { c.Tokens = nil }) // counting the prompt fails
	for range 5 {
		if status, body := ask(t, url); status != http.StatusInternalServerError || !strings.Contains(body, `"internal"`) {
			t.Errorf("got %d %s", status, body)
		}
	}
	if n := p.InFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// TestPanicInTheStreamIsCaught: fasthttp reads a stream outside of the handler.
func TestPanicInTheStreamIsCaught(t *testing.T) {
	t.Parallel()
	p, _ := serve(t, "", func(*Config) {})
	s := &stream{r: &request{p: p, cancel: func() {}}} // no response to read from
	if n, err := s.Read(make([]byte, 10)); n != 0 || err == nil {
		t.Errorf("got %d %v", n, err)
	}
	if n, err := s.Read(make([]byte, 10)); n != 0 || err == nil {
		t.Errorf("the second read got %d %v", n, err)
	}
}

func TestBodiesHaveATimeLimit(t *testing.T) {
	t.Parallel()
	p, _ := serve(t, "", func(*Config) {})
	if p.server.ReadTimeout != headerTimeout || p.server.IdleTimeout != idleTimeout || p.server.HeaderReceived(nil).ReadTimeout != bodyTimeout {
		t.Error("a time limit of a connection is not in force")
	}
	if idleTimeout <= 60e9 {
		t.Error("a load balancer's own limit must pass before ours")
	}
}
