package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/penstock-gateway/penstock/test/load"
	"github.com/penstock-gateway/penstock/test/stack"
)

// killStorm kills one process after the other while clients send, and counts.
type killStorm struct {
	pods   []*stack.Stack
	c      *clients
	random *rand.Rand
	killed map[stack.Process]int
}

// between waits until about n requests were served.
func (k *killStorm) between(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	next := k.c.seen("whole") + n/2 + k.random.IntN(n)
	until(ctx, t, func() bool { return k.c.seen("whole") >= next })
}

// outage waits until about n requests have ended, answered or not.
func (k *killStorm) outage(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	next := k.c.all() + n/2 + k.random.IntN(n)
	until(ctx, t, func() bool { return k.c.all() >= next })
}

// inOutage is how many requests end before what is away comes back.
const inOutage = 40

// kill kills one process; the database and PgBouncer stay away until some more requests
// have ended, in which every third time something else dies too.
func (k *killStorm) kill(ctx context.Context, t *testing.T, name stack.Process) {
	t.Helper()
	s := k.pods[k.random.IntN(len(k.pods))]
	k.killed[name]++
	if err := s.Kill9(ctx, name); err != nil {
		t.Errorf("kill -9 of %s: %v", name, err)
	}
	if name != stack.Postgres && name != stack.PgBouncer {
		return
	}
	k.outage(ctx, t, inOutage)
	if k.random.IntN(3) == 0 {
		k.kill(ctx, t, [...]stack.Process{stack.Worker, stack.Collector}[k.random.IntN(2)])
		k.outage(ctx, t, inOutage)
	}
	if err := s.Restart(ctx, name); err != nil {
		t.Fatalf("restart of %s: %v", name, err)
	}
}

// connections and the pace of the streams keep requests in flight at every moment.
const connections = 24

// mixed are requests short and long, fast and slow, whole and streamed.
func mixed(key string) []*load.Request {
	var all []*load.Request
	for i, model := range []string{"fake", "fake-out-30-pace-2ms", "fake-out-5", "fake-slow-30ms", "fake-out-12-pace-10ms"} {
		for _, stream := range []bool{true, false} {
			all = append(all, load.Chat(load.ChatOptions{
				Key: key, Model: model, Prompt: fmt.Sprintf("How many are %d and %d?", i, i), MaxTokens: 40, Stream: stream, Serial: true,
			}))
		}
	}
	return all
}

// sending has clients of every pod send requests in turn, until stop is called.
func sending(ctx context.Context, pods []*stack.Stack, c *clients, requests []*load.Request) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	for _, s := range pods {
		wait.Go(func() {
			load.Run(ctx, load.Config{Address: s.Address(), Requests: requests, Concurrency: connections / len(pods), Done: c.noted})
		})
	}
	return func() {
		cancel()
		wait.Wait()
	}
}

// TestKillStorm is law 1: every complete answer has exactly one exact record, every
// dispatch in the provider's ledger has exactly one, and what is left over is flagged as
// interrupted; law 3: nothing stays leased.
func TestKillStorm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why           string
		pods, workers int
	}{
		{"the gateway's only process dies too", 1, 1},
		{"two pods of two workers, each with its own PgBouncer", 2, 2},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			ctx, n := bounded(t), scaled()
			k := &killStorm{
				pods: startPods(ctx, t, c.pods, stack.Config{Workers: c.workers}), c: newClients(stack.FakeInput, stack.FakeOutput),
				random: source(t), killed: map[stack.Process]int{},
			}
			key := newKey(ctx, t, k.pods[0], 100_000)
			stop := sending(ctx, k.pods, k.c, mixed(key))
			defer stop()
			order := make([]stack.Process, n.kills)
			for i := range order {
				order[i] = [...]stack.Process{stack.Collector, stack.Worker, stack.PgBouncer, stack.Postgres}[i%4]
			}
			k.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			for _, name := range order {
				k.between(ctx, t, n.perKill)
				k.kill(ctx, t, name)
			}
			k.between(ctx, t, n.perKill)
			stop()
			t.Logf("killed: %v", k.killed)
			_, found := sortedOut(ctx, t, k.pods[0], k.c, key)
			// A kill that interrupts nothing proves nothing.
			if found.Interrupted == 0 {
				t.Error("no request was interrupted: the kills missed the load")
			}
			k.c.only(t, "whole", "gone", "503 ledger_unavailable", "503 overloaded")
		})
	}
}
