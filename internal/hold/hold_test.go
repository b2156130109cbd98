package hold

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

// The promise a budget makes: however many ask at once, on however many workers,
// exactly what fits is granted, and afterwards nothing is leased.
func TestParallelHoldsFillBudgetExactly(t *testing.T) {
	t.Parallel()
	odd := func(desired, hold, free int64, _ int) int64 { return min(desired, free/2) / 7 * 5 }
	cases := []struct {
		name    string
		workers int
		spare   func(desired, hold, free int64, holders int) int64
		why     string
	}{
		{"one worker", 1, nil, "batches of one holder"},
		{"two workers", 2, nil, "two holders compete for the last holds"},
		{"four workers", 4, nil, "four holders compete for the last holds"},
		{"odd leases", 1, odd, "rests too small for a hold must come back and serve the last request"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := ledgertest.New(ledgertest.Config{Spare: c.spare})
				l.AddBudget("key:a", 100*cents)
				var workers []*worker
				for i := range c.workers {
					workers = append(workers, newWorker(t, l, uint32(i), nil))
				}
				granted := storm(t, workers, 200, Want{Entities: []string{"key:a"}, Amount: 3 * cents})
				for _, w := range workers {
					w.stop()
				}
				if granted != 33 {
					t.Errorf("%d granted, want 33 (%s)", granted, c.why)
				}
				settled(t, l, "key:a", 99*cents)
			})
		})
	}
}

// storm sends n equal requests at once, settles what is granted at its full cost,
// and returns how many were granted.
func storm(t *testing.T, workers []*worker, n int, want Want) int64 {
	var granted atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		w := workers[i%len(workers)]
		all.Go(func() {
			h, err := w.Hold(t.Context(), want)
			var refused *Refused
			switch {
			case err == nil:
				granted.Add(1)
				time.Sleep(300 * time.Millisecond)
				w.settle(h, want.Amount)
			case !errors.As(err, &refused):
				t.Errorf("a full budget must refuse, not fail: %v", err)
			}
		})
	}
	all.Wait()
	return granted.Load()
}

// The quiet path: once there is a lease, holds ask nobody.
func TestLeaseAtHandNeedsNoCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		l.AddBudget("key:a", 1000*cents)
		l.AddBudget("team:b", 5000*cents)
		w := newWorker(t, l, 0, nil)
		want := Want{Entities: []string{"key:a", "team:b"}, Amount: cents}
		for range 100 {
			w.settle(w.must(want), cents/2)
			w.must(want).Release()
		}
		if n := l.Calls("Grant"); n > 100/(2*desiredHolds)+2 {
			t.Errorf("%d grants for 200 holds", n)
		}
		w.stop()
		settled(t, l, "key:a", 50*cents)
		settled(t, l, "team:b", 50*cents)
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		l.AddPeriod("key:a", 5*cents, until)
		w := newWorker(t, l, 0, nil)
		first := w.must(Want{Entities: []string{"key:a"}, Amount: 4 * cents})

		var refused *Refused
		_, err := w.Hold(t.Context(), Want{Entities: []string{"key:none"}, Amount: 1})
		if !errors.As(err, &refused) || refused.Outcome != UnknownEntity {
			t.Errorf("an entity without a budget row: %v", err)
		}
		_, err = w.Hold(t.Context(), Want{Entities: []string{"key:a"}, Amount: 3 * cents})
		if !errors.As(err, &refused) || refused.Outcome != Held || !refused.Reset.Equal(until) {
			t.Errorf("money held by a request in flight: %v, %+v", err, refused)
		}
		less := w.must(Want{Entities: []string{"key:a"}, Amount: 3 * cents, Min: cents / 2})
		if less.Amount() != cents {
			t.Errorf("a smaller hold must take what is left: %d", less.Amount())
		}
		less.Release()
		w.settle(first, 4*cents)
		time.Sleep(time.Second) // its record is in
		_, err = w.Hold(t.Context(), Want{Entities: []string{"key:a"}, Amount: 3 * cents})
		if !errors.As(err, &refused) || refused.Outcome != Exceeded || refused.Spent != 4*cents || refused.Limit != 5*cents {
			t.Errorf("money spent: %v, %+v", err, refused)
		}
		w.stop()
		settled(t, l, "key:a", 4*cents)
	})
}

func TestChargesRaiseSettle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		l.AddBudget("key:a", 100*cents)
		w := newWorker(t, l, 0, nil)
		h := w.must(Want{Entities: []string{"key:a"}, Amount: 2 * cents})
		if err := h.Raise(t.Context(), 4*cents); err != nil || h.Amount() != 4*cents {
			t.Errorf("a lease with room must carry a second attempt: %v, %d", err, h.Amount())
		}
		if err := h.Raise(t.Context(), 90*cents); !errors.Is(err, ErrNoRoom) || h.Amount() != 4*cents {
			t.Errorf("a lease never grows: %v, %d", err, h.Amount())
		}
		if c := h.Charges(5 * cents)[0]; c.GetCostNano() != 5*cents || c.GetOverrunNano() != cents {
			t.Errorf("what is billed beyond the hold is overrun: %v", c)
		}
		if refs := h.Leases(); len(refs) != 1 || refs[0].GetSeq() != 1 {
			t.Errorf("the journal names the lease: %v", refs)
		}
		w.settle(h, 5*cents)
		h.Release() // must not count twice
		w.stop()
		settled(t, l, "key:a", 5*cents)
		if b := l.Budget("key:a"); b.Overrun != cents {
			t.Errorf("overrun %d, want %d", b.Overrun, cents)
		}
		if _, err := w.Hold(t.Context(), Want{Entities: []string{"key:a"}, Amount: 1}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a stopped worker takes no hold: %v", err)
		}
	})
}

// What was billed beyond a hold is gone from the lease too, or the same money would
// be held once more.
func TestOverrunTakesFromTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		l.AddBudget("key:a", 1000*cents)
		w := newWorker(t, l, 0, nil)
		w.settle(w.must(Want{Entities: []string{"key:a"}, Amount: cents}), 5*cents)
		first := w.must(Want{Entities: []string{"key:a"}, Amount: 4 * cents}) // 9 − 5
		second := w.must(Want{Entities: []string{"key:a"}, Amount: cents})
		if first.Leases()[0].GetSeq() != 1 || second.Leases()[0].GetSeq() != 2 {
			t.Errorf("held from %v and %v", first.Leases(), second.Leases())
		}
		first.Release()
		second.Release()
		w.stop()
		settled(t, l, "key:a", 5*cents)
	})
}

func TestNothingToHold(t *testing.T) {
	t.Parallel()
	m := New(Config{})
	h, err := m.Hold(t.Context(), Want{Amount: 5})
	if err != nil || len(h.Leases()) != 0 || len(h.Charges(7)) != 0 {
		t.Errorf("a request without a budget needs no ledger: %v", err)
	}
	h.Settle(7, 1)
}

// A lease that is not used goes home by itself, with no further request.
func TestIdleLeaseIsReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		l.AddBudget("key:a", 100*cents)
		w := newWorker(t, l, 0, nil)
		w.settle(w.must(Want{Entities: []string{"key:a"}, Amount: cents}), cents)
		time.Sleep(4 * time.Second)
		if l.Budget("key:a").Leased == 0 {
			t.Error("returned before IdleReturn: the next request must ask again")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		settled(t, l, "key:a", cents)
		if len(w.entities) != 0 || len(w.leases) != 0 {
			t.Errorf("%d entities and %d leases are remembered without need", len(w.entities), len(w.leases))
		}
		w.stop()
	})
}

// A return waits for the records that touched the lease, and then does not dawdle
// while money is short.
func TestDrainedLeaseIsReturnedAfterItsRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		l.AddBudget("key:a", 5*cents)
		w := newWorker(t, l, 0, nil)
		w.setHush(true)
		want := Want{Entities: []string{"key:a"}, Amount: 4 * cents}
		h := w.must(want)
		_, err := w.Hold(t.Context(), want)
		if refused := (*Refused)(nil); !errors.As(err, &refused) {
			t.Fatalf("no refusal: %v", err)
		}
		w.settle(h, 2*cents)
		time.Sleep(time.Second)
		if b := l.Budget("key:a"); b.Leased != 4*cents || b.Spent != 0 {
			t.Errorf("returned before its record was in: %+v", b)
		}
		w.setHush(false)
		for w.acked.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		settled(t, l, "key:a", 2*cents)
		w.stop()
	})
}

func TestStopReportsWhatItLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		l.AddBudget("key:a", 100*cents)
		w := newWorker(t, l, 0, nil)
		w.must(Want{Entities: []string{"key:a"}, Amount: cents}) // never settled
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := w.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a lease with an open hold cannot be returned: %v", err)
		}
	})
}

// Money that is only stuck in this worker's own leases must not refuse its requests.
func TestRestsAreGivenBackBeforeARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{
			Spare: func(_, _, free int64, _ int) int64 { return min(free, cents) },
		})
		l.AddBudget("key:a", 10*cents)
		w := newWorker(t, l, 0, nil)
		var long []*Hold
		for range 2 { // each leaves a rest of one cent in a lease with an open hold
			long = append(long, w.must(Want{Entities: []string{"key:a"}, Amount: 4 * cents}))
		}
		h := w.must(Want{Entities: []string{"key:a"}, Amount: 2 * cents})
		w.settle(h, 2*cents)
		for _, h := range long {
			w.settle(h, 4*cents)
		}
		w.stop()
		settled(t, l, "key:a", 10*cents)
	})
}

func TestErrorsSayWhat(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[Outcome]string{
		Exceeded: "exceeded", Held: "held", UnknownEntity: "unknown_entity", 9: "Outcome(9)",
	} {
		if got := fmt.Sprint(outcome); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	r := refusedFrom(&ledgerv1.WantResult{Outcome: ledgerv1.WantResult_OUTCOME_HELD, RefusedEntity: "team:b"})
	if r.Error() != "cannot hold money of team:b: held" || !r.Reset.IsZero() {
		t.Errorf("%v %+v", r, r)
	}
}
