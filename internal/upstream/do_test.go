package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRequestBytes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, base string
		call      *Call
		want      string
	}{
		{
			"base path, headers in order, body pieces joined on the wire", "/v1/",
			&Call{Method: "POST", Path: "/chat/completions?x=1", Headers: [][2]string{{"Authorization", "Bearer k"}, {"X-a", "1"}},
				Body: [][]byte{[]byte(`{"model":`), []byte(`"m"`), []byte(`}`)}},
			"POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: HOST\r\nAccept-Encoding: identity\r\nAuthorization: Bearer k\r\nX-a: 1\r\nContent-Length: 13\r\n\r\n{\"model\":\"m\"}",
		},
		{
			"framing headers of the caller are ours to set", "",
			&Call{Method: "POST", Path: "/", Headers: [][2]string{{"host", "evil"}, {"Content-Length", "9"}, {"transfer-encoding", "chunked"}, {"Accept-Encoding", "gzip"}, {"Connection", "close"}}},
			"POST / HTTP/1.1\r\nHost: HOST\r\nAccept-Encoding: identity\r\nContent-Length: 0\r\n\r\n",
		},
		{
			"a GET has no length", "", &Call{Method: "GET", Path: "/models"},
			"GET /models HTTP/1.1\r\nHost: HOST\r\nAccept-Encoding: identity\r\n\r\n",
		},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, listen(t), func(p *peer) {
				want := strings.ReplaceAll(c.want, "HOST", p.LocalAddr().String())
				got := make([]byte, len(want))
				_, _ = io.ReadFull(p.br, got)
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Error(diff)
				}
				p.send(ok2)
			})
			if status, body, err := roundTrip(target(t, srv.url()+c.base, nil), c.call); status != 200 || body != "ok" || err != nil {
				t.Errorf("got %d %q %v", status, body, err)
			}
		})
	}
}

func TestInvalidCallIsNotSent(t *testing.T) {
	t.Parallel()
	srv := serve(t, listen(t), answering(ok2))
	tg := target(t, srv.url(), nil)
	for why, call := range map[string]*Call{
		"line break in a value": {Method: "POST", Path: "/", Headers: [][2]string{{"X-A", "1\r\nX-Evil: 1"}}},
		"colon in a name":       {Method: "POST", Path: "/", Headers: [][2]string{{"X:A", "1"}}},
		"space in the path":     {Method: "POST", Path: "/a HTTP/1.1\r\nX: 1"},
		"fragment":              {Method: "POST", Path: "/a#b"},
		"relative path":         {Method: "POST", Path: "a"},
		"no path":               {Method: "POST"},
		"method":                {Method: "PO ST", Path: "/"},
	} {
		_, err := tg.Do(call)
		if !errors.Is(err, ErrInvalidCall) || !NothingSent(err) || RequestSent(err) {
			t.Errorf("%s: got %v", why, err)
		}
	}
	if n := srv.conns.Load(); n != 0 {
		t.Errorf("%d connections were opened", n)
	}
}

func TestResponses(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, wire string
		status    int
		body      string
		length    int
	}{
		{"length", ok2, 200, "ok", 2},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200, "ok", -1},
		{"until close", "HTTP/1.1 200 OK\r\n\r\nok", 200, "ok", -1},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nok", 200, "ok", -1},
		{"1xx are skipped", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + ok2, 200, "ok", 2},
		{"an error status is a response", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nno", 429, "no", 2},
		{"redirects are not followed", "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 307, "", 0},
		{"204 has no body", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", 0},
	}
	for _, c := range cases {
		for _, cut := range []int{1, 3, 4096} {
			t.Run(fmt.Sprintf("%s/cut %d", c.why, cut), func(t *testing.T) {
				t.Parallel()
				srv := serve(t, listen(t), func(p *peer) {
					_, _, _ = p.request()
					for w := c.wire; w != ""; w = w[min(cut, len(w)):] {
						p.send(w[:min(cut, len(w))])
					}
				})
				resp, err := target(t, srv.url(), nil).Do(post("{}"))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Close()
				body, err := resp.ReadAll([]byte("> "))
				if resp.Status != c.status || string(body) != "> "+c.body || resp.ContentLength() != c.length || err != nil {
					t.Errorf("got %d %q %d %v", resp.Status, body, resp.ContentLength(), err)
				}
			})
		}
	}
}

// A stream's bytes come as they are sent: the server sends the next event only
// after the client has read the one before.
func TestStreamIsNotHeldBack(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	srv := serve(t, listen(t), func(p *peer) {
		_, _, _ = p.request()
		p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for i := range 5 {
			event := fmt.Sprintf("data: %d\n\n", i)
			p.send(fmt.Sprintf("%x\r\n%s\r\n", len(event), event))
			<-next
		}
		p.send("0\r\n\r\n")
	})
	resp, err := target(t, srv.url(), nil).Do(post("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	if got := string(resp.Header().ContentType()); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	p := make([]byte, 64<<10)
	for i := range 5 {
		n, err := resp.Read(p)
		if want := fmt.Sprintf("data: %d\n\n", i); string(p[:n]) != want || err != nil {
			t.Fatalf("got %q, %v", p[:n], err)
		}
		next <- struct{}{}
	}
	//nolint:errorlint // io.Reader's contract is io.EOF itself, not an error that wraps it
	if n, err := resp.Read(p); n != 0 || err != io.EOF {
		t.Errorf("got %d, %v at the end", n, err)
	}
}

func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	cases := []struct {
		why   string
		play  func(*peer)
		want  error
		phase Phase
	}{
		{"FIN before an answer", func(*peer) {}, ErrUnexpectedEnd, PhaseHeader},
		{"RST before an answer", (*peer).reset, ErrUnexpectedEnd, PhaseHeader},
		{"FIN in the header", func(p *peer) { p.send("HTTP/1.1 200 OK\r\nContent-") }, ErrUnexpectedEnd, PhaseHeader},
		{"FIN after headers, no event", func(p *peer) { p.send(head) }, ErrUnexpectedEnd, PhaseBody},
		{"FIN in a chunk", func(p *peer) { p.send(head + "5\r\nhel") }, ErrUnexpectedEnd, PhaseBody},
		{"FIN between chunks", func(p *peer) { p.send(head + "2\r\nhe\r\n") }, ErrUnexpectedEnd, PhaseBody},
		{"shorter than promised", func(p *peer) { p.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi") }, ErrUnexpectedEnd, PhaseBody},
		{"broken chunk", func(p *peer) { p.send(head + "zz\r\n") }, ErrProtocol, PhaseBody},
		{"no HTTP", func(p *peer) { p.send("220 smtp ready\r\n\r\n") }, ErrProtocol, PhaseHeader},
		{"two lengths", func(p *peer) { p.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok") }, ErrProtocol, PhaseHeader},
		{"an upgrade nobody asked for", func(p *peer) { p.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n") }, ErrProtocol, PhaseHeader},
		{"1xx without end", func(p *peer) { p.send(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100)) }, ErrProtocol, PhaseHeader},
		{"one header over the limit", func(p *peer) {
			p.send("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 32<<10) + "\r\n\r\n")
		}, ErrHeaderTooLarge, PhaseHeader},
		{"header flood", func(p *peer) {
			p.send("HTTP/1.1 200 OK\r\n")
			for range 10000 {
				p.send("X: a\r\n")
			}
		}, ErrHeaderTooLarge, PhaseHeader},
		{"announced body over MaxBody", func(p *peer) { p.send("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n") }, ErrBodyTooLarge, PhaseBody},
		{"unannounced body over MaxBody", func(p *peer) { p.send("HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("a", 2000)) }, ErrBodyTooLarge, PhaseBody},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, listen(t), func(p *peer) { _, _, _ = p.request(); c.play(p) })
			tg := target(t, srv.url(), func(cfg *TargetConfig) { cfg.MaxBody = 1000 })
			_, _, err := roundTrip(tg, post("{}"))
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, c.want) || e.Phase != c.phase {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if NothingSent(err) || !RequestSent(err) || TimedOut(err) {
				t.Errorf("the upstream had the whole request: %+v", e)
			}
			if st := tg.Stats(); st.InUse != 0 || st.Idle != 0 || srv.requests.Load() != 1 {
				t.Errorf("stats %+v, %d requests", st, srv.requests.Load())
			}
		})
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	const limit = 60 * time.Millisecond
	silent := func(p *peer) { _, _, _ = p.request(); p.awaitEnd() }
	dribble := func(head string) func(*peer) {
		return func(p *peer) {
			_, _, _ = p.request()
			p.send(head)
			tick := time.NewTicker(limit / 6)
			defer tick.Stop()
			for range 600 {
				if _, err := p.Write([]byte("x")); err != nil {
					return
				}
				<-tick.C
			}
		}
	}
	cases := []struct {
		why    string
		script func(*peer)
		set    func(*TargetConfig)
		want   error
	}{
		{"silence", silent, func(c *TargetConfig) { c.HeaderTimeout = limit }, ErrHeaderTimeout},
		{"a header that trickles is as late as none", dribble("HTTP/1.1 200 OK\r\nX: "), func(c *TargetConfig) { c.HeaderTimeout = limit }, ErrHeaderTimeout},
		{"silence in the body", func(p *peer) { _, _, _ = p.request(); p.send("HTTP/1.1 200 OK\r\n\r\nx"); p.awaitEnd() },
			func(c *TargetConfig) { c.IdleTimeout = limit }, ErrIdleTimeout},
		{"a body that trickles meets the call's deadline only", dribble("HTTP/1.1 200 OK\r\n\r\n"), func(c *TargetConfig) { c.IdleTimeout = 5 * limit }, ErrDeadline},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, listen(t), c.script)
			tg := target(t, srv.url(), c.set)
			call := post("{}")
			if errors.Is(c.want, ErrDeadline) {
				call.Deadline = time.Now().Add(10 * limit)
			}
			_, _, err := roundTrip(tg, call)
			if !errors.Is(err, c.want) || !TimedOut(err) || !RequestSent(err) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if st := tg.Stats(); st.InUse != 0 || st.Idle != 0 {
				t.Errorf("the connection must be closed: %+v", st)
			}
		})
	}
}

func TestDialFailures(t *testing.T) {
	t.Parallel()
	closed := listen(t)
	closed.Close()
	_, err := target(t, "http://"+closed.Addr().String(), nil).Do(post("{}"))
	if !NothingSent(err) || RequestSent(err) || TimedOut(err) {
		t.Errorf("refused: %v", err)
	}
	// A TLS peer that says nothing stands for every dial that hangs.
	mute := serve(t, listen(t), func(p *peer) { p.awaitEnd() })
	tg := target(t, "https://"+mute.ln.Addr().String(), func(c *TargetConfig) { c.DialTimeout = 50 * time.Millisecond })
	if _, err = tg.Do(post("{}")); !errors.Is(err, ErrDialTimeout) || !NothingSent(err) {
		t.Errorf("mute: %v", err)
	}
}

// The pieces of a large body arrive whole and in order.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<20/4)
	srv := serve(t, listen(t), func(p *peer) {
		_, body, err := p.request()
		if err != nil || !bytes.Equal(body, want) {
			t.Errorf("got %d bytes, %v", len(body), err)
		}
		p.send(ok2)
	})
	call := post()
	call.Body = [][]byte{want[:100], want[100:103], want[103 : 3<<20], want[3<<20:]}
	if _, body, err := roundTrip(target(t, srv.url(), nil), call); body != "ok" || err != nil {
		t.Errorf("got %q %v", body, err)
	}
}

// An upstream that refuses a large body early closes while we still write; its
// answer is worth more than our broken pipe.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	srv := serve(t, listen(t), func(p *peer) {
		p.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
		_, _ = p.br.Peek(1)
	})
	tg := target(t, srv.url(), nil)
	status, body, err := roundTrip(tg, post(strings.Repeat("x", 32<<20)))
	if status != 413 || body != "big" || err != nil {
		t.Fatalf("got %d %q %v", status, body, err)
	}
	if st := tg.Stats(); st.Idle != 0 {
		t.Errorf("a connection with half a request on it was kept: %+v", st)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := serve(t, ln, answering(ok2))
	tg := target(t, "http://admin", func(c *TargetConfig) { c.SocketPath = path })
	for range 3 {
		if _, body, err := roundTrip(tg, post("{}")); body != "ok" || err != nil {
			t.Errorf("got %q %v", body, err)
		}
	}
	if n := srv.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
