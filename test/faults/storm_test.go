package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/test/load"
	"github.com/penstock-gateway/penstock/test/stack"
)

// spendAll is one client of a storm: requests of all sizes, up to the smallest that is
// refused because the money is gone.
func spendAll(ctx context.Context, address, key string, random *rand.Rand, c *clients) {
	conn := load.Dial(address)
	defer conn.Close()
	for most := 90; ctx.Err() == nil; {
		limit := 1 + random.IntN(most)
		a, err := conn.Do(stormRequest(key, limit, random), 0)
		switch kind := c.note(&a, err); {
		case kind == "whole":
		case kind != "429 budget_exceeded":
			time.Sleep(patience)
		case limit == 1:
			return
		default:
			most = max(1, limit/2)
		}
	}
}

// stormRequest holds limit cents and costs that or less.
func stormRequest(key string, limit int, random *rand.Rand) *load.Request {
	tokens := limit
	if random.IntN(2) == 0 {
		tokens = 1 + random.IntN(limit)
	}
	pace := [...]string{"slow-20ms", "slow-60ms", "pace-1ms", "pace-3ms"}[random.IntN(4)]
	return load.Chat(load.ChatOptions{
		Key: key, Model: fmt.Sprintf("storm-out-%d-%s", tokens, pace), Prompt: "Hello!", MaxTokens: limit, Stream: random.IntN(2) == 0,
	})
}

// storm has every pod's clients spend one budget to its end, and returns what was found.
func storm(ctx context.Context, t *testing.T, pods []*stack.Stack, random *rand.Rand, dollars float64, during func(c *clients, key string, over <-chan struct{})) *stack.Comparison {
	t.Helper()
	n := scaled()
	key, c := newKey(ctx, t, pods[0], dollars), newClients(stormInput, stormOutput)
	began, over := time.Now(), make(chan struct{})
	var wait sync.WaitGroup
	for _, s := range pods {
		for range n.workers * n.parallel {
			r := fork(random)
			wait.Go(func() { spendAll(ctx, s.Address(), key, r, c) })
		}
	}
	go func() {
		wait.Wait()
		close(over)
	}()
	during(c, key, over)
	<-over
	t.Logf("%d pods x %d workers x %d parallel took %.1f s", len(pods), n.workers, n.parallel, time.Since(began).Seconds())
	if ctx.Err() != nil {
		t.Fatal("the budget does not come to its end: ", c.kinds)
	}
	books, found := sortedOut(ctx, t, pods[0], c, key)
	limit, spent := books.Keys[0].Budget.Limit, books.Keys[0].Budget.Spent
	t.Logf("%.4f %% of the budget was used", float64(spent)/float64(limit)*100)
	if spent < limit/100*99 {
		t.Errorf("of %d only %d was used", limit, spent)
	}
	if found.Upstream > limit {
		t.Errorf("the provider's own ledger comes to %d, above the budget of %d", found.Upstream, limit)
	}
	c.only(t, "whole", "gone", "429 budget_exceeded", "429 budget_held", "503 ledger_unavailable")
	return found
}

// TestStormA is law 2 over many pods: the budget is never passed, is used to its last
// cent, and what was spent is what the provider billed, to the nano-dollar.
func TestStormA(t *testing.T) {
	t.Parallel()
	ctx, n := bounded(t), scaled()
	pods := startPods(ctx, t, n.pods, stack.Config{Workers: n.workers})
	found := storm(ctx, t, pods, source(t), n.dollars, func(*clients, string, <-chan struct{}) {})
	if found.Exact != found.Dispatches || found.Recorded != found.Upstream {
		t.Errorf("nobody was killed, and not all is exact: %s", found)
	}
}

// TestStormB is the same while workers and collectors die, whole gateways too, which
// come back with another number of workers: what the provider billed stays within the
// budget, though nobody knows any more what the interrupted requests cost.
func TestStormB(t *testing.T) {
	t.Parallel()
	ctx, n := bounded(t), scaled()
	random := source(t)
	pods := startPods(ctx, t, n.pods, stack.Config{Workers: n.workers + 1})
	kills := map[string]int{}
	found := storm(ctx, t, pods, random, 2*n.dollars, func(c *clients, _ string, over <-chan struct{}) {
		for next := 0; ; {
			next += 10 + random.IntN(40)
			if !served(ctx, c, next, over) {
				return
			}
			what, err := killSome(ctx, pods[random.IntN(len(pods))], random, n.workers)
			kills[what]++
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	t.Logf("kills: %v", kills)
	if found.Interrupted == 0 {
		t.Error("no request was interrupted: the kills missed the load")
	}
}

// served waits until so many requests were; false: over came first. Refusals do not
// count: while pods are down they come fast, and kills would follow kills for ever.
func served(ctx context.Context, c *clients, n int, over <-chan struct{}) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for c.seen("whole") < n {
		select {
		case <-over:
			return false
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// killSome kills a worker, the collector, or the whole gateway.
func killSome(ctx context.Context, s *stack.Stack, random *rand.Rand, workers int) (what string, err error) {
	switch n := random.IntN(8); {
	case n < 4:
		return "worker", s.Kill9(ctx, stack.Worker)
	case n < 7:
		return "collector", s.Kill9(ctx, stack.Collector)
	default:
		return "gateway", s.Resize(ctx, workers+random.IntN(2))
	}
}
