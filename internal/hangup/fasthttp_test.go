package hangup

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"
)

// serveHTTP runs a fasthttp server until the test ends.
func serveHTTP(t *testing.T, w watched, s *fasthttp.Server) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(w.ln) }()
	t.Cleanup(func() { _ = s.Shutdown(); <-done })
}

// A handler reaches its Conn through RequestCtx.Conn, and learns that the
// client left while it waits.
func TestFasthttpGivesTheConn(t *testing.T) {
	t.Parallel()
	for why, s := range map[string]*fasthttp.Server{
		"plain":               {},
		"reduced memory":      {ReduceMemoryUsage: true},
		"concurrency limit":   {Concurrency: 10},
		"streamed bodies":     {StreamRequestBody: true},
		"TCP keep-alive":      {TCPKeepalive: true},
		"idle and read limit": {ReadTimeout: 1 << 40, IdleTimeout: 1 << 40},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := setup(t, Config{})
			started, gone := make(chan struct{}), make(chan struct{})
			s.Handler = func(ctx *fasthttp.RequestCtx) {
				c, ok := From(ctx.Conn())
				if !ok {
					t.Errorf("got a %T", ctx.Conn())
					return
				}
				if string(ctx.Path()) == "/quick" {
					return
				}
				left := make(chan struct{})
				c.Begin(func() { close(left) })
				defer c.End()
				close(started)
				<-left
				close(gone)
			}
			serveHTTP(t, w, s)
			client, err := net.Dial("tcp", w.ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, _ = io.WriteString(client, "GET /quick HTTP/1.1\r\nHost: a\r\n\r\n")
			if resp, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || resp.StatusCode != 200 {
				t.Fatalf("got %v %v", resp, err)
			}
			// The pipelined third request must not hide that the client left.
			_, _ = io.WriteString(client, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /quick HTTP/1.1\r\nHost: a\r\n\r\n")
			fired(t, started)
			client.Close()
			fired(t, gone)
		})
	}
}

// With MaxConnsPerIP fasthttp hides the connection; the documented gap.
func TestFasthttpPerIPHidesTheConn(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	found := make(chan bool, 1)
	serveHTTP(t, w, &fasthttp.Server{MaxConnsPerIP: 10, Handler: func(ctx *fasthttp.RequestCtx) {
		_, ok := From(ctx.Conn())
		found <- ok
	}})
	client, err := net.Dial("tcp", w.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if <-found {
		t.Error("From finds it now: take the limit out of its documentation")
	}
}

func TestFromLooksThroughTLS(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	_, server := w.pair(t)
	if c, ok := From(tls.Server(server, &tls.Config{})); !ok || c != server {
		t.Error("not found behind TLS")
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, ok := From(a); ok {
		t.Error("found in a pipe")
	}
}
