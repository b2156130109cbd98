package faults

import (
	"testing"

	"github.com/penstock-gateway/penstock/test/stack"
)

// TestKillBetweenCommitAndAck: the database has committed records and the collector does
// not know. It dies; what was sent to it is sent again, in other batches, and is booked
// once.
func TestKillBetweenCommitAndAck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		kill []stack.Process
	}{
		{"the worker sends again, more at once because it had to wait", []stack.Process{stack.Collector}},
		{"the next collector takes the dead worker's journal over, all of it at once", []stack.Process{stack.Worker, stack.Collector}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			ctx, random := bounded(t), source(t)
			s := start(ctx, t, stack.Config{Workers: 2, Relayed: true})
			key, seen := newKey(ctx, t, s, 100_000), newClients(stack.FakeInput, stack.FakeOutput)
			stop := sending(ctx, []*stack.Stack{s}, seen, mixed(key))
			defer stop()
			for range scaled().acks {
				next := seen.all() + 50 + random.IntN(100)
				until(ctx, t, func() bool { return seen.all() >= next })
				held, release, err := s.Relay().HoldCommit(ctx)
				if err != nil {
					t.Fatal(err)
				}
				before, err := s.Count(ctx, "SELECT count(*) FROM spend_records")
				if err != nil {
					t.Fatal(err)
				}
				// More is waiting in the worker than what was committed: another batch.
				next = seen.all() + 50 + random.IntN(200)
				until(ctx, t, func() bool { return seen.all() >= next })
				for _, name := range c.kill {
					if err := s.Kill9(ctx, name); err != nil {
						t.Fatal(err)
					}
				}
				release()
				again, err := s.Relay().AwaitCommit(ctx)
				if err != nil {
					t.Fatal(err)
				}
				after, err := s.Count(ctx, "SELECT count(*) FROM spend_records")
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d records were committed and not acked; the next batch has %d others; %d records, then %d", held, again, before, after)
			}
			stop()
			sortedOut(ctx, t, s, seen, key)
			seen.only(t, "whole", "gone", "503 ledger_unavailable")
		})
	}
}

// TestKillPostgresAfterAck: what a worker was told is committed is there after a crash
// of the database in the very next moment, or nobody has it any more.
func TestKillPostgresAfterAck(t *testing.T) {
	t.Parallel()
	ctx, random := bounded(t), source(t)
	s := start(ctx, t, stack.Config{Workers: 2, Relayed: true})
	key, c := newKey(ctx, t, s, 100_000), newClients(stack.FakeInput, stack.FakeOutput)
	stop := sending(ctx, []*stack.Stack{s}, c, mixed(key))
	defer stop()
	for range scaled().acks {
		next := c.all() + 50 + random.IntN(200)
		until(ctx, t, func() bool { return c.all() >= next })
		if _, err := s.Relay().AwaitCommit(ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.Kill9(ctx, stack.Postgres); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(ctx, stack.Postgres); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	_, found := sortedOut(ctx, t, s, c, key)
	if found.Exact != found.Dispatches {
		t.Errorf("no worker died, and not all is exact: %s", found)
	}
	c.only(t, "whole", "503 ledger_unavailable")
}
