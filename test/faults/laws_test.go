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

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/test/load"
	"github.com/penstock-gateway/penstock/test/stack"
)

// cents are models whose hold is 0.03 USD for load's prompt "Hello!" and an output cap
// of 91, and whose cost is the same for a client that stays; "cents-pace-4ms" sets the
// provider's pace.
const cents = `- model_name: "cents-*"
  litellm_params: {model: "openai/fake-in-9-out-91-*", input_cost_per_token: 300000e-9, output_cost_per_token: 300000e-9, api_base: "%s/v1", api_key: sk-fake}
  model_info: {base_model: gpt-4o, max_output_tokens: 4096}
`

const centsHold = 30_000_000

// witness has PostgreSQL itself look at every version of every budget's row: no
// moment is missed, as it would be by asking.
const witness = `
CREATE TABLE breaches (row text);
CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF NEW.spent - NEW.overrun + NEW.leased > NEW.limit_n THEN INSERT INTO breaches VALUES (row_to_json(NEW)::text); END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER INSERT OR UPDATE ON budgets FOR EACH ROW EXECUTE FUNCTION witness()`

// start starts a pod with the models above, and the witness with the first one.
func start(ctx context.Context, t *testing.T, cfg stack.Config) *stack.Stack {
	t.Helper()
	cfg.BinDir, cfg.Models = bin, cents
	s, err := stack.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Logs())
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	if cfg.Beside == nil {
		if _, err := s.Query(ctx, witness); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func newKey(ctx context.Context, t *testing.T, s *stack.Stack, budget float64) string {
	t.Helper()
	key, err := s.NewKey(ctx, stack.KeyOptions{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ask(key, model string, stream bool) *load.Request {
	return load.Chat(load.ChatOptions{Key: key, Model: model, Prompt: "Hello!", MaxTokens: 91, Stream: stream})
}

// clients are what answers were seen, over all connections.
type clients struct {
	mu    sync.Mutex
	whole map[string]bool
	kinds map[string]int
}

func newClients() *clients { return &clients{whole: map[string]bool{}, kinds: map[string]int{}} }

func (c *clients) note(a *load.Answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.kinds["gone"]++
	case a.Fault() == "":
		c.kinds["whole"]++
		c.whole[a.RequestID] = true
	default:
		c.kinds[fmt.Sprint(a.Status, " ", errorCode(a.Body))]++
	}
}

func (c *clients) seen(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[kind]
}

// until polls.
func until(ctx context.Context, t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal("it does not come about: ", ctx.Err())
		case <-tick.C:
		}
	}
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

// errorCode is the code of an error's envelope.
func errorCode(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	return code
}

// sortedOut waits until all of a key's money is settled, and compares the clients, the
// provider, the records and the budget of the only key that was used.
func sortedOut(ctx context.Context, t *testing.T, s *stack.Stack, key string, c *clients) stack.Budget {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	served, err := s.FakeLedger(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AwaitRecords(ctx, key, len(served)); err != nil {
		t.Error(err)
	}
	budget, err := s.AwaitQuiet(ctx, key)
	if err != nil {
		t.Error(err)
	}
	records, err := s.Records(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	byID, sum, kinds := once(t, records), int64(0), map[store.Status]int{}
	for _, r := range byID {
		sum += r.Cost
		kinds[r.Status]++
	}
	t.Logf("%d dispatches, records %v, clients %v, %+v", len(served), kinds, c.kinds, budget)
	for _, e := range served {
		if byID[e.RequestID] == nil {
			t.Errorf("a dispatch has no record: %+v", e)
		}
	}
	for id := range c.whole {
		if r := byID[id]; r == nil || r.Status != store.StatusSuccess || r.Cost != centsHold {
			t.Errorf("the whole answer %s has the record %+v", id, r)
		}
	}
	if budget.Spent != sum || budget.Overrun != 0 || budget.Lost != 0 || budget.Spent > budget.Limit {
		t.Errorf("records cost %d, the budget says %+v", sum, budget)
	}
	if out, err := s.Query(ctx, "SELECT count(*), min(row) FROM breaches"); err != nil || out != "0|" {
		t.Errorf("spent − overrun + leased was above the limit: %s %v", out, err)
	}
	return budget
}

// TestBudgetEndOverTwoPods is law 2 where it is hardest: two pods of two workers spend
// the last of one budget, half of the clients hang up, and workers and collectors are
// killed in between. Nothing is overspent, nothing stays held, and what is left is less
// than one hold.
func TestBudgetEndOverTwoPods(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a := start(ctx, t, stack.Config{Workers: 2})
	b := start(ctx, t, stack.Config{Workers: 2, Beside: a})
	pods := []*stack.Stack{a, b}
	random := rand.New(rand.NewPCG(seed(t), 2))
	key, c := newKey(ctx, t, a, 12), newClients()
	spending, stop := context.WithCancel(ctx)
	defer stop()
	var wait sync.WaitGroup
	for i := range 32 {
		r := rand.New(rand.NewPCG(random.Uint64(), 0))
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
	sortedOut(ctx, t, a, key, c)
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
	if left := sortedOut(ctx, t, a, key, c); left.Limit-left.Spent >= centsHold {
		t.Errorf("a hold still fits, and was refused: %+v", left)
	}
}

// TestWorkerThatSleeps is law 2 and 3 for a worker that is stopped for longer than its
// ttl: its money is charged as lost, never freed, since it may still spend it; when it
// wakes up, every answer is finished and booked, and the charge is undone.
func TestWorkerThatSleeps(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := start(ctx, t, stack.Config{Workers: 2, CollectorArgs: []string{"--ttl", "3s"}})
	key, c := newKey(ctx, t, s, 30), newClients()
	const streams = 16
	spending, stop := context.WithCancel(ctx)
	defer stop()
	var wait sync.WaitGroup
	wait.Go(func() {
		load.Run(spending, load.Config{
			Address: s.Address(), Concurrency: streams, Requests: []*load.Request{ask(key, "cents-pace-4ms", true), ask(key, "cents-slow-100ms", false)},
			Done: func(_ int64, a *load.Answer, err error) { c.note(a, err) },
		})
	})
	until(ctx, t, func() bool { return c.seen("whole") > 2*streams })
	pid, err := s.Signal(ctx, stack.Worker, syscall.SIGSTOP)
	if err != nil {
		t.Fatal(err)
	}
	until(ctx, t, func() bool {
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
	sortedOut(ctx, t, s, key, c)
	if c.seen("gone") > 0 {
		t.Errorf("answers were cut off: %v", c.kinds)
	}
}

// TestStopCutsNoStream is law 9, and law 1 with it: a gateway that is told to stop ends
// 64 streams and answers whole, and all of their records are in.
func TestStopCutsNoStream(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := start(ctx, t, stack.Config{Workers: 2})
	key, c := newKey(ctx, t, s, 100), newClients()
	const inFlight = 64
	var wait sync.WaitGroup
	wait.Go(func() {
		load.Run(ctx, load.Config{
			Address: s.Address(), Concurrency: inFlight, Total: inFlight,
			Requests: []*load.Request{ask(key, "cents-pace-20ms", true), ask(key, "cents-slow-2s", false)},
			Done:     func(_ int64, a *load.Answer, err error) { c.note(a, err) },
		})
	})
	until(ctx, t, func() bool {
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
	sortedOut(ctx, t, s, key, c)
}

// TestQuietPath is law 6 for a key with a budget: grants become rare, not one for every
// few requests, each of which would wait for the database.
func TestQuietPath(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := start(ctx, t, stack.Config{})
	key, c := newKey(ctx, t, s, 100_000), newClients()
	const requests = 3000
	result := load.Run(ctx, load.Config{
		Address: s.Address(), Total: requests, Requests: []*load.Request{ask(key, "cents-x", false), ask(key, "cents-x", true)},
		Done: func(_ int64, a *load.Answer, err error) { c.note(a, err) },
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
	sortedOut(ctx, t, s, key, c)
}

// TestLoweredLimit: a limit that is lowered far below what was spent counts within a
// second, though a busy worker has money at hand that a slow one would use for hours.
func TestLoweredLimit(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := start(ctx, t, stack.Config{Workers: 2})
	key, c := newKey(ctx, t, s, 100_000), newClients()
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
