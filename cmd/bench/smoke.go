package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/test/load"
	"github.com/penstock-gateway/penstock/test/stack"
)

// settleTime bounds how long records may take to stand in the database after the
// last answer.
const settleTime = time.Minute

// The budget of the second part affords 33 of 200 requests.
const (
	parallel = 200
	afforded = 33
)

type smokeOptions struct {
	bin      string
	workers  []int
	requests int64
	inFlight int
	kills    int
}

func newSmoke() *cobra.Command {
	o := &smokeOptions{}
	cmd := &cobra.Command{
		Use:   "smoke",
		Short: "Send requests through the four processes while the collector is killed, and count every one",
		Long: `smoke sends chat requests, streaming and not, to the fake upstream while the
spend-collector is killed with -9, and compares every record with the upstream's own
ledger. Then a key with a budget of 1.00 sends 200 parallel requests of 0.03 each:
exactly 33 are answered. Its exit code says whether all of it was so.`,
		Example: "  bench smoke --bin bin\n  bench smoke --bin bin --workers 2 --requests 2000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := &report{out: cmd.OutOrStdout()}
			for _, workers := range o.workers {
				fmt.Fprintf(r.out, "%d worker(s): starting the processes\n", workers)
				o.run(cmd.Context(), r, workers)
			}
			return r.end()
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.bin, "bin", "bin", "folder of the programs, as 'make build' makes it")
	f.IntSliceVar(&o.workers, "workers", []int{1, 2}, "gateway workers; one run for each number")
	f.Int64Var(&o.requests, "requests", 10_000, "requests of the first part")
	f.IntVar(&o.inFlight, "in-flight", 64, "requests at once")
	f.IntVar(&o.kills, "kills", 3, "how often the collector is killed")
	return cmd
}

func (o *smokeOptions) run(ctx context.Context, r *report, workers int) {
	s, err := stack.Start(ctx, stack.Config{BinDir: o.bin, Workers: workers, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.fail("the processes start", err)
		return
	}
	before := r.failed
	o.load(ctx, r, s)
	o.budget(ctx, r, s)
	o.metrics(ctx, r, s)
	if r.failed > before {
		fmt.Fprintln(r.out, s.Logs())
	}
	if err := s.Stop(); err != nil {
		r.fail("the processes stop", err)
	}
}

// load is the first part: every request is answered and booked once, whatever happens
// to the collector meanwhile.
func (o *smokeOptions) load(ctx context.Context, r *report, s *stack.Stack) {
	key, err := s.NewKey(ctx, stack.KeyOptions{Alias: "smoke", Budget: 100_000})
	if err != nil {
		r.fail("a key is made", err)
		return
	}
	k := &killer{stack: s, every: o.requests / int64(o.kills+1), kills: o.kills, out: r}
	fmt.Fprintf(r.out, "sending %d requests, %d in flight\n", o.requests, o.inFlight)
	result := load.Run(ctx, load.Config{
		Address: s.Address(), Requests: mixedChats(key), Concurrency: o.inFlight, Total: o.requests,
		Done: func(n int64, _ *load.Answer, _ error) { k.progress(ctx, n) },
	})
	fmt.Fprintf(r.out, "sent in %.1f s: %.0f requests/s, p50 %s, p99 %s\n", result.Elapsed.Seconds(), result.PerSecond(),
		milliseconds(result.Percentile(50)), milliseconds(result.Percentile(99)))
	r.check("every request is answered 200, whole", result.OK == o.requests, "%d of %d%s", result.OK, o.requests, faults(result))
	r.check("the collector was killed in between", len(k.errs) == 0 && s.Restarts(stack.Collector) == o.kills,
		"%d times of %d %s", s.Restarts(stack.Collector), o.kills, text(errors.Join(k.errs...)))
	o.compare(ctx, r, s, key)
}

// mixedChats are streams and whole answers of many lengths, with and without usage.
func mixedChats(key string) []*load.Request {
	var all []*load.Request
	for i := range 48 {
		all = append(all, load.Chat(load.ChatOptions{
			Key: key, Model: fmt.Sprintf("fake-out-%d", 1+i), MaxTokens: 64, Serial: true,
			Prompt: prompt(int64(i), 10+5*i), Stream: i%2 == 1, HideUsage: i%4 == 1,
		}))
	}
	return all
}

// killer kills the collector each time so many more requests have ended.
type killer struct {
	stack *stack.Stack
	every int64
	kills int
	out   *report

	mu   sync.Mutex
	done int
	errs []error
}

func (k *killer) progress(ctx context.Context, n int64) {
	if (n+1)%k.every != 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done == k.kills {
		return
	}
	k.done++
	if err := k.stack.Kill9(ctx, stack.Collector); err != nil {
		k.errs = append(k.errs, err)
	}
	fmt.Fprintf(k.out.out, "%d requests: kill -9 of the spend-collector\n", n+1)
}

// budget is the second part: a budget stops at its last whole hold.
func (o *smokeOptions) budget(ctx context.Context, r *report, s *stack.Stack) {
	before, err := s.FakeSummary(ctx)
	if err != nil {
		r.fail("the upstream tells what it saw", err)
		return
	}
	key, err := s.NewKey(ctx, stack.KeyOptions{Alias: "one-dollar", Budget: 1})
	if err != nil {
		r.fail("a key is made", err)
		return
	}
	fmt.Fprintf(r.out, "sending %d requests of 0.03 at once to a budget of 1.00\n", parallel)
	var exceeded atomic.Int64
	result := load.Run(ctx, load.Config{
		Address: s.Address(), Concurrency: parallel, Total: parallel,
		Requests: []*load.Request{threeCents(key, false), threeCents(key, true)},
		Done: func(_ int64, a *load.Answer, _ error) {
			if a != nil && bytes.Contains(a.Body, []byte(`"code":"budget_exceeded"`)) {
				exceeded.Add(1)
			}
		},
	})
	r.check("the budget affords 33 requests", result.OK == afforded && result.Statuses[429] == parallel-afforded,
		"%d answered, %d refused with 429", result.OK, result.Statuses[429])
	r.check("the refusals say that the money is gone, not that it is held", exceeded.Load() == parallel-afforded, "%d say budget_exceeded", exceeded.Load())
	after, err := s.FakeSummary(ctx)
	r.check("the upstream saw no other", err == nil && after.Requests-before.Requests == afforded, "it saw %d %s", after.Requests-before.Requests, text(err))
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	records, err := s.AwaitRecords(ctx, key, afforded)
	b, budgetErr := s.AwaitQuiet(ctx, key)
	r.check("the budget's row agrees", err == nil && budgetErr == nil && len(records) == afforded && b == stack.Budget{Limit: 1e9, Spent: afforded * 30_000_000},
		"%d records, spent %d nano-dollars %s%s", len(records), b.Spent, text(err), text(budgetErr))
}

// metrics is the third part: the sidecar counted what was served, kills or not.
func (o *smokeOptions) metrics(ctx context.Context, r *report, s *stack.Stack) {
	want := o.requests + afforded
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	got, err := s.AwaitCounter(ctx, "penstock_admitted_requests_total", want)
	r.check("the metrics-sidecar counted them", err == nil && got == want, "%d of %d %s", got, want, text(err))
}

func threeCents(key string, stream bool) *load.Request {
	return load.Chat(load.ChatOptions{
		Key: key, Model: stack.ThreeCents, Prompt: stack.ThreeCentsPrompt, MaxTokens: stack.ThreeCentsCap, Stream: stream,
	})
}

// faults tells what was wrong with the answers that were not good.
func faults(result *load.Result) string {
	if len(result.Faults) == 0 {
		return ""
	}
	return fmt.Sprintf("; the others: %v", result.Faults)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000)
}
