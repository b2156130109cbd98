package faults

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/test/load"
	"github.com/penstock-gateway/penstock/test/stack"
)

func ask(key, model string, stream bool) *load.Request {
	return load.Chat(load.ChatOptions{Key: key, Model: model, Prompt: "Hello!", MaxTokens: 91, Stream: stream})
}

// spendAndLeave sends until ctx ends; every other time it hangs up early.
func spendAndLeave(ctx context.Context, address, key string, random *rand.Rand, c *clients) {
	conn := load.Dial(address)
	defer conn.Close()
	for ctx.Err() == nil {
		model := []string{"cents-pace-4ms", "cents-slow-100ms"}[random.IntN(2)]
		stream := random.IntN(2) == 0
		if random.IntN(2) == 0 {
			hangUp(ctx, address, key, model, stream, time.Duration(random.IntN(300))*time.Millisecond)
			continue
		}
		a, err := conn.Do(ask(key, model, stream), 0)
		c.note(&a, err)
		if a.Fault() != "" {
			time.Sleep(10 * time.Millisecond) // as real clients do
		}
	}
}

// hangUp sends a request and closes the connection after a time, answered or not.
func hangUp(ctx context.Context, address, key, model string, stream bool, after time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"Hello!"}],"max_tokens":91,"stream":%v}`, model, stream)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // it left, or was cut off
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}

// TestBudgetEndOverTwoPods is law 2 where it is hardest: two pods of two workers spend
// the last of one budget, half of the clients hang up, and workers and collectors are
// killed in between. Nothing is overspent, nothing stays held, and what is left is less
// than one hold.
func TestBudgetEndOverTwoPods(t *testing.T) {
	t.Parallel()
	ctx, random := bounded(t), source(t)
	pods := startPods(ctx, t, 2, stack.Config{Workers: 2})
	a := pods[0]
	key, c := newKey(ctx, t, a, 12), centsClients()
	spending, stop := context.WithCancel(ctx)
	defer stop()
	var wait sync.WaitGroup
	for i := range 32 {
		r := fork(random)
		wait.Go(func() { spendAndLeave(spending, pods[i%2].Address(), key, r, c) })
	}
	for next := 0; c.seen("429 budget_exceeded") < 50; {
		next += 10 + random.IntN(40)
		until(ctx, t, func() bool { return c.seen("whole") >= next || c.seen("429 budget_exceeded") >= 50 })
		name := []stack.Process{stack.Worker, stack.Worker, stack.Collector}[random.IntN(3)]
		if err := pods[random.IntN(2)].Kill9(ctx, name); err != nil {
			t.Error(err)
		}
	}
	stop()
	wait.Wait()
	sortedOut(ctx, t, a, c, key)
	// Now nobody is in the way: one after the other, up to the last hold.
	conn := load.Dial(a.Address())
	defer conn.Close()
	for ctx.Err() == nil {
		answer, err := conn.Do(ask(key, "cents-x", false), 0)
		c.note(&answer, err)
		if err == nil && errorCode(answer.Body) == "budget_exceeded" {
			break
		}
	}
	books, _ := sortedOut(ctx, t, a, c, key)
	if left := books.Keys[0].Budget; left.Limit-left.Spent >= centsHold {
		t.Errorf("a hold still fits, and was refused: %+v", left)
	}
}

// TestWorkerThatSleeps is law 2 and 3 for a worker that is stopped for longer than its
// ttl: its money is charged as lost, never freed, since it may still spend it; when it
// wakes up, every answer is finished and booked, and the charge is undone.
func TestWorkerThatSleeps(t *testing.T) {
	ctx := bounded(t)
	s := start(ctx, t, stack.Config{Workers: 2, CollectorArgs: []string{"--ttl", "3s"}})
	key, c := newKey(ctx, t, s, 30), centsClients()
	const streams = 16
	spending, stop := context.WithCancel(ctx)
	defer stop()
	var wait sync.WaitGroup
	wait.Go(func() {
		load.Run(spending, load.Config{
			Address: s.Address(), Concurrency: streams, Requests: []*load.Request{ask(key, "cents-pace-4ms", true), ask(key, "cents-slow-100ms", false)},
			Done: c.noted,
		})
	})
	until(ctx, t, func() bool { return c.seen("whole") > 2*streams })
	pid, err := s.Signal(ctx, stack.Worker, syscall.SIGSTOP)
	if err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, func() bool {
		budget, err := s.Budget(ctx, key)
		return err == nil && budget.Lost > 0
	})
	before := c.seen("whole")
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, func() bool { return c.seen("whole") > before+2*streams || c.seen("429 budget_exceeded") > 0 })
	stop()
	wait.Wait()
	sortedOut(ctx, t, s, c, key)
	if c.seen("gone") > 0 {
		t.Errorf("answers were cut off: %v", c.kinds)
	}
}

// TestStopCutsNoStream is law 9, and law 1 with it: a gateway that is told to stop ends
// 64 streams and answers whole, and all of their records are in.
func TestStopCutsNoStream(t *testing.T) {
	ctx := bounded(t)
	s := start(ctx, t, stack.Config{Workers: 2})
	key, c := newKey(ctx, t, s, 100), centsClients()
	const inFlight = 64
	var wait sync.WaitGroup
	wait.Go(func() {
		load.Run(ctx, load.Config{
			Address: s.Address(), Concurrency: inFlight, Total: inFlight,
			Requests: []*load.Request{ask(key, "cents-pace-20ms", true), ask(key, "cents-slow-2s", false)},
			Done:     func(_ int64, a *load.Answer, err error) { c.note(a, err) },
		})
	})
	eventually(ctx, t, func() bool {
		sum, err := s.FakeSummary(ctx)
		return err == nil && sum.InFlight == inFlight
	})
	if _, err := s.Signal(ctx, stack.Gateway, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	if len(c.whole) != inFlight {
		t.Errorf("%d of %d answers were whole: %v", len(c.whole), inFlight, c.kinds)
	}
	// What was started in its place is there before it is told to stop in turn: a program
	// that has not come to its first line yet ends by the signal itself.
	until(ctx, t, func() bool {
		resp, err := http.Get("http://" + s.Address() + "/health/liveliness")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	sortedOut(ctx, t, s, c, key)
}

// TestQuietPath is law 6 for a key with a budget: grants become rare, not one for every
// few requests, each of which would wait for the database.
func TestQuietPath(t *testing.T) {
	ctx := bounded(t)
	s := start(ctx, t, stack.Config{})
	key, c := newKey(ctx, t, s, 100_000), centsClients()
	const requests = 3000
	result := load.Run(ctx, load.Config{
		Address: s.Address(), Total: requests, Requests: []*load.Request{ask(key, "cents-x", false), ask(key, "cents-x", true)},
		Done: c.noted,
	})
	out, err := s.Query(ctx, "SELECT sum(grant_seq) FROM holders")
	if err != nil {
		t.Fatal(err)
	}
	var grants int
	if _, err := fmt.Sscan(out, &grants); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d grants for %d requests in %s", grants, requests, result.Elapsed)
	// Leases double from nine holds to two seconds' worth; then one in two seconds.
	if most := 12 + int(result.Elapsed.Seconds()); result.OK != requests || grants > most {
		t.Errorf("%d of %d were served, with %d grants; want at most %d", result.OK, requests, grants, most)
	}
	sortedOut(ctx, t, s, c, key)
}

// TestLoweredLimit: a limit that is lowered far below what was spent counts within a
// second, though a busy worker has money at hand that a slow one would use for hours.
func TestLoweredLimit(t *testing.T) {
	ctx := bounded(t)
	s := start(ctx, t, stack.Config{Workers: 2})
	key, c := newKey(ctx, t, s, 100_000), centsClients()
	requests := []*load.Request{ask(key, "cents-x", false)}
	note := func(_ int64, a *load.Answer, err error) { c.note(a, err) }
	load.Run(ctx, load.Config{Address: s.Address(), Concurrency: 16, Total: 5000, Requests: requests, Done: note})
	if err := s.Admin(ctx, "/key/update", map[string]any{"key": key, "max_budget": 0.01}); err != nil {
		t.Fatal(err)
	}
	lowered := time.Now()
	slow, stop := context.WithCancel(ctx)
	defer stop()
	load.Run(slow, load.Config{Address: s.Address(), Rate: 50, Requests: requests, Done: func(n int64, a *load.Answer, err error) {
		note(n, a, err)
		if c.seen("429 budget_exceeded") >= 10 {
			stop()
		}
	}})
	if took := time.Since(lowered); took > 2*time.Second {
		t.Errorf("requests were served until %s after the limit was lowered", took)
	}
	budget, err := s.AwaitQuiet(ctx, key)
	if want := int64(c.seen("whole")) * centsHold; err != nil || budget.Spent != want || budget.Overrun != 0 {
		t.Errorf("%+v %v, want spent %d", budget, err, want)
	}
}
