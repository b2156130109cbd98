package ledger_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

func TestLease(t *testing.T) {
	t.Parallel()
	open := ledger.Lease{State: ledger.Open, Granted: 100, Spent: 30, Overrun: 10}
	lost := ledger.Lease{State: ledger.Lost, Granted: 100, Spent: 30, Overrun: 10, Lost: 80}
	closed := ledger.Lease{State: ledger.Closed, Granted: 100, Spent: 30}
	charge := func(cost, overrun int64) func(*ledger.Lease) ledger.Delta {
		return func(l *ledger.Lease) ledger.Delta {
			d, err := l.Charge(cost, overrun)
			if err != nil {
				t.Error(err)
			}
			return d
		}
	}
	trim := func(to int64) func(*ledger.Lease) ledger.Delta {
		return func(l *ledger.Lease) ledger.Delta { return l.Trim(to) }
	}
	for _, c := range []struct {
		why   string
		lease ledger.Lease
		step  func(*ledger.Lease) ledger.Delta
		want  ledger.Lease
		delta ledger.Delta
	}{
		{"an open lease keeps its cost to itself", open, charge(20, 5), ledger.Lease{State: ledger.Open, Granted: 100, Spent: 50, Overrun: 15}, ledger.Delta{}},
		{"a late record replaces the charge", lost, charge(20, 0), ledger.Lease{State: ledger.Lost, Granted: 100, Spent: 50, Overrun: 10, Lost: 60}, ledger.Delta{Lost: -20}},
		{"only by its cost within the hold", lost, charge(20, 5), ledger.Lease{State: ledger.Lost, Granted: 100, Spent: 50, Overrun: 10, Lost: 65}, ledger.Delta{Spent: 5, Overrun: 5, Lost: -15}},
		{"never more than was charged", lost, charge(90, 0), ledger.Lease{State: ledger.Lost, Granted: 100, Spent: 120, Overrun: 10}, ledger.Delta{Spent: 10, Overrun: 10, Lost: -80, Late: 10}},
		{"a closed lease is counted and booked as overrun", closed, charge(7, 0), ledger.Lease{State: ledger.Closed, Granted: 100, Spent: 30, Late: 1}, ledger.Delta{Spent: 7, Overrun: 7, Late: 7}},
		{"a negative cost gives nothing back", open, charge(-7, -7), open, ledger.Delta{}},
		{"an overrun above its cost is its cost", open, charge(5, 50), ledger.Lease{State: ledger.Open, Granted: 100, Spent: 35, Overrun: 15}, ledger.Delta{}},
		{"an absurd cost does not overflow", open, charge(math.MaxInt64, 0), ledger.Lease{State: ledger.Open, Granted: 100, Spent: 30 + ledger.MaxCost, Overrun: 10}, ledger.Delta{}},

		{"closing settles", open, (*ledger.Lease).Close, ledger.Lease{State: ledger.Closed, Granted: 100, Spent: 30, Overrun: 10}, ledger.Delta{Spent: 30, Overrun: 10, Leased: -100}},
		{"closing a lost lease gives the rest back", lost, (*ledger.Lease).Close, ledger.Lease{State: ledger.Closed, Granted: 100, Spent: 30, Overrun: 10}, ledger.Delta{Spent: -80, Lost: -80}},
		{"closing twice does nothing", closed, (*ledger.Lease).Close, closed, ledger.Delta{}},

		{"reaping charges granted − (spent − overrun)", open, (*ledger.Lease).Reap, lost, ledger.Delta{Spent: 110, Overrun: 10, Leased: -100, Lost: 80}},
		{"a lease that is used up leaves nothing to charge", ledger.Lease{State: ledger.Open, Granted: 10, Spent: 30, Overrun: 5}, (*ledger.Lease).Reap, ledger.Lease{State: ledger.Lost, Granted: 10, Spent: 30, Overrun: 5}, ledger.Delta{Spent: 30, Overrun: 5, Leased: -10}},
		{"reaping twice does nothing", lost, (*ledger.Lease).Reap, lost, ledger.Delta{}},

		{"a trim lowers", open, trim(60), ledger.Lease{State: ledger.Open, Granted: 60, Spent: 30, Overrun: 10}, ledger.Delta{Leased: -40}},
		{"a lease never grows", open, trim(101), open, ledger.Delta{}},
		{"nor goes below nothing", open, trim(-5), ledger.Lease{State: ledger.Open, Spent: 30, Overrun: 10}, ledger.Delta{Leased: -100}},
		{"a lost lease is not trimmed", lost, trim(1), lost, ledger.Delta{}},
	} {
		t.Run(c.why, func(t *testing.T) {
			l := c.lease
			d := c.step(&l)
			if l != c.want || d != c.delta {
				t.Fatalf("got  %+v %+v\nwant %+v %+v", l, d, c.want, c.delta)
			}
		})
	}
	if _, err := (&ledger.Lease{State: "?"}).Charge(1, 0); err == nil {
		t.Fatal("an unknown state: want an error")
	}
}

// Any order of grants, charges, trims, reaps, late records and closes keeps the
// law and ends with nothing leased and nothing lost.
func TestLawOnRandomWalks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := ledger.Budget{ID: 1, Entity: "a", Limit: 1000}
		var leases []*walked
		apply := func(d ledger.Delta) {
			b.Spent, b.Overrun, b.Leased, b.Lost = b.Spent+d.Spent, b.Overrun+d.Overrun, b.Leased+d.Leased, b.Lost+d.Lost
			if b.Spent-b.Overrun+b.Leased > b.Limit || b.Leased < 0 || b.Lost < 0 || b.Overrun > b.Spent {
				t.Fatalf("seed %d: %+v breaks the law", seed, b)
			}
		}
		for range 200 {
			if len(leases) == 0 || r.IntN(4) == 0 {
				plan, err := ledger.Decide([]ledger.Want{{Entities: []string{"a"}, Amount: r.Int64N(90), Min: r.Int64N(9), Desired: r.Int64N(200)}}, []ledger.Budget{b}, 1+r.IntN(3))
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range plan.Leases {
					apply(ledger.Delta{Leased: s.Amount})
					leases = append(leases, &walked{Lease: ledger.Lease{State: ledger.Open, Granted: s.Amount}, rest: s.Amount})
				}
				continue
			}
			apply(leases[r.IntN(len(leases))].step(t, r))
		}
		for _, l := range leases {
			apply(l.Close())
		}
		if b.Leased != 0 || b.Lost != 0 {
			t.Fatalf("seed %d: %+v at the end, want nothing leased or lost", seed, b)
		}
	}
}

// walked is a lease with what its worker may still hold from it.
type walked struct {
	ledger.Lease
	rest int64
}

func (w *walked) step(t *testing.T, r *rand.Rand) ledger.Delta {
	switch r.IntN(8) {
	case 0:
		return w.Reap()
	case 1:
		w.rest = 0
		return w.Close()
	case 2:
		to := w.Granted - r.Int64N(w.rest+1)
		d := w.Trim(to)
		if d != (ledger.Delta{}) {
			w.rest += d.Leased
		}
		return d
	}
	cost := r.Int64N(w.rest + 1)
	w.rest -= cost
	overrun := r.Int64N(5)
	d, err := w.Charge(cost+overrun, overrun)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
