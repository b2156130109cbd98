package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/fakeupstream"
	"github.com/penstock-gateway/penstock/internal/gateway"
	"github.com/penstock-gateway/penstock/internal/store/sqlite"
)

// cluster is a stack whose collector can be stopped and started and that may have
// several workers on one store.
type cluster struct {
	*stack
	workers []string // their addresses
	stop    func()   // stops the collector that runs now
}

// plan of a cluster. Extra is added to penstock_settings; %[1]s in Models is the provider.
type plan struct {
	handler http.Handler
	models  string
	extra   string
	workers int
	adjust  func(*config.Settings) // to what no file may say; may be nil
}

// build starts a cluster; the first worker's address is the stack's.
func build(t *testing.T, p plan) *cluster {
	t.Helper()
	c := &cluster{stack: &stack{t: t, dir: t.TempDir(), fake: fakeupstream.New(fakeupstream.Config{})}}
	if p.handler == nil {
		p.handler = c.fake
	}
	if p.models == "" {
		p.models = models
	}
	provider := httptest.NewServer(p.handler)
	t.Cleanup(provider.Close)
	yaml := strings.Replace(fmt.Sprintf(p.models, provider.URL), "max_body_bytes: 1000000", "max_body_bytes: 1000000, "+p.extra, 1)
	path := filepath.Join(c.dir, "config.yaml")
	check(t, os.WriteFile(path, []byte(yaml), 0o600))
	cfg, _, err := config.Load(config.Source{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if p.adjust != nil {
		p.adjust(&cfg.Settings)
	}
	if c.store, err = sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(c.dir, "db")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.store.Close)
	c.collect()
	t.Cleanup(func() { c.stop() })
	for i := range max(1, p.workers) {
		c.work(cfg, i)
	}
	c.address = c.workers[0]
	return c
}

// collect starts a collector.
func (c *cluster) collect() {
	c.t.Helper()
	coll, err := collector.New(collector.Config{
		Store: c.store, RunDir: c.dir, MasterKeySHA256: sha256.Sum256([]byte(masterKey)),
		Logger: slog.New(slog.DiscardHandler), BatchWait: time.Millisecond,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := coll.Start(context.Background()); err != nil {
		c.t.Fatal(err)
	}
	c.stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		check(c.t, coll.Stop(ctx))
	}
}

func (c *cluster) work(cfg *config.Config, index int) {
	t := c.t
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.workers = append(c.workers, l.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- gateway.Run(ctx, gateway.Config{
			Config: cfg, Listener: l, RunDir: c.dir, PodUID: fmt.Sprintf("pod-%d", index), Index: index,
			Grace: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
		})
	}()
	t.Cleanup(func() { cancel(); check(t, <-ended) })
}

// on is the stack under another test.
func (s *stack) on(t *testing.T) *stack {
	c := *s
	c.t = t
	return &c
}

// board is a provider of many cases: the user member of a request's body, which the
// gateway passes unchanged, says whose it is. It lets cases share one stack.
type board struct {
	mu    sync.Mutex
	cases []http.HandlerFunc
}

// add files a case and gives the body that reaches it.
func (b *board) add(h http.HandlerFunc, body string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cases = append(b.cases, h)
	return fmt.Sprintf(`{"user":"case-%d.",`, len(b.cases)-1) + body[1:]
}

func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var n int
	if _, err := fmt.Sscanf(string(body[bytes.Index(body, []byte("case-")):]), "case-%d.", &n); err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	b.mu.Lock()
	h := b.cases[n]
	b.mu.Unlock()
	h(w, r)
}

// wire is a client that writes bytes.
type wire struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func (s *stack) wire() *wire {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	check(s.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return &wire{s.t, conn, bufio.NewReader(conn)}
}

// send writes; a server that has answered and left is no error.
func (w *wire) send(format string, args ...any) *wire {
	fmt.Fprintf(w.conn, format, args...)
	return w
}

// answer reads one response.
func (w *wire) answer() answer {
	w.t.Helper()
	a, err := w.tryAnswer("POST")
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	return a
}

func (w *wire) tryAnswer(method string) (answer, error) {
	resp, err := http.ReadResponse(w.r, &http.Request{Method: method})
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, body}, err
}

// ended checks that the server closes the connection without another byte.
func (w *wire) ended() {
	w.t.Helper()
	var timeout net.Error
	if b, err := io.ReadAll(w.r); len(b) > 0 {
		w.t.Errorf("the connection goes on with %q (%v)", b, err)
	} else if errors.As(err, &timeout) && timeout.Timeout() {
		w.t.Error("the connection stays open")
	}
}

// post is a whole request as bytes.
func post(key, body string, headers ...string) string {
	return postTo("/v1/chat/completions", key, body, headers...)
}

func postTo(path, key, body string, headers ...string) string {
	h := ""
	for _, line := range headers {
		h += line + "\r\n"
	}
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n%s\r\n%s", path, key, len(body), h, body)
}

const alive = "GET /health/liveliness HTTP/1.1\r\nHost: x\r\n\r\n"
