package gateway_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// TestManyClientsLeave: 120 clients leave in every way; each has one record, the provider
// hears of each within a second, and nothing stays behind (F13, F14, F15).
func TestManyClientsLeave(t *testing.T) {
	const clients = 120
	var calls, open atomic.Int64
	slowest := atomic.Int64{}
	var arrived, left sync.Map // X-Client-Request-Id is ours: the clients are told apart by their text
	s := setup(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls.Add(1)
		arrived.Store(nameOf(string(body)), true)
		open.Add(1)
		defer open.Add(-1)
		if strings.Contains(string(body), `"stream":true`) && !strings.Contains(string(body), "silent") {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, e := range []string{roleEvent, delta("a "), delta("a ")} {
				_, _ = io.WriteString(w, e)
				w.(http.Flusher).Flush()
			}
		}
		<-r.Context().Done()
		if at, ok := left.Load(nameOf(string(body))); ok {
			d := time.Since(at.(time.Time))
			for old := slowest.Load(); int64(d) > old && !slowest.CompareAndSwap(old, int64(d)); old = slowest.Load() {
			}
		}
	}))
	key := s.newKey("100", func(k *store.Key) { k.Models = nil })
	s.chat(key, strings.Replace(hello, "m-o", "canned", 1))
	var wait sync.WaitGroup
	for i := range clients {
		wait.Go(func() { s.leave(key, i, &arrived, &left) })
	}
	wait.Wait()
	rows := s.records(key, clients+1)
	for _, rec := range rows {
		if rec.Model == "gpt-4o-mini" {
			continue
		}
		if rec.Status != store.StatusClientClosed || !rec.Estimated || rec.Usage.Output > 3 || rec.Usage.Input == 0 {
			t.Errorf("record %+v", rec)
		}
	}
	if n := calls.Load(); n != clients {
		t.Errorf("the provider was called %d times", n)
	}
	s.eventually(func() bool { return open.Load() == 0 }, "no open call")
	if d := time.Duration(slowest.Load()); d > time.Second {
		t.Errorf("the provider heard of one after %s", d)
	}
	s.eventually(func() bool { return !serving() }, "no goroutine that serves")
}

// serving says whether any goroutine is inside of a request. fasthttp keeps its idle
// goroutines for ten seconds, so that their number says nothing.
func serving() bool {
	all := make([]byte, 16<<20)
	all = all[:runtime.Stack(all, true)]
	return bytes.Contains(all, []byte("proxy.(*Proxy).handle(")) || bytes.Contains(all, []byte("proxy.(*stream)"))
}

func nameOf(body string) string {
	_, rest, _ := strings.Cut(body, "client-")
	name, _, _ := strings.Cut(rest, "!")
	return name
}

// leave is one client: streams that have begun, streams that are silent, and whole
// answers, left by FIN and by RST.
func (s *stack) leave(key string, i int, arrived, left *sync.Map) {
	name := string(rune('A'+i%26)) + string(rune('a'+i/26))
	body := strings.Replace(streamBody, "Hello!", "client-"+name+"!", 1)
	switch i % 3 {
	case 1:
		body = strings.Replace(body, "client-", "silent client-", 1)
	case 2:
		body = strings.Replace(body, `,"stream":true`, "", 1)
	}
	conn := s.send(key, body).(*net.TCPConn)
	if i%3 == 0 {
		r := bufio.NewReader(conn)
		for line := ""; !strings.Contains(line, `"a "`); {
			var err error
			if line, err = r.ReadString('\n'); err != nil {
				s.t.Errorf("client %d: %v", i, err)
				return
			}
		}
	} else {
		// One that goes before its request was read has asked for nothing.
		s.eventually(func() bool { _, ok := arrived.Load(name); return ok }, "call %d", i)
		time.Sleep(time.Duration(i) * time.Millisecond) // leave at all moments, not at one
	}
	if i%2 == 0 {
		check(s.t, conn.SetLinger(0))
	}
	left.Store(name, time.Now())
	conn.Close()
}
