package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A server that stalls once makes late all that were due meanwhile, not only the one
// that it kept; and all come on one connection.
func TestLivenessCountsTheWait(t *testing.T) {
	t.Parallel()
	const stall = 200 * time.Millisecond
	var asked atomic.Int64
	var mu sync.Mutex
	clients := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		clients[r.RemoteAddr+r.URL.Path] = true
		mu.Unlock()
		if asked.Add(1) == 1 {
			time.Sleep(stall)
		}
		io.WriteString(w, `"I'm alive!"`) //nolint:errcheck // the client says what it got
	}))
	defer s.Close()
	l, _ := probeLiveness(t.Context(), strings.TrimPrefix(s.URL, "http://"), 100*time.Millisecond, 5*time.Millisecond)
	if l.requests != 20 || len(l.faults) != 0 || l.max < stall || l.p50 < stall/2 {
		t.Errorf("%+v, want 20 requests of which half waited for the stalled one", l)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(clients) != 1 {
		t.Errorf("connections and paths: %v, want one", clients)
	}
}

// An answer that says no is not a quick answer.
func TestLivenessChecksTheAnswer(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer s.Close()
	l, _ := probeLiveness(t.Context(), strings.TrimPrefix(s.URL, "http://"), 20*time.Millisecond, 10*time.Millisecond)
	if len(l.faults) != 1 || l.p50 != 0 {
		t.Errorf("%+v, want a fault and no latency", l)
	}
	if l, _ := probeLiveness(t.Context(), "localhost:1", time.Millisecond, time.Millisecond); len(l.faults) != 1 {
		t.Errorf("%+v for an address without a number, want a fault", l)
	}
}
