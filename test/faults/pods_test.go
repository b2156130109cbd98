package faults

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/test/stack"
)

// models are two families. The hold of "cents-…" is 0.03 USD for load's prompt "Hello!"
// and an output cap of 91, and so is its cost for a client that stays. The hold of
// "storm-out-…" is its output cap in cents, and a little for the prompt. Further words
// set the provider's pace.
const models = `- model_name: "cents-*"
  litellm_params: {model: "openai/fake-in-9-out-91-*", input_cost_per_token: 300000e-9, output_cost_per_token: 300000e-9, api_base: "%[1]s/v1", api_key: sk-fake}
  model_info: {base_model: gpt-4o, max_output_tokens: 4096}
- model_name: "storm-*"
  litellm_params: {model: "openai/fake-in-9-*", input_cost_per_token: 1000e-9, output_cost_per_token: 10000000e-9, api_base: "%[1]s/v1", api_key: sk-fake}
  model_info: {base_model: gpt-4o, max_output_tokens: 4096}
`

// Prices of the two families in nano-dollars per token, and what follows of them.
const (
	centsPrice  = 300_000
	centsHold   = 100 * centsPrice
	stormInput  = 1_000
	stormOutput = 10_000_000
	stormLeast  = 9*stormInput + stormOutput // the smallest hold
)

// witness has PostgreSQL itself look at every version of every budget's row: no
// moment is missed, as it would be by asking. A period's first version has no limit yet
// that counts, and one that was lowered may stand below what was spent.
const witness = `
CREATE TABLE witnessed (budget bigint PRIMARY KEY, versions bigint NOT NULL, over bigint NOT NULL, row text NOT NULL);
CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO witnessed VALUES (NEW.id, 1, NEW.spent - NEW.overrun + NEW.leased - NEW.limit_n, row_to_json(NEW)::text)
		ON CONFLICT (budget) DO UPDATE SET versions = witnessed.versions + 1, over = greatest(witnessed.over, excluded.over),
			row = CASE WHEN excluded.over > witnessed.over THEN excluded.row ELSE witnessed.row END;
	RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER INSERT OR UPDATE ON budgets FOR EACH ROW EXECUTE FUNCTION witness()`

// start starts a pod with the models above, and the witness.
func start(ctx context.Context, t *testing.T, cfg stack.Config) *stack.Stack {
	t.Helper()
	return startPods(ctx, t, 1, cfg)[0]
}

// startPods starts pods on one database. They are stopped with the test.
func startPods(ctx context.Context, t *testing.T, n int, cfg stack.Config) []*stack.Stack {
	t.Helper()
	cfg.BinDir, cfg.Models = bin, models
	pods, errs := make([]*stack.Stack, n), make([]error, n)
	pods[0], errs[0] = stack.Start(ctx, cfg)
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	cfg.Beside = pods[0]
	var wait sync.WaitGroup
	for i := 1; i < n; i++ {
		wait.Go(func() { pods[i], errs[i] = stack.Start(ctx, cfg) })
	}
	wait.Wait()
	t.Cleanup(func() { stopPods(t, pods) })
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pods[0].Query(ctx, witness); err != nil {
		t.Fatal(err)
	}
	return pods
}

// stopPods stops the pods, the one with the database last.
func stopPods(t *testing.T, pods []*stack.Stack) {
	if t.Failed() {
		for i, s := range pods {
			if s != nil {
				t.Logf("=== pod %d\n%s", i, s.Logs())
			}
		}
	}
	stop := func(s *stack.Stack) {
		if s == nil {
			return
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	var wait sync.WaitGroup
	for _, s := range pods[1:] {
		wait.Go(func() { stop(s) })
	}
	wait.Wait()
	stop(pods[0])
}

func newKey(ctx context.Context, t *testing.T, s *stack.Stack, budget float64) string {
	t.Helper()
	key, err := s.NewKey(ctx, stack.KeyOptions{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// until polls what the test itself counts.
func until(ctx context.Context, t *testing.T, done func() bool) {
	t.Helper()
	untilEvery(ctx, t, 5*time.Millisecond, done)
}

// eventually polls what the pods or the database have to be asked.
func eventually(ctx context.Context, t *testing.T, done func() bool) {
	t.Helper()
	untilEvery(ctx, t, 100*time.Millisecond, done)
}

func untilEvery(ctx context.Context, t *testing.T, every time.Duration, done func() bool) {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal("it does not come about: ", ctx.Err())
		case <-tick.C:
		}
	}
}

// settleTime bounds how long adoption and returns may take after the last answer.
const settleTime = time.Minute

// sortedOut waits until all money of the keys is settled and compares the clients, the
// provider, the records and the budgets. All requests so far were for one family.
func sortedOut(ctx context.Context, t *testing.T, s *stack.Stack, c *clients, keys ...string) (*stack.Books, *stack.Comparison) {
	t.Helper()
	settling, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	books, err := s.AwaitBooks(settling, keys...)
	if books == nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Error(err)
	}
	books.Input, books.Output, books.Answers = c.input, c.output, c.answers()
	found := books.Compare()
	t.Logf("%s\n\tclients %v", found, c.kinds)
	if len(found.Differences) > 0 {
		t.Error("the books differ, see above")
	}
	checkWitness(ctx, t, s)
	report, err := s.Verify(ctx)
	if err != nil || !report.Explained() {
		t.Errorf("the ledger's own check: %v %+v", err, report.Differences)
	}
	return books, found
}

// checkWitness is law 2 at every moment.
func checkWitness(ctx context.Context, t *testing.T, s *stack.Stack) {
	t.Helper()
	out, err := s.Query(ctx, "SELECT sum(versions) || ' ' || max(over), min(row) FILTER (WHERE over > 0) FROM witnessed")
	if err != nil {
		t.Fatal(err)
	}
	sums, row, _ := strings.Cut(out, "|")
	versions, over, _ := strings.Cut(sums, " ")
	t.Logf("%s versions of budgets; spent − overrun + leased − limit was at most %s", versions, over)
	if n, err := strconv.Atoi(versions); err != nil || n < 2 || row != "" {
		t.Errorf("law 2: %v, above the limit: %s", err, row)
	}
}
