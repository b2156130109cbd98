package ledger_test

import (
	"testing"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

func TestCorrect(t *testing.T) {
	t.Parallel()
	lease := func(s ledger.State) ledger.Lease { return ledger.Lease{State: s, Granted: 100, Spent: 60, Overrun: 5} }
	held := ledger.Charge{Cost: 50}
	for _, c := range []struct {
		why    string
		lease  ledger.Lease
		before ledger.Charge
		cost   int64
		late   int64
		spent  int64 // of the lease, after
		want   ledger.Delta
	}{
		{"an open lease keeps it to itself", lease(ledger.Open), held, 20, 0, 30, ledger.Delta{}},
		{"a closed one gives money back", lease(ledger.Closed), held, 20, 0, 30, ledger.Delta{Spent: -30}},
		{"a lost one too", lease(ledger.Lost), held, 0, 0, 10, ledger.Delta{Spent: -50}},
		{"beyond the hold is overrun", lease(ledger.Closed), held, 57, 0, 67, ledger.Delta{Spent: 7, Overrun: 7}},
		{"an overrun goes first", lease(ledger.Closed), ledger.Charge{Cost: 50, Overrun: 5}, 40, 0, 50, ledger.Delta{Spent: -10, Overrun: -5}},
		{"what came late is no room for more", lease(ledger.Closed), held, 20, 40, 30, ledger.Delta{Spent: -30, Overrun: -30, Late: -30}},
		{"as far as it was late", lease(ledger.Closed), held, 20, 10, 30, ledger.Delta{Spent: -30, Overrun: -10, Late: -10}},
		{"a record that its lease never counted", ledger.Lease{State: ledger.Closed}, held, 20, 50, 0, ledger.Delta{Spent: -30, Overrun: -30, Late: -30}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			l := c.lease
			got := l.Correct(c.before, c.before.Corrected(c.cost), c.late)
			if got != c.want || l.Spent != c.spent || l.Overrun < 0 {
				t.Fatalf("got %+v and %+v, want %+v and %d spent", got, l, c.want, c.spent)
			}
			if got.Spent-got.Overrun > 0 {
				t.Fatal("a correction takes room that others may have")
			}
		})
	}
}

func TestTakeBack(t *testing.T) {
	t.Parallel()
	l := ledger.Lease{State: ledger.Lost, Granted: 100, Spent: 30, Lost: 70}
	if d := l.TakeBack(); d != (ledger.Delta{Spent: -70, Lost: -70}) || l.State != ledger.Lost {
		t.Fatalf("got %+v and %+v", d, l)
	}
	if d := l.TakeBack(); d != (ledger.Delta{}) {
		t.Fatalf("twice: %+v", d)
	}
	d, err := l.Charge(20, 0)
	if err != nil || d != (ledger.Delta{Spent: 20, Overrun: 20, Late: 20}) {
		t.Fatalf("a record that turns up: %+v %v", d, err)
	}
	open := ledger.Lease{State: ledger.Open, Granted: 100}
	if d := open.TakeBack(); d != (ledger.Delta{}) {
		t.Fatalf("an open lease: %+v", d)
	}
}
