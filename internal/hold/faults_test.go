package hold

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

var oneCent = Want{Entities: []string{"key:a"}, Amount: cents}

// faulty runs one test on a budget of 100 cents and one worker.
func faulty(t *testing.T, set func(*Config), test func(t *testing.T, l *ledgertest.Ledger, w *worker)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{TTL: 20 * time.Second})
		l.AddBudget("key:a", 100*cents)
		test(t, l, newWorker(t, l, 0, set))
	})
}

// once has the first call of a method suffer f.
func once(method string, f ledgertest.Fault) func(string) ledgertest.Fault {
	done := false
	return func(m string) ledgertest.Fault {
		if m != method || done {
			return ledgertest.Fault{}
		}
		done = true
		return f
	}
}

// A lost answer leases once: the repeat tells what the first attempt took.
func TestLostAnswerIsReplayed(t *testing.T) {
	faulty(t, nil, func(t *testing.T, l *ledgertest.Ledger, w *worker) {
		l.SetPlan(once("Grant", ledgertest.Fault{LoseReply: true}))
		h := w.must(oneCent)
		if b := l.Budget("key:a"); b.Leased != (1+desiredHolds)*cents || h.Leases()[0].GetSeq() != 1 {
			t.Errorf("leased %d under %v", b.Leased, h.Leases())
		}
		w.settle(h, cents)
		w.stop()
		settled(t, l, "key:a", cents)
	})
}

// A reaper may have charged a lease before the worker ever heard of it.
func TestReplayedLostLeaseIsReturnedUnused(t *testing.T) {
	faulty(t, nil, func(t *testing.T, l *ledgertest.Ledger, w *worker) {
		reap := make(chan struct{})
		l.SetPlan(func(method string) ledgertest.Fault {
			if method == "Grant" {
				select {
				case <-reap:
				default:
					return ledgertest.Fault{LoseReply: true}
				}
			}
			return ledgertest.Fault{}
		})
		go func() {
			time.Sleep(100 * time.Millisecond)
			l.Reap(w.holder)
			close(reap)
		}()
		h := w.must(oneCent)
		if seq := h.Leases()[0].GetSeq(); seq == 1 {
			t.Error("held from a lease that is charged as lost")
		}
		w.settle(h, cents)
		w.stop()
		settled(t, l, "key:a", cents)
	})
}

// After a reap nothing is held from older leases, whoever tells of it first, and
// what was charged is given back once the records are in.
func TestReapEndsOlderLeases(t *testing.T) {
	for _, teller := range []string{"heartbeat", "grant"} {
		t.Run("told by a "+teller, func(t *testing.T) {
			set := func(c *Config) { c.IdleReturn = time.Minute }
			faulty(t, set, func(t *testing.T, l *ledgertest.Ledger, w *worker) {
				l.AddBudget("key:idle", 100*cents)
				w.must(Want{Entities: []string{"key:idle"}, Amount: cents}).Release()
				old := w.must(oneCent)
				l.Reap(w.holder)
				if teller == "heartbeat" {
					time.Sleep(5 * time.Second)
				} else {
					w.must(Want{Entities: []string{"key:a"}, Amount: 30 * cents}).Release()
				}
				if err := old.Raise(t.Context(), 2*cents); !errors.Is(err, ErrNoRoom) {
					t.Errorf("raised on a lost lease: %v", err)
				}
				h := w.must(oneCent)
				if h.Leases()[0].GetSeq() == old.Leases()[0].GetSeq() {
					t.Error("held from a lost lease")
				}
				time.Sleep(time.Second)
				settled(t, l, "key:idle", 0) // a lost lease is not kept until it is idle for long
				w.settle(h, cents)
				w.settle(old, cents)
				w.stop()
				settled(t, l, "key:a", 2*cents)
			})
		})
	}
}

// swapped answers each grant first with the answer to the one before.
type swapped struct {
	ledgerv1.LedgerClient
	old *ledgerv1.GrantResponse
}

func (s *swapped) Grant(ctx context.Context, in *ledgerv1.GrantRequest, opts ...grpc.CallOption) (*ledgerv1.GrantResponse, error) {
	if old := s.old; old != nil && old.GetSeq() != in.GetSeq() {
		s.old = nil
		return old, nil
	}
	resp, err := s.LedgerClient.Grant(ctx, in, opts...)
	if err == nil {
		s.old = proto.CloneOf(resp)
	}
	return resp, err
}

func TestAnswerToAnotherGrantIsDropped(t *testing.T) {
	set := func(c *Config) { c.Client = &swapped{LedgerClient: c.Client} }
	faulty(t, set, func(t *testing.T, l *ledgertest.Ledger, w *worker) {
		var held int64
		for range 20 {
			w.settle(w.must(Want{Entities: []string{"key:a"}, Amount: 5 * cents}), 5*cents)
			held += 5 * cents
		}
		if _, err := w.Hold(t.Context(), oneCent); err == nil {
			t.Error("money was served twice")
		}
		w.stop()
		settled(t, l, "key:a", held)
	})
}

// Who leaves does not take the answer along: the next request finds the money.
func TestMoneyOfAGoneClientServesTheNext(t *testing.T) {
	faulty(t, nil, func(t *testing.T, l *ledgertest.Ledger, w *worker) {
		w.must(oneCent).Release() // the holder is known from here on
		l.SetPlan(once("Grant", ledgertest.Fault{Delay: time.Second}))
		big := Want{Entities: []string{"key:a"}, Amount: 20 * cents}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := w.Hold(ctx, big); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that left: %v", err)
		}
		time.Sleep(2 * time.Second)
		grants := l.Calls("Grant")
		w.must(big).Release()
		if l.Calls("Grant") != grants {
			t.Error("asked again although the money is there")
		}
		w.stop()
		settled(t, l, "key:a", 0)
	})
}

func TestCollectorAway(t *testing.T) {
	faulty(t, nil, func(t *testing.T, l *ledgertest.Ledger, w *worker) {
		h := w.must(oneCent)
		l.GoAway()
		w.must(oneCent).Release() // from the lease at hand
		start := time.Now()
		if _, err := w.Hold(t.Context(), Want{Entities: []string{"key:a"}, Amount: 50 * cents}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("no answer: %v", err)
		}
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("waited %v, want MaxWait", waited)
		}
		time.Sleep(time.Second)
		start = time.Now()
		if _, err := w.Hold(t.Context(), Want{Entities: []string{"key:a"}, Amount: 50 * cents}); !errors.Is(err, ErrUnavailable) || time.Since(start) > 0 {
			t.Errorf("a known outage must not collect requests: %v after %v", err, time.Since(start))
		}
		time.Sleep(20 * time.Second)
		if _, err := w.Hold(t.Context(), oneCent); !errors.Is(err, ErrUnavailable) {
			t.Errorf("held beyond the holder's validity, when a reaper may have charged the lease: %v", err)
		}
		l.ComeBack()
		time.Sleep(2 * time.Second)
		w.must(oneCent).Release()
		w.settle(h, cents)
		w.stop()
		settled(t, l, "key:a", cents)
	})
}

// Money that comes back while the collector is away serves who waits.
func TestSettledMoneyServesWaiters(t *testing.T) {
	faulty(t, nil, func(t *testing.T, l *ledgertest.Ledger, w *worker) {
		var open []*Hold
		for range 1 + desiredHolds {
			open = append(open, w.must(oneCent))
		}
		l.GoAway()
		go func() {
			time.Sleep(time.Second)
			w.settle(open[0], 0)
		}()
		start := time.Now()
		open = append(open[1:], w.must(oneCent))
		if time.Since(start) != time.Second {
			t.Errorf("served after %v", time.Since(start))
		}
		l.ComeBack()
		for _, h := range open {
			h.Release()
		}
		w.stop()
		settled(t, l, "key:a", 0)
	})
}

// The ledger may have forgotten that this holder lives.
func TestExpiredHolderRenewsFirst(t *testing.T) {
	faulty(t, func(c *Config) { c.IdleReturn = time.Second }, func(t *testing.T, l *ledgertest.Ledger, w *worker) {
		w.must(oneCent).Release()
		noBeat := func(method string) ledgertest.Fault {
			return ledgertest.Fault{LoseRequest: method == "Heartbeat"}
		}
		l.SetPlan(noBeat)
		time.Sleep(18 * time.Second)
		late := once("Grant", ledgertest.Fault{Delay: 2500 * time.Millisecond}) // arrives after the expiry
		l.SetPlan(func(method string) ledgertest.Fault {
			if f := late(method); f.Delay > 0 {
				return f
			}
			return noBeat(method)
		})
		go func() {
			time.Sleep(3 * time.Second)
			l.SetPlan(nil)
		}()
		w.must(oneCent).Release()
		w.stop()
		settled(t, l, "key:a", 0)
	})
}

// A request belongs to the period of its lease: near the end the last hold is
// taken a margin before, and the next from the next period.
func TestNoHoldPastThePeriod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		end := time.Now().Add(3 * time.Second)
		l.AddPeriod("key:a", 100*cents, end)
		w := newWorker(t, l, 0, nil)
		w.settle(w.must(oneCent), cents)
		time.Sleep(time.Until(end) - 500*time.Millisecond) // inside the margin
		h := w.must(oneCent)
		if time.Now().Before(end) {
			t.Errorf("held %v before the period's end, with a margin of 1 s", time.Until(end))
		}
		if n := l.Calls("Grant"); n > 15 {
			t.Errorf("%d grants while waiting for the next period", n)
		}
		w.settle(h, 2*cents)
		w.stop()
		settled(t, l, "key:a", 2*cents) // the new period's row
	})
}

func TestFencedHolderStopsAdmitting(t *testing.T) {
	fenced := make(chan struct{}, 2)
	set := func(c *Config) { c.OnFenced = func() { fenced <- struct{}{} } }
	faulty(t, set, func(t *testing.T, l *ledgertest.Ledger, w *worker) {
		w.must(oneCent).Release()
		l.Fence(w.holder)
		_, err := w.Hold(t.Context(), Want{Entities: []string{"key:a"}, Amount: 50 * cents})
		if !errors.Is(err, ErrFenced) {
			t.Errorf("a waiting request: %v", err)
		}
		if _, err := w.Hold(t.Context(), oneCent); !errors.Is(err, ErrFenced) {
			t.Errorf("a lease at hand is closed in the ledger: %v", err)
		}
		w.stop()
		if len(fenced) != 1 {
			t.Errorf("OnFenced was called %d times", len(fenced))
		}
	})
}
