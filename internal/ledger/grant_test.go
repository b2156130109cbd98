package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

func budget(id int64, entity string, limit, spent, leased, open int64) ledger.Budget {
	return ledger.Budget{ID: id, Entity: entity, Limit: limit, Spent: spent, Leased: leased, OpenSpent: open, Until: time.Unix(id, 0)}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	ab := func(w ledger.Want) []ledger.Want { w.Entities = []string{"a", "b"}; return []ledger.Want{w} }
	a := func(ws ...ledger.Want) []ledger.Want {
		for i := range ws {
			ws[i].Entities = []string{"a"}
		}
		return ws
	}
	for _, c := range []struct {
		why     string
		wants   []ledger.Want
		budgets []ledger.Budget
		holders int
		want    string // outcome amount entity; …| budget:amount …
	}{
		{"a lease takes what the want asks", a(ledger.Want{Amount: 30}), []ledger.Budget{budget(1, "a", 100, 0, 0, 0)}, 1, "granted 30 |1:30"},
		{"to the last unit", a(ledger.Want{Amount: 30}), []ledger.Budget{budget(1, "a", 100, 40, 30, 0)}, 1, "granted 30 |1:30"},
		{"and not one more", a(ledger.Want{Amount: 31}), []ledger.Budget{budget(1, "a", 100, 40, 30, 0)}, 1, "held 0 a|"},
		{"spent money does not come back", a(ledger.Want{Amount: 61}), []ledger.Budget{budget(1, "a", 100, 40, 30, 0)}, 1, "exceeded 0 a|"},
		{"what open leases spent is spent", a(ledger.Want{Amount: 31}), []ledger.Budget{budget(1, "a", 100, 40, 30, 30)}, 1, "exceeded 0 a|"},
		{"a smaller hold serves", a(ledger.Want{Amount: 50, Min: 20}), []ledger.Budget{budget(1, "a", 100, 40, 30, 0)}, 1, "granted 30 |1:30"},
		{"the smaller hold does not fit either", a(ledger.Want{Amount: 50, Min: 31}), []ledger.Budget{budget(1, "a", 100, 40, 30, 0)}, 1, "held 0 a|"},
		{"a min above the amount is the amount", a(ledger.Want{Amount: 10, Min: 99}), []ledger.Budget{budget(1, "a", 10, 0, 0, 0)}, 1, "granted 10 |1:10"},
		{"all entities give the same", ab(ledger.Want{Amount: 50, Min: 5}), []ledger.Budget{budget(2, "b", 20, 0, 0, 0), budget(1, "a", 100, 0, 0, 0)}, 1, "granted 20 |1:20 2:20"},
		{"or none gives", ab(ledger.Want{Amount: 50}), []ledger.Budget{budget(1, "a", 100, 0, 0, 0), budget(2, "b", 20, 0, 0, 0)}, 1, "exceeded 0 b|"},
		{"money that is gone is blamed before money that is held", ab(ledger.Want{Amount: 50}), []ledger.Budget{budget(1, "a", 100, 0, 99, 0), budget(2, "b", 20, 0, 0, 0)}, 1, "exceeded 0 b|"},
		{"an entity without a budget is unknown", ab(ledger.Want{Amount: 1}), []ledger.Budget{budget(1, "a", 100, 0, 0, 0)}, 1, "unknown 0 b|"},
		{"a want sees what the one before it took", a(ledger.Want{Amount: 60}, ledger.Want{Amount: 60}, ledger.Want{Amount: 40}), []ledger.Budget{budget(1, "a", 100, 0, 0, 0)}, 1, "granted 60 ;held 0 a;granted 40 |1:100"},
		{"a free request needs a lease too", a(ledger.Want{}), []ledger.Budget{budget(1, "a", 100, 100, 0, 0)}, 1, "granted 0 |1:0"},
		{"but not of a budget that is passed", a(ledger.Want{}), []ledger.Budget{budget(1, "a", 100, 101, 0, 0)}, 1, "exceeded 0 a|"},
		{"a lowered limit gives nothing", a(ledger.Want{Amount: 1}), []ledger.Budget{budget(1, "a", 10, 0, 60, 0)}, 1, "held 0 a|"},
		{"no entity, no lease", []ledger.Want{{Amount: 5}}, nil, 1, "granted 5 |"},
		{"an extra of at most rest/2", a(ledger.Want{Amount: 10, Desired: 9999}), []ledger.Budget{budget(1, "a", 1010, 0, 0, 0)}, 1, "granted 10 |1:510"},
		{"an extra of at most rest/(2 × holders)", a(ledger.Want{Amount: 10, Desired: 9999}), []ledger.Budget{budget(1, "a", 1010, 0, 0, 0)}, 5, "granted 10 |1:110"},
		{"no more than wished", a(ledger.Want{Amount: 10, Desired: 7}), []ledger.Budget{budget(1, "a", 1010, 0, 0, 0)}, 5, "granted 10 |1:17"},
		{"the last rest that is plentiful", a(ledger.Want{Amount: 10, Desired: 7}), []ledger.Budget{budget(1, "a", 650, 0, 0, 0)}, 1, "granted 10 |1:17"},
		{"no extra below 64 holds", a(ledger.Want{Amount: 10, Desired: 7}), []ledger.Budget{budget(1, "a", 649, 0, 0, 0)}, 1, "granted 10 |1:10"},
		{"a wish never takes what a later want needs", a(ledger.Want{Amount: 1, Desired: 9999}, ledger.Want{Amount: 990}), []ledger.Budget{budget(1, "a", 1000, 0, 0, 0)}, 1, "granted 1 ;granted 990 |1:991"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			plan, err := ledger.Decide(c.wants, c.budgets, c.holders)
			if err != nil {
				t.Fatal(err)
			}
			if got := show(plan); got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

func show(p ledger.Plan) string {
	names := map[ledger.Outcome]string{ledger.Granted: "granted", ledger.Exceeded: "exceeded", ledger.Held: "held", ledger.UnknownEntity: "unknown"}
	var verdicts, leases []string
	for _, v := range p.Verdicts {
		verdicts = append(verdicts, fmt.Sprintf("%s %d %s", names[v.Outcome], v.Amount, v.Entity))
	}
	for _, l := range p.Leases {
		leases = append(leases, fmt.Sprintf("%d:%d", l.Budget.ID, l.Amount))
	}
	return strings.Join(verdicts, ";") + "|" + strings.Join(leases, " ")
}

// A negative amount would add to what is free.
func TestDecideRefusesNegative(t *testing.T) {
	t.Parallel()
	for _, w := range []ledger.Want{{Amount: -1}, {Min: -1}, {Desired: -1}} {
		if _, err := ledger.Decide([]ledger.Want{w}, nil, 1); err == nil {
			t.Errorf("%+v: want an error", w)
		}
	}
}
