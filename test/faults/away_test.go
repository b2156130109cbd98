package faults

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/test/load"
	"github.com/penstock-gateway/penstock/test/stack"
)

// refusal is what a single request gets.
type refusal struct {
	status     int
	code       string
	retryAfter string
}

// probe sends one request outside of the load.
func probe(ctx context.Context, t *testing.T, s *stack.Stack, key string) refusal {
	t.Helper()
	body := `{"model":"cents-x","messages":[{"role":"user","content":"Hello!"}],"max_tokens":91}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.Address()+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return refusal{status: resp.StatusCode, code: errorCode(text), retryAfter: resp.Header.Get("Retry-After")}
}

// twoKeys are a key with a budget, which needs the database from time to time, and one
// without, which does not once it is known.
type twoKeys struct {
	budgeted, free   string
	spending, rest   *clients
	stopOne, stopTwo func()
}

// serving has clients send with both keys until each is known.
func serving(ctx context.Context, t *testing.T, s *stack.Stack) *twoKeys {
	t.Helper()
	k := &twoKeys{budgeted: newKey(ctx, t, s, 100_000), free: newKey(ctx, t, s, 0), spending: centsClients(), rest: centsClients()}
	pods := []*stack.Stack{s}
	requests := func(key string) []*load.Request {
		return []*load.Request{ask(key, "cents-slow-20ms", false), ask(key, "cents-pace-1ms", true)}
	}
	k.stopOne, k.stopTwo = sending(ctx, pods, k.spending, requests(k.budgeted)), sending(ctx, pods, k.rest, requests(k.free))
	k.served(ctx, t)
	return k
}

// served waits until both keys are served, again or still.
func (k *twoKeys) served(ctx context.Context, t *testing.T) {
	t.Helper()
	one, two := k.spending.seen("whole")+4*connections, k.rest.seen("whole")+4*connections
	until(ctx, t, func() bool { return k.spending.seen("whole") >= one && k.rest.seen("whole") >= two })
}

// end stops the clients and compares everything. No worker died, so that all is exact.
func (k *twoKeys) end(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	k.stopOne()
	k.stopTwo()
	k.spending.only(t, "whole", "503 ledger_unavailable")
	k.rest.only(t, "whole")
	all := centsClients()
	for _, c := range []*clients{k.spending, k.rest} {
		for id := range c.answers() {
			all.whole[id] = true
		}
		for kind, n := range c.kinds {
			all.kinds[kind] += n
		}
	}
	if _, found := sortedOut(ctx, t, s, all, k.budgeted, k.free); found.Exact != found.Dispatches {
		t.Errorf("no worker died, and not all is exact: %s", found)
	}
}

// TestDatabaseAway: while the database is away a key with a budget is served from what
// is leased, and from then on refused with 503 and a time; a key without one is served
// all the time; a key that nobody knows yet gets 503, and none ever 401. When it is back,
// everything is committed once.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	for _, name := range []stack.Process{stack.Postgres, stack.PgBouncer} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			ctx := bounded(t)
			s := start(ctx, t, stack.Config{Workers: 2, CollectorArgs: []string{"--ttl", "5s"}})
			unknown := newKey(ctx, t, s, 0)
			k := serving(ctx, t, s)
			if err := s.Kill9(ctx, name); err != nil {
				t.Fatal(err)
			}
			before := k.spending.seen("whole")
			until(ctx, t, func() bool { return k.spending.seen("503 ledger_unavailable") > 0 })
			t.Logf("%d requests were served from leases with %s away", k.spending.seen("whole")-before, name)
			for _, key := range []string{unknown, "sk-nobody-has-made-this-one"} {
				if got := probe(ctx, t, s, key); got.status != 503 || got.code != "ledger_unavailable" || got.retryAfter == "" {
					t.Errorf("a key that is not known gets %+v", got)
				}
			}
			// Beyond the ttl nothing of the budget is served, and the other key is.
			next := k.rest.seen("whole") + 4*connections
			until(ctx, t, func() bool { return k.spending.refused(3*connections) && k.rest.seen("whole") >= next })
			if got := probe(ctx, t, s, k.budgeted); got.status != 503 || got.code != "ledger_unavailable" || got.retryAfter == "" {
				t.Errorf("a key whose money cannot be leased gets %+v", got)
			}
			if err := s.Restart(ctx, name); err != nil {
				t.Fatal(err)
			}
			k.served(ctx, t)
			k.end(ctx, t, s)
			if got := probe(ctx, t, s, "sk-nobody-has-made-this-one"); got.status != 401 {
				t.Errorf("a key that does not exist gets %+v", got)
			}
		})
	}
}

// TestConnectionsCut: a firewall, or a proxy on the way, ends every connection to the
// database at once, time and again. Nobody but the collector sees it.
func TestConnectionsCut(t *testing.T) {
	t.Parallel()
	ctx, random := bounded(t), source(t)
	s := start(ctx, t, stack.Config{Workers: 2, Relayed: true})
	k := serving(ctx, t, s)
	for range scaled().acks {
		next := k.spending.all() + 20 + random.IntN(100)
		until(ctx, t, func() bool { return k.spending.all() >= next })
		s.Relay().Cut()
	}
	k.served(ctx, t)
	k.end(ctx, t, s)
}

// TestFailover: the connections are cut, and behind the database's name is another
// server, which does not take writes from the first moment on. No commit that was
// answered is missing on it.
func TestFailover(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	s := start(ctx, t, stack.Config{Workers: 2, Relayed: true})
	standby, err := s.Standby(ctx)
	if err != nil {
		t.Fatal(err)
	}
	k := serving(ctx, t, s)
	if err := s.Failover(ctx, standby); err != nil {
		t.Fatal(err)
	}
	k.served(ctx, t)
	k.end(ctx, t, s)
}
