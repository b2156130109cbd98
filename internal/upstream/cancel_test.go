package upstream

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cancelNow cancels the call and checks that do, which blocks in it, returns
// ErrCanceled at once.
func cancelNow(t *testing.T, call *Call, do <-chan error) {
	t.Helper()
	began := time.Now()
	call.Cancel()
	call.Cancel() // a second one does nothing
	err := <-do
	if !errors.Is(err, ErrCanceled) || TimedOut(err) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(began); d > time.Second {
		t.Errorf("it took %s", d)
	}
}

func TestCancelInEachPhase(t *testing.T) {
	t.Parallel()
	type progress struct {
		reached chan struct{}      // the server has seen the phase
		ended   chan time.Duration // how long the server waited for the end
	}
	big := strings.Repeat("x", 32<<20)
	cases := []struct {
		why    string
		scheme string
		body   string
		script func(*peer, progress)
		sent   Sent
	}{
		{"in the TLS handshake", "https://", "{}", func(p *peer, pr progress) {
			_, _ = p.br.Peek(1)
			close(pr.reached)
			pr.ended <- p.awaitEnd()
		}, SentNothing},
		{"while writing", "http://", big, func(p *peer, pr progress) {
			_, _ = p.br.Peek(1) // the rest stays in the kernel's buffers
			close(pr.reached)
			pr.ended <- p.awaitEnd()
		}, SentPart},
		{"while waiting", "http://", "{}", func(p *peer, pr progress) {
			_, _, _ = p.request()
			close(pr.reached)
			pr.ended <- p.awaitEnd()
		}, SentAll},
		{"in the response header", "http://", "{}", func(p *peer, pr progress) {
			_, _, _ = p.request()
			p.send("HTTP/1.1 200 OK\r\nContent-")
			close(pr.reached)
			pr.ended <- p.awaitEnd()
		}, SentAll},
		{"in the body", "http://", "{}", func(p *peer, pr progress) {
			_, _, _ = p.request()
			p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
			close(pr.reached)
			pr.ended <- p.awaitEnd()
		}, SentAll},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			pr := progress{make(chan struct{}), make(chan time.Duration, 1)}
			srv := serve(t, listen(t), func(p *peer) { c.script(p, pr) })
			tg := target(t, c.scheme+srv.ln.Addr().String(), nil)
			call, do := post(c.body), make(chan error, 1)
			go func() { _, _, err := roundTrip(tg, call); do <- err }()
			<-pr.reached
			began := time.Now()
			call.Cancel()
			err := <-do
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, ErrCanceled) || TimedOut(err) || e.Sent != c.sent {
				t.Errorf("got %v", err)
			}
			if d := time.Since(began); d > time.Second {
				t.Errorf("Do came back after %s", d)
			}
			if d := <-pr.ended; d > time.Second {
				t.Errorf("the upstream saw the end after %s", d)
			}
			if st := tg.Stats(); st.InUse != 0 || st.Idle != 0 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

// deadEnd gives an address whose connects hang: a listener whose queue is full.
func deadEnd(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err = errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: sa.(*unix.SockaddrInet4).Port}).String()
	for range 8 {
		c, err := net.DialTimeout("tcp", addr, 50*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the queue does not fill")
	return ""
}

func TestCancelInConnect(t *testing.T) {
	t.Parallel()
	tg := target(t, "http://"+deadEnd(t), nil)
	call, do := post("{}"), make(chan error, 1)
	go func() { _, err := tg.Do(call); do <- err }()
	for { // wait until Do is in its dial
		call.mu.Lock()
		dialing := call.dialing != nil
		call.mu.Unlock()
		if dialing {
			break
		}
	}
	cancelNow(t, call, do)
}

func TestCancelBeforeDoStays(t *testing.T) {
	t.Parallel()
	srv := serve(t, listen(t), answering(ok2))
	tg := target(t, srv.url(), nil)
	if _, _, err := roundTrip(tg, post("{}")); err != nil { // leaves a kept connection
		t.Fatal(err)
	}
	call := post("{}")
	call.Cancel()
	for range 2 { // every later attempt too
		if _, err := tg.Do(call); !errors.Is(err, ErrCanceled) || !NothingSent(err) {
			t.Errorf("got %v", err)
		}
	}
	if n := srv.requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	call.Reset()
	call.Method, call.Path = "POST", "/"
	if _, body, err := roundTrip(tg, call); body != "ok" || err != nil {
		t.Errorf("after Reset: %q %v", body, err)
	}
}

// A cancel after the response was closed must not hit the connection's next
// user; bytes that are buffered are not given out after a cancel.
func TestCancelAfterwards(t *testing.T) {
	t.Parallel()
	srv := serve(t, listen(t), answering(ok2))
	tg := target(t, srv.url(), nil)
	first := post("{}")
	if _, _, err := roundTrip(tg, first); err != nil {
		t.Fatal(err)
	}
	second := post("{}")
	resp, err := tg.Do(second)
	if err != nil {
		t.Fatal(err)
	}
	first.Cancel()
	p := make([]byte, 1)
	if n, err := resp.Read(p); n != 1 || err != nil {
		t.Errorf("the second call was hit: %v", err)
	}
	second.Cancel()
	if n, err := resp.Read(p); n != 0 || !errors.Is(err, ErrCanceled) {
		t.Errorf("got %d %v", n, err)
	}
	resp.Close()
	resp.Close()
	if _, err := resp.Read(p); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("read after close: %v", err)
	}
	if st := tg.Stats(); st.Dialed != 1 || st.Idle != 0 || st.InUse != 0 {
		t.Errorf("stats %+v", st)
	}
}

// Cancels at random moments leave nothing behind: no connection in use, no
// goroutine (goleak), and every other call is answered rightly.
func TestCancelStorm(t *testing.T) {
	t.Parallel()
	srv := serve(t, listen(t), answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"))
	tg := target(t, srv.url(), nil)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 50 {
				call := post("{}")
				var cancel sync.WaitGroup
				if (i+j)%2 == 0 {
					cancel.Go(call.Cancel)
				}
				_, body, err := roundTrip(tg, call)
				if err == nil && body != "ok" || err != nil && !errors.Is(err, ErrCanceled) || err != nil && (i+j)%2 == 1 {
					t.Errorf("got %q %v", body, err)
				}
				cancel.Wait()
			}
		})
	}
	wg.Wait()
	if st := tg.Stats(); st.InUse != 0 || st.Idle > 20 {
		t.Errorf("stats %+v", st)
	}
}
