package upstream

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestKeepAliveReuse(t *testing.T) {
	t.Parallel()
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
	cases := []struct {
		why, wire string
		conns     int64 // for three calls
	}{
		{"length", ok2, 1},
		{"chunked", chunked, 1},
		{"no body", "HTTP/1.1 204 No Content\r\n\r\n", 1},
		{"Connection: close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 3},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 3},
		{"HTTP/1.0 with keep-alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 1},
		{"bytes behind the body belong to no call", ok2 + "HTTP/1.1 200 OK\r\n", 3},
		{"a Keep-Alive hint too short to use", "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok", 3},
		{"a longer hint", "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok", 1},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, listen(t), answering(c.wire))
			tg := target(t, srv.url(), nil)
			for range 3 {
				if _, body, err := roundTrip(tg, post("{}")); err != nil || body != "ok" && body != "" {
					t.Fatalf("got %q %v", body, err)
				}
			}
			if n := srv.conns.Load(); n != c.conns {
				t.Errorf("%d connections, want %d", n, c.conns)
			}
			if st := tg.Stats(); st.Dialed != uint64(c.conns) || st.Reused != uint64(3-c.conns) || st.InUse != 0 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

func TestUnreadBodyClosesTheConnection(t *testing.T) {
	t.Parallel()
	ended := make(chan time.Duration, 1)
	srv := serve(t, listen(t), func(p *peer) {
		_, _, _ = p.request()
		p.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok")
		ended <- p.awaitEnd()
	})
	tg := target(t, srv.url(), nil)
	resp, err := tg.Do(post("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Close()
	if d := <-ended; d > time.Second {
		t.Errorf("the upstream saw the end after %s", d)
	}
	if st := tg.Stats(); st.Idle != 0 || st.InUse != 0 {
		t.Errorf("stats %+v", st)
	}
}

func TestPoolBounds(t *testing.T) {
	t.Parallel()
	srv := serve(t, listen(t), answering(ok2))
	tg := target(t, srv.url(), func(c *TargetConfig) { c.MaxIdle, c.MaxIdleTime = 2, 100*time.Millisecond })
	var open []*Response
	for range 4 {
		resp, err := tg.Do(post("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resp.ReadAll(nil); err != nil {
			t.Fatal(err)
		}
		open = append(open, resp)
	}
	if st := tg.Stats(); st.InUse != 4 {
		t.Errorf("stats %+v", st)
	}
	for _, r := range open {
		r.Close()
	}
	if st := tg.Stats(); st.InUse != 0 || st.Idle > 2 {
		t.Errorf("stats %+v", st)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); tg.Stats().Idle > 0; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("kept connections are not closed after MaxIdleTime")
		}
	}
}

// A kept connection that the upstream has closed, or on which something came
// unasked, is found before use.
func TestStaleIsFoundBeforeUse(t *testing.T) {
	t.Parallel()
	for why, end := range map[string]func(*peer){
		"FIN":   func(p *peer) { p.Close() },
		"RST":   (*peer).reset,
		"bytes": func(p *peer) { p.send("HTTP/1.1 408 Request Timeout\r\n\r\n") },
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			release, done := make(chan struct{}), make(chan struct{}, 2)
			srv := serve(t, listen(t), func(p *peer) {
				_, _, _ = p.request()
				p.send(ok2)
				<-release
				end(p)
				done <- struct{}{}
			})
			tg := target(t, srv.url(), nil)
			for i := range 2 {
				if _, body, err := roundTrip(tg, post("{}")); body != "ok" || err != nil {
					t.Fatalf("got %q %v", body, err)
				}
				if i == 0 {
					close(release)
					<-done
				}
			}
			if st := tg.Stats(); st.Stale != 1 || st.Dialed != 2 || st.Resent != 0 || srv.requests.Load() != 2 {
				t.Errorf("stats %+v, %d requests", st, srv.requests.Load())
			}
		})
	}
}

// closedUnder makes a kept connection that the upstream closes after the check
// for readability: the moment that the check cannot see.
func closedUnder(t *testing.T) (*server, *Target, *conn) {
	t.Helper()
	release, done := make(chan struct{}), make(chan struct{}, 2)
	srv := serve(t, listen(t), func(p *peer) {
		_, _, _ = p.request()
		p.send(ok2)
		<-release
		p.Close()
		done <- struct{}{}
	})
	tg := target(t, srv.url(), nil)
	if _, _, err := roundTrip(tg, post("{}")); err != nil {
		t.Fatal(err)
	}
	c, err := tg.kept()
	if c == nil || err != nil {
		t.Fatal("no kept connection")
	}
	close(release)
	<-done
	return srv, tg, c
}

func TestClosedUnderTheRequestMayBeSentAgain(t *testing.T) {
	t.Parallel()
	for why, body := range map[string]string{
		"the write succeeds, the end shows it was not taken": "{}",
		"the write fails": strings.Repeat("x", 32<<20),
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			srv, tg, c := closedUnder(t)
			resp, failure := tg.exchange(post(body), c)
			if failure == nil {
				resp.Close()
				t.Fatal("there is an answer from a closed connection")
			}
			if !failure.wasStale() || RequestSent(failure) || !failure.Reused {
				t.Errorf("got %+v", failure)
			}
			if n := srv.requests.Load(); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// Do itself sends once more on a fresh connection, where it was not counted.
func TestDoSendsAgain(t *testing.T) {
	t.Parallel()
	srv, tg, c := closedUnder(t)
	healthy, err := net.Dial("tcp", srv.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer healthy.Close()
	// The check before use looks at a healthy socket, as if the close came after it.
	if c.sys, err = healthy.(*net.TCPConn).SyscallConn(); err != nil {
		t.Fatal(err)
	}
	tg.pool.put(c, time.Minute)
	if _, body, err := roundTrip(tg, post(strings.Repeat("x", 8<<20))); body != "ok" || err != nil {
		t.Fatalf("got %q %v", body, err)
	}
	if st := tg.Stats(); st.Resent != 1 || st.Dialed != 2 || st.Stale != 0 || srv.requests.Load() != 2 {
		t.Errorf("stats %+v, %d requests", st, srv.requests.Load())
	}
}

// After the upstream has shown that it closes connections early, they are not
// kept until that moment again.
func TestIdleLimitIsLearned(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := pool{max: 8}
	defer p.close()
	raw, other := net.Pipe()
	defer other.Close()
	c := &conn{raw: raw}
	p.put(c, time.Minute)
	if d := c.idleUntil.Sub(now); d < 50*time.Second {
		t.Fatalf("kept for %s before anything is known", d)
	}
	c.idleSince = now.Add(-4 * time.Second)
	p.learn(c)
	c.idleSince = now.Add(-20 * time.Second) // found late: teaches nothing new
	p.learn(c)
	p.put(c, time.Minute)
	if d := c.idleUntil.Sub(c.idleSince); d < 3*time.Second || d > 4*time.Second {
		t.Errorf("kept for %s, want 3 s", d)
	}
	p.put(c, time.Second)
	if d := c.idleUntil.Sub(c.idleSince); d != time.Second {
		t.Errorf("kept for %s, want the shorter 1 s", d)
	}
	c.idleSince = time.Now()
	p.learn(c)
	p.put(c, time.Minute)
	if d := c.idleUntil.Sub(c.idleSince); d != minLearned {
		t.Errorf("kept for %s, want the least %s", d, minLearned)
	}
	p.limitUntil = now.Add(-time.Second)
	p.put(c, time.Minute)
	if d := c.idleUntil.Sub(c.idleSince); d != time.Minute {
		t.Errorf("kept for %s after the lesson is old", d)
	}
}

// The upstream reads the whole request on a kept connection, counts it, and
// closes without an answer: it must never get the request a second time.
func TestReadAndClosedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for why, end := range map[string]func(*peer){"FIN": func(*peer) {}, "RST": (*peer).reset} {
		for _, size := range []int{2, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d", why, size), func(t *testing.T) {
				t.Parallel()
				srv := serve(t, listen(t), func(p *peer) {
					_, _, _ = p.request()
					p.send(ok2)
					if _, _, err := p.request(); err == nil {
						end(p)
					}
				})
				tg := target(t, srv.url(), nil)
				for range 20 {
					if _, _, err := roundTrip(tg, post("{}")); err != nil {
						t.Fatal(err)
					}
					before := srv.requests.Load()
					_, _, err := roundTrip(tg, post(strings.Repeat("x", size)))
					e, _ := errors.AsType[*Error](err)
					if e == nil || !errors.Is(err, ErrUnexpectedEnd) || !RequestSent(err) || !e.Reused {
						t.Fatalf("got %v", err)
					}
					if n := srv.requests.Load() - before; n != 1 {
						t.Fatalf("it was sent %d times", n)
					}
				}
			})
		}
	}
}

// The upstream closes in the very moment of the request, over and over. It
// never counts one twice, and what fails says that it may have been read.
func TestCloseRace(t *testing.T) {
	t.Parallel()
	closing, closed := make(chan chan struct{}), make(chan struct{})
	srv := serve(t, listen(t), func(p *peer) {
		if _, _, err := p.request(); err != nil {
			return
		}
		p.send(ok2)
		go func(c net.Conn) {
			if start, ok := <-closing; ok {
				<-start
				c.Close()
				closed <- struct{}{}
			}
		}(p.Conn)
		for {
			if _, _, err := p.request(); err != nil {
				return
			}
			p.send(ok2)
		}
	})
	tg := target(t, srv.url(), nil)
	failed := 0
	for i := range 300 {
		call := func() error { _, _, err := roundTrip(tg, post("{}")); return err }
		if err := call(); err != nil {
			t.Fatal(err)
		}
		start := make(chan struct{})
		closing <- start
		before := srv.requests.Load()
		var wg sync.WaitGroup
		wg.Go(func() { close(start) })
		for range i % 30 {
			runtime.Gosched()
		}
		err := call()
		wg.Wait()
		<-closed // else the close could hit the next round
		if n := srv.requests.Load() - before; n > 1 || err == nil && n != 1 {
			t.Fatalf("counted %d times, %v", n, err)
		}
		if err != nil {
			failed++
			if !RequestSent(err) {
				t.Fatalf("it could have been sent again: %v", err)
			}
		}
	}
	close(closing)
	t.Logf("%d of 300 were ambiguous, %+v", failed, tg.Stats())
}

func TestClientClose(t *testing.T) {
	t.Parallel()
	srv := serve(t, listen(t), answering(ok2))
	client := New(Config{Proxy: direct})
	cfg := TargetConfig{BaseURL: srv.url()}
	tg, err := client.Target(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := client.Target(cfg); same != tg {
		t.Error("equal configurations do not share a target")
	}
	resp, err := tg.Do(post("{}"))
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	client.Close()
	if body, err := io.ReadAll(resp); string(body) != "ok" || err != nil {
		t.Errorf("a call in flight was cut: %q %v", body, err)
	}
	resp.Close()
	if _, err := tg.Do(post("{}")); !errors.Is(err, ErrClosed) || !NothingSent(err) {
		t.Errorf("got %v", err)
	}
	if _, err := client.Target(cfg); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if st := tg.Stats(); st.Idle != 0 || st.InUse != 0 {
		t.Errorf("stats %+v", st)
	}
}
