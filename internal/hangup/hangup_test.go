package hangup

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	// fasthttp's clock runs for ever once a server has started, and a stopped
	// server's cleaner of idle workers sleeps to the end of its turn.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// watched is a watcher with a listener on a real socket.
type watched struct {
	*Watcher
	ln net.Listener
}

func setup(t *testing.T, cfg Config) watched {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	w, err := NewWatcher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln = w.Listener(ln)
	t.Cleanup(func() { ln.Close(); w.Close() })
	return watched{w, ln}
}

// pair gives both ends of a new connection.
func (w watched) pair(t *testing.T) (client *net.TCPConn, server *Conn) {
	t.Helper()
	cc, err := net.Dial("tcp", w.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	sc, err := w.ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close(); sc.Close() })
	c, ok := From(sc)
	if !ok {
		t.Fatalf("accepted a %T", sc)
	}
	return cc.(*net.TCPConn), c
}

func reset(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() }

// fired waits for a callback, and fails after a time that no machine needs.
func fired(t *testing.T, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(5 * time.Second):
		t.Fatal("onGone was not called")
	}
}

func TestGone(t *testing.T) {
	t.Parallel()
	for why, leave := range map[string]func(*net.TCPConn){
		"FIN":                             func(c *net.TCPConn) { c.Close() },
		"RST":                             reset,
		"half-close counts as gone":       func(c *net.TCPConn) { _ = c.CloseWrite() },
		"FIN behind bytes nobody reads":   func(c *net.TCPConn) { _, _ = c.Write(make([]byte, 100)); c.Close() },
		"RST with bytes of ours not read": func(c *net.TCPConn) { c.Close() },
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := setup(t, Config{})
			client, server := w.pair(t)
			_, _ = server.Write([]byte("hello"))
			ch := make(chan struct{}, 2)
			server.Begin(func() { ch <- struct{}{} })
			if server.Gone() {
				t.Fatal("gone before it left")
			}
			leave(client)
			fired(t, ch)
			if !server.Gone() {
				t.Error("not marked gone")
			}
			server.End()
			if len(ch) != 0 {
				t.Error("onGone was called twice")
			}
		})
	}
}

// A client that left between two requests is gone at the next Begin.
func TestGoneBeforeBegin(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	client, server := w.pair(t)
	ch := make(chan struct{}, 1)
	server.Begin(func() { ch <- struct{}{} })
	client.Close()
	fired(t, ch)
	server.End()
	called := false
	server.Begin(func() { called = true })
	if !called {
		t.Error("Begin did not call it")
	}
	server.End()
}

// What comes after End is nobody's: it is only remembered.
func TestNothingAfterEnd(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	client, server := w.pair(t)
	var late atomic.Bool
	server.Begin(func() { late.Store(true) })
	server.End()
	client.Close()
	// A second connection's event comes after the first one's.
	client2, server2 := w.pair(t)
	ch := make(chan struct{}, 1)
	server2.Begin(func() { ch <- struct{}{} })
	client2.Close()
	fired(t, ch)
	if late.Load() {
		t.Error("onGone ran after End")
	}
	if !server.Gone() {
		t.Error("not marked gone")
	}
}

// End waits for a callback that is running, so that its memory can be reused.
func TestEndWaits(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	client, server := w.pair(t)
	entered, finish := make(chan struct{}), make(chan struct{})
	var finished atomic.Bool
	server.Begin(func() { close(entered); <-finish; finished.Store(true) })
	client.Close()
	fired(t, entered)
	go close(finish)
	server.End()
	if !finished.Load() {
		t.Error("End came back first")
	}
}

// Bytes that were pipelined behind a request are still there to be read.
func TestPipelinedBytesStay(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	client, server := w.pair(t)
	br := bufio.NewReader(server)
	if _, err := client.Write([]byte("first\nsecond\nthird\n")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first\n", "second\n", "third\n"} {
		ch := make(chan struct{}, 1)
		server.Begin(func() { ch <- struct{}{} })
		if got, err := br.ReadString('\n'); got != want || err != nil {
			t.Fatalf("got %q %v", got, err)
		}
		if want == "third\n" {
			client.Close()
			fired(t, ch)
		}
		server.End()
	}
	if _, err := br.ReadByte(); err != io.EOF {
		t.Errorf("got %v at the end", err)
	}
}

// A client that sends and stays is never gone, however much it sends.
func TestTrafficIsNotGone(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	client, server := w.pair(t)
	server.Begin(func() { t.Error("called for a client that stays") })
	go func() { _, _ = io.Copy(server, server) }()
	msg := make([]byte, 10_000)
	for range 100 {
		if _, err := client.Write(msg); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, msg); err != nil {
			t.Fatal(err)
		}
	}
	server.End()
}

// Descriptors are reused at once when many connections come and go. An event
// of an old one must never reach the new one on the same descriptor: here the
// old ones all leave, the new ones all stay.
func TestReuseStorm(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	var clients, servers sync.WaitGroup
	const rounds, width = 60, 40
	for range rounds {
		clients.Go(func() {
			conns := make([]net.Conn, 0, width)
			for range width {
				c, err := net.Dial("tcp", w.ln.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				conns = append(conns, c)
			}
			for i, c := range conns {
				if i%2 == 0 {
					_, _ = c.Write([]byte("l")) // leaves
					reset(c.(*net.TCPConn))
				} else {
					_, _ = c.Write([]byte("s")) // stays until its server is done
					_, _ = c.Read(make([]byte, 1))
					c.Close()
				}
			}
		})
	}
	var wrong atomic.Int64
	for range rounds * width {
		nc, err := w.ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		servers.Go(func() {
			c := nc.(*Conn)
			kind := make([]byte, 1)
			_, err := c.Read(kind)
			stays := err == nil && kind[0] == 's'
			c.Begin(func() {
				if stays {
					wrong.Add(1)
				}
			})
			runtime.Gosched()
			c.End()
			c.Close()
			c.Close()
		})
	}
	servers.Wait()
	clients.Wait()
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d events of an old connection reached a new one", n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for fd, c := range w.conns {
		if c != nil {
			t.Errorf("descriptor %d is still registered", fd)
		}
	}
}

// Ten thousand connections come, are served and go, and each one that leaves
// while it is served is noticed.
func TestTenThousand(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	const total, lanes = 10_000, 8
	var wg sync.WaitGroup
	wg.Go(func() {
		for range total {
			nc, err := w.ln.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			wg.Go(func() {
				ch := make(chan struct{})
				c := nc.(*Conn)
				c.Begin(func() { close(ch) })
				_, _ = c.Write([]byte("x"))
				fired(t, ch)
				c.End()
				c.Close()
			})
		}
	})
	for range lanes {
		wg.Go(func() {
			for range total / lanes {
				c, err := net.Dial("tcp", w.ln.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = c.Read(make([]byte, 1))
				reset(c.(*net.TCPConn)) // no TIME_WAIT
			}
		})
	}
	wg.Wait()
}

// A generation number, not only the descriptor, tells connections apart.
func TestOldEventIsIgnored(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	_, server := w.pair(t)
	ev := unix.EpollEvent{Fd: int32(server.fd), Pad: server.gen}
	if w.lookup(ev) != server {
		t.Error("its own event is not found")
	}
	if w.lookup(unix.EpollEvent{Fd: ev.Fd, Pad: ev.Pad - 1}) != nil {
		t.Error("an event of an earlier connection is taken")
	}
	server.Close()
	if w.lookup(ev) != nil {
		t.Error("a closed connection is found")
	}
}

func TestWriteIdle(t *testing.T) {
	w := setup(t, Config{WriteIdle: 400 * time.Millisecond})

	// A client that does not read is dropped.
	_, stalled := w.pair(t)
	began := time.Now()
	_, err := stalled.Write(make([]byte, 64<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("got %v after %s", err, time.Since(began))
	}

	// One that reads slowly is not, though one Write takes many times the limit.
	client, slow := w.pair(t)
	const total = 8 << 20
	done := make(chan error, 1)
	go func() {
		_, err := slow.Write(make([]byte, total))
		slow.Close()
		done <- err
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	got, buf := 0, make([]byte, 128<<10)
	for {
		n, err := client.Read(buf)
		if got += n; err != nil {
			break
		}
		<-tick.C
	}
	if err := <-done; err != nil || got != total {
		t.Errorf("a slow reader was cut at %d: %v", got, err)
	}

	if _, err := NewWatcher(Config{WriteIdle: -1}); err == nil {
		t.Error("a negative WriteIdle is taken")
	}
}

func TestClosedWatcher(t *testing.T) {
	t.Parallel()
	w := setup(t, Config{})
	client, server := w.pair(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	server.Begin(func() { t.Error("called after Close") })
	client.Close()
	server.End()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	late, err := net.Dial("tcp", w.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if _, err := w.ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepted without a watcher: %v", err)
	}
}
