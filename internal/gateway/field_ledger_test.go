package gateway_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// TestLedgerAway: while the collector is away, a key that is known works from leased
// money, an unknown one is 503 and never 401, and what was served is booked exactly once
// when it is back.
func TestLedgerAway(t *testing.T) {
	t.Parallel()
	c := build(t, plan{})
	key, free, later := c.newKey("10", nil), c.newKey("", nil), c.newKey("", nil)
	c.hearChanges()
	small := strings.Replace(b1, "91", "1", 1) // 10 tokens
	served := 0
	for range 50 { // makes a lease of many holds
		if a := c.chat(key, small); a.status == 200 {
			served++
		}
	}
	if a := c.chat(free, small); a.status != 200 {
		t.Fatalf("got %d", a.status)
	}
	c.records(key, served)
	c.stop()
	away := 0
	for range 5 {
		if a := c.chat(key, small); a.status == 200 {
			away++
		} else if a.code() != "ledger_unavailable" {
			t.Errorf("leased money: got %d %s", a.status, a.body)
		}
		if a := c.chat(free, small); a.status != 200 {
			t.Errorf("a key without a budget: got %d %s", a.status, a.body)
		}
	}
	if away == 0 {
		t.Error("leased money was of no use")
	}
	for _, secret := range []string{later, "sk-nobody-knows"} {
		if a := c.chat(secret, small); a.status != 503 || a.code() != "ledger_unavailable" || a.header.Get("Retry-After") == "" {
			t.Errorf("a key that cannot be checked: got %d %v %s", a.status, a.header, a.body)
		}
	}
	if a := c.chat(masterKey, small); a.status != 200 {
		t.Errorf("the master key: got %d", a.status)
	}
	if a := c.do("GET", "/key/list", masterKey, ""); a.status != 503 || a.code() != "ledger_unavailable" {
		t.Errorf("the admin API: got %d %s", a.status, a.body)
	}
	if a := c.do("GET", "/health/readiness", "", ""); a.status != 200 {
		t.Errorf("readiness: got %d", a.status)
	}
	c.collect()
	c.eventually(func() bool { return c.chat(later, small).status == 200 }, "the other key works")
	c.eventually(func() bool { return c.chat("sk-nobody-knows", small).status == 401 }, "the unknown key is unknown")
	spent := int64(0)
	for _, rec := range c.records(key, served+away) {
		spent += rec.Cost
	}
	c.records(free, 6)
	if n := c.fake.Summary().Served; n != int64(served+away+6+1)+int64(len(c.records(later, 1))) {
		t.Errorf("the provider served %d", n)
	}
	c.eventually(func() bool {
		k, err := c.store.Key(t.Context(), keyID(key))
		check(t, err)
		return k.Spend == spent
	}, "spend of the key")
}

// TestJournalFull: with nowhere to write a request down, none is sent.
func TestJournalFull(t *testing.T) {
	t.Parallel()
	c := build(t, plan{})
	c.stop()
	tag := `"` + strings.Repeat("t", 250) + `"`
	body := `{"model":"canned","messages":[{"role":"user","content":"Hello!"}],"tags":[` + strings.Repeat(tag+",", 31) + tag + `]}`
	var full answer
	var mu sync.Mutex
	served := 0
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			w := c.wire()
			for range 5000 {
				check(t, w.conn.SetDeadline(time.Now().Add(20*time.Second))) // each answer's own: thousands share a connection
				a := w.send("%s", post(masterKey, body)).answer()
				mu.Lock()
				if a.status == 200 {
					served++
				} else {
					full = a
				}
				done := full.status != 0
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	wait.Wait()
	if full.status != http.StatusServiceUnavailable || full.code() != "ledger_unavailable" || full.header.Get("Retry-After") == "" {
		t.Fatalf("got %d %s after %d", full.status, full.body, served)
	}
	for c.chat(masterKey, hello).status == 200 { // shorter entries still find room
		served++
	}
	calls := c.fake.Summary().Requests
	if a := c.chat(masterKey, hello); a.status != 503 || c.fake.Summary().Requests != calls {
		t.Errorf("got %d, %d more calls of the provider", a.status, c.fake.Summary().Requests-calls)
	}
	if a := c.do("GET", "/health/liveliness", "", ""); a.status != 200 {
		t.Errorf("health: %d", a.status)
	}
	c.collect()
	c.eventually(func() bool { return c.chat(masterKey, hello).status == 200 }, "served again")
	n := 0
	for deadline := time.Now().Add(time.Minute); n < served+1 && time.Now().Before(deadline); n = c.countRecords("master") {
		time.Sleep(200 * time.Millisecond) // a look reads them all
	}
	if n != served+1 {
		t.Errorf("%d records of %d requests", n, served+1)
	}
}

func (s *stack) countRecords(id string) int {
	rows, err := s.store.Records(s.t.Context(), store.RecordFilter{KeyID: id, Limit: 10_000})
	check(s.t, err)
	return len(rows)
}

// hearChanges waits until the worker has heard that the keys made so far are new: what
// it caches of them from now on is not forgotten again.
func (s *stack) hearChanges() {
	s.t.Helper()
	marker, nothing := s.newKey("", nil), `{"model":"nothing","messages":[{"role":"user","content":"x"}]}`
	s.chat(marker, nothing)
	blocked := true
	if _, err := s.store.UpdateKey(s.t.Context(), keyID(marker), store.KeyPatch{Blocked: &blocked}); err != nil {
		s.t.Fatal(err)
	}
	s.eventually(func() bool { return s.chat(marker, nothing).code() == "blocked_api_key" }, "the worker hears of changes")
}
