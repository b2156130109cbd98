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

// fault is something that happens to the pod while it serves.
type fault struct {
	name string
	do   func(ctx context.Context, s *stack.Stack) error
}

var (
	killCollector = fault{"kill -9 of the collector", killer(stack.Collector)}
	killWorker    = fault{"kill -9 of a worker", killer(stack.Worker)}
	killBoth      = fault{"kill -9 of the collector and a worker", func(ctx context.Context, s *stack.Stack) error {
		if err := killCollector.do(ctx, s); err != nil {
			return err
		}
		return killWorker.do(ctx, s)
	}}
	killPgBouncer = fault{"kill -9 of PgBouncer", outage(stack.PgBouncer)}
	killPostgres  = fault{"a crash of PostgreSQL", outage(stack.Postgres)}
)

func killer(name stack.Process) func(context.Context, *stack.Stack) error {
	return func(ctx context.Context, s *stack.Stack) error { return s.Kill9(ctx, name) }
}

// outageTime is long enough for requests to need what is away.
const outageTime = time.Second

// outage is a kill of what does not start again by itself.
func outage(name stack.Process) func(context.Context, *stack.Stack) error {
	return func(ctx context.Context, s *stack.Stack) error {
		if err := s.Kill9(ctx, name); err != nil {
			return err
		}
		select {
		case <-time.After(outageTime):
		case <-ctx.Done():
		}
		return s.Restart(ctx, name)
	}
}

// plan is the order of the faults; between two of them a random number of requests
// is answered.
type plan struct {
	faults []fault
	random *rand.Rand
}

// connections and the pace of the streams keep requests in flight at every moment.
const connections = 24

// seen is what the clients got.
type seen struct {
	mu       sync.Mutex
	complete map[string]bool // ids of whole answers
	other    map[string]int  // what else came, by kind
	wrong    []string        // what must never come
	answered chan struct{}   // one for each whole answer
}

// attack sends requests until all faults have happened and the pod serves again.
func attack(ctx context.Context, t *testing.T, s *stack.Stack, key string, p plan) *seen {
	t.Helper()
	got := &seen{complete: map[string]bool{}, other: map[string]int{}, answered: make(chan struct{}, 1<<20)}
	loading, stop := context.WithCancel(ctx)
	defer stop()
	var wait sync.WaitGroup
	wait.Go(func() {
		load.Run(loading, load.Config{Address: s.Address(), Requests: requests(key), Concurrency: connections, Done: got.note})
	})
	for _, f := range p.faults {
		got.await(ctx, t, 100+p.random.IntN(300))
		if err := f.do(ctx, s); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
	got.await(ctx, t, 300)
	stop()
	wait.Wait()
	t.Logf("%d whole answers; others: %v", len(got.complete), got.other)
	for _, what := range got.wrong {
		t.Error(what)
	}
	return got
}

// requests are short and long, fast and slow, whole and streamed.
func requests(key string) []*load.Request {
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

// note sorts an answer. A client pauses after a failure, as real ones do.
func (g *seen) note(_ int64, a *load.Answer, err error) {
	if g.sort(a, err) {
		g.answered <- struct{}{}
		return
	}
	time.Sleep(10 * time.Millisecond)
}

func (g *seen) sort(a *load.Answer, err error) (whole bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err != nil:
		g.other["connection lost"]++
	case a.Status == 503:
		g.other["503"]++
	case a.Fault() != "":
		g.wrong = append(g.wrong, fmt.Sprintf("%s: %s", a.Fault(), a.Body))
	case g.complete[a.RequestID]:
		g.wrong = append(g.wrong, "two answers have the id "+a.RequestID)
	default:
		g.complete[a.RequestID] = true
		return true
	}
	return false
}

// await waits until so many more whole answers have come.
func (g *seen) await(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-g.answered:
		case <-ctx.Done():
			t.Fatalf("no answers come any more: %v", g.other)
		}
	}
}
