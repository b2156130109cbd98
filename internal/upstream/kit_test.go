package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the server's end of one connection.
type peer struct {
	net.Conn
	br  *bufio.Reader
	srv *server
}

// request reads one request to its last byte and counts it.
func (p *peer) request() (*http.Request, []byte, error) {
	req, err := http.ReadRequest(p.br)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(req.Body)
	if err == nil {
		p.srv.requests.Add(1)
	}
	return req, body, err
}

func (p *peer) send(s string) { _, _ = io.WriteString(p, s) }

// reset closes with a RST.
func (p *peer) reset() {
	if tcp, ok := p.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	p.Close()
}

// awaitEnd reads until the connection ends and reports how long that took.
func (p *peer) awaitEnd() time.Duration {
	began := time.Now()
	_ = p.SetReadDeadline(began.Add(10 * time.Second))
	_, err := io.Copy(io.Discard, p.br)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 10 * time.Second
	}
	return time.Since(began)
}

// server is an upstream scripted at the level of bytes.
type server struct {
	ln              net.Listener
	conns, requests atomic.Int64
}

func (s *server) url() string { return "http://" + s.ln.Addr().String() }

// serve runs script once per connection; it closes the connection afterwards.
func serve(t testing.TB, ln net.Listener, script func(*peer)) *server {
	t.Helper()
	s := &server{ln: ln}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				script(&peer{Conn: c, br: bufio.NewReader(c), srv: s})
				c.Close()
				mu.Lock()
				delete(open, c)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return s
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// answering gives the same bytes to each request on a kept connection.
func answering(response string) func(*peer) {
	return func(p *peer) {
		for {
			if _, _, err := p.request(); err != nil {
				return
			}
			p.send(response)
		}
	}
}

const ok2 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func direct(*url.URL) (*url.URL, error) { return nil, nil }

// target makes a target of a client of its own; set changes its config.
func target(t testing.TB, base string, set func(*TargetConfig)) *Target {
	t.Helper()
	cfg := TargetConfig{BaseURL: base}
	if set != nil {
		set(&cfg)
	}
	client := New(Config{Proxy: direct})
	t.Cleanup(client.Close)
	tg, err := client.Target(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func post(body ...string) *Call {
	c := &Call{Method: "POST", Path: "/v1/chat/completions", Headers: [][2]string{{"Content-Type", "application/json"}}}
	for _, b := range body {
		c.Body = append(c.Body, []byte(b))
	}
	return c
}

// roundTrip does the call and reads the whole body.
func roundTrip(tg *Target, call *Call) (int, string, error) {
	resp, err := tg.Do(call)
	if err != nil {
		return 0, "", err
	}
	defer resp.Close()
	body, err := resp.ReadAll(nil)
	return resp.Status, string(body), err
}
