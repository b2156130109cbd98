package hold

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

// tally counts what the requests themselves hold and spend, apart from every book
// of the worker and the ledger: money served twice shows here.
type tally struct {
	mu    sync.Mutex
	limit map[string]int64
	taken map[string]int64 // open holds + what was spent within holds
	spent map[string]int64 // full cost
	err   error
}

func (s *tally) add(entities []string, taken, spent int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entities {
		s.taken[e] += taken
		s.spent[e] += spent
		if s.taken[e] > s.limit[e] && s.err == nil {
			s.err = fmt.Errorf("%s: %d taken of %d", e, s.taken[e], s.limit[e])
		}
	}
}

// Random requests on several workers while messages are lost, late and doubled, the
// collector goes and comes, and holders are reaped: no budget is passed at any
// moment, no money is served twice, and at the end every lease is home and the
// books equal what the requests spent.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { randomRun(t, seed) })
		})
	}
}

func randomRun(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	l := ledgertest.New(ledgertest.Config{
		TTL:   8 * time.Second,
		Spare: func(desired, _, free int64, _ int) int64 { return min(desired, free/3) },
	})
	books := &tally{limit: map[string]int64{}, taken: map[string]int64{}, spent: map[string]int64{}}
	for entity, limit := range map[string]int64{"key:a": 200 * cents, "key:b": 1000 * cents, "team:c": 600 * cents} {
		l.AddBudget(entity, limit)
		books.limit[entity] = limit
	}
	var workers []*worker
	for i := range uint32(3) {
		workers = append(workers, newWorker(t, l, i, func(c *Config) {
			c.IdleReturn = 2 * time.Second
			if seed%2 == 0 {
				c.Acked = nil // the ledger alone says which returns must wait
			}
		}))
	}
	planRng := rand.New(rand.NewPCG(seed, 2))
	l.SetPlan(func(string) ledgertest.Fault { return randomFault(planRng) })

	var requests sync.WaitGroup
	for i := range 400 {
		w, r := workers[rng.IntN(len(workers))], rand.New(rand.NewPCG(seed, uint64(10+i)))
		requests.Go(func() { randomRequest(t, w, r, books) })
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
		switch rng.IntN(60) {
		case 0:
			l.Reap(workers[rng.IntN(len(workers))].holder)
		case 1:
			l.GoAway()
			time.Sleep(time.Duration(rng.IntN(10_000)) * time.Millisecond)
			l.ComeBack()
		}
	}
	requests.Wait()
	l.SetPlan(nil)
	for _, w := range workers {
		w.stop()
	}
	if books.err != nil {
		t.Error(books.err)
	}
	for entity, spent := range books.spent {
		settled(t, l, entity, spent)
	}
	if n := l.OpenLeases(); n != 0 {
		t.Errorf("%d leases are left open", n)
	}
}

func randomFault(r *rand.Rand) ledgertest.Fault {
	f := ledgertest.Fault{Delay: time.Duration(r.IntN(5)) * time.Millisecond}
	switch r.IntN(10) {
	case 0:
		f.LoseRequest = true
	case 1:
		f.LoseReply = true
	case 2:
		f.Duplicate = true
	case 3:
		f.Delay = time.Duration(r.IntN(4000)) * time.Millisecond
	}
	return f
}

func randomRequest(t *testing.T, w *worker, r *rand.Rand, books *tally) {
	sets := [][]string{{"key:a"}, {"key:b"}, {"key:a", "team:c"}, {"key:b", "team:c"}, {"team:c"}}
	want := Want{Entities: sets[r.IntN(len(sets))], Amount: 1 + r.Int64N(20*cents)}
	if r.IntN(3) == 0 {
		want.Min = 1 + want.Amount/4
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if r.IntN(6) == 0 { // this client does not wait
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(50))*time.Millisecond)
		defer cancel()
	}
	h, err := w.Hold(ctx, want)
	if err != nil {
		if refused := (*Refused)(nil); !errors.As(err, &refused) && !errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
			t.Errorf("no documented error: %v", err)
		}
		return
	}
	held := h.Amount()
	books.add(want.Entities, held, 0)
	if held > want.Amount || held < want.Amount && (want.Min == 0 || held < want.Min) {
		t.Errorf("held %d for %+v", held, want)
	}
	time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
	if r.IntN(8) == 0 && h.Raise(ctx, 2*held) == nil {
		books.add(want.Entities, held, 0)
		held *= 2
	}
	if r.IntN(10) == 0 {
		books.add(want.Entities, -held, 0)
		h.Release()
		return
	}
	cost := r.Int64N(held + 1)
	if r.IntN(10) == 0 {
		cost = held + r.Int64N(cents) // the provider bills more than was held
	}
	books.add(want.Entities, min(cost, held)-held, cost)
	w.settle(h, cost)
}
