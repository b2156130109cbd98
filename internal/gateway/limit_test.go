package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/store"
)

// limited makes a key with these settings.
func (s *stack) limited(settings string) string {
	s.t.Helper()
	return s.newKey("", func(k *store.Key) { k.SettingsJSON = settings })
}

func TestRequestsPerMinute(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.limited(`{"rpm_limit":3}`)
	for i := range 3 {
		a := s.chat(key, hello)
		if a.status != http.StatusOK {
			t.Fatalf("request %d of 3: %d %s", i+1, a.status, a.body)
		}
		if limit := a.header.Get("x-ratelimit-limit-requests"); limit != "3" {
			t.Errorf("the limit is told as %q, want 3", limit)
		}
		if left, err := strconv.Atoi(a.header.Get("x-ratelimit-remaining-requests")); err != nil || left < 0 || left > 2-i {
			t.Errorf("after request %d %q are told to remain, want %d at most", i+1, a.header.Get("x-ratelimit-remaining-requests"), 2-i)
		}
	}
	a := s.chat(key, hello)
	after, err := strconv.Atoi(a.header.Get("Retry-After"))
	if a.status != http.StatusTooManyRequests || a.code() != "rate_limit_exceeded" || err != nil || after < 1 || after > 61 {
		t.Errorf("a fourth request: %d %s, Retry-After %q", a.status, a.body, a.header.Get("Retry-After"))
	}
	s.records(key, 3)
	if other := s.limited(`{"rpm_limit":3}`); s.chat(other, hello).status != http.StatusOK {
		t.Error("another key shares the limit")
	}
}

// What a request was charged for is corrected to what it took.
func TestTokensPerMinute(t *testing.T) {
	t.Parallel()
	s := setup(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`)
	}))
	key := s.limited(`{"tpm_limit":250}`)
	with := func(limit string) string { return strings.Replace(hello, `"max_tokens":16`, `"max_tokens":`+limit, 1) }
	for i := range 2 {
		if a := s.chat(key, with("91")); a.status != http.StatusOK { // charged 100; the answer takes 10
			t.Fatalf("request %d: %d %s", i+1, a.status, a.body)
		}
	}
	if a := s.chat(key, with("200")); a.status != http.StatusTooManyRequests || a.code() != "rate_limit_exceeded" || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s, Retry-After %q, want rate_limit_exceeded with a time", a.status, a.body, a.header.Get("Retry-After"))
	}
	s.eventually(func() bool { return s.chat(key, with("91")).status == http.StatusOK }, "the charge of the first two is corrected")
	if a := s.chat(key, with("900")); a.status != http.StatusTooManyRequests || a.header.Get("x-should-retry") != "false" {
		t.Errorf("a request above the limit by itself: %d %s, x-should-retry %q", a.status, a.body, a.header.Get("x-should-retry"))
	}
}

// A slot is free again when its request ends, however it ends.
func TestParallelRequests(t *testing.T) {
	t.Parallel()
	gate, arrived := make(chan struct{}), make(chan struct{}, 8)
	s := setup(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "wait") {
			arrived <- struct{}{}
			<-gate
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`)
	}))
	key := s.limited(`{"max_parallel_requests":1}`)
	slow := make(chan answer, 1)
	go func() { slow <- s.chat(key, strings.Replace(hello, "Hello!", "wait", 1)) }()
	<-arrived
	if a := s.chat(key, hello); a.status != http.StatusTooManyRequests || a.code() != "rate_limit_exceeded" {
		t.Errorf("beside one in flight: %d %s", a.status, a.body)
	}
	close(gate)
	if a := <-slow; a.status != http.StatusOK {
		t.Errorf("the one in flight: %d %s", a.status, a.body)
	}
	for range 3 {
		if a := s.chat(key, hello); a.status != http.StatusOK {
			t.Errorf("one after the other: %d %s", a.status, a.body)
		}
		s.chat(key, strings.Replace(hello, "m-o", "none", 1)) // refused before it is sent
	}
}
