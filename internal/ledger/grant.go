package ledger

import (
	"cmp"
	"fmt"
	"slices"
)

// scarceHolds is the number of holds of a want's size below which a budget is
// scarce: from there on only single holds are leased, so that no worker sits on
// money another one needs for its next request.
const scarceHolds = 64

// Outcome is the verdict on one want.
type Outcome int

// Outcomes of a want.
const (
	Granted       Outcome = iota + 1
	Exceeded              // the money is spent
	Held                  // the money is leased or held by others
	UnknownEntity         // an entity has no current budget
)

// Want is one waiting request: all of its entities or none.
type Want struct {
	Entities []string
	Amount   int64
	Min      int64 // a smaller amount that also serves; 0: Amount only
	Desired  int64 // wished for beyond Amount
}

// Need is the least that serves the want.
func (w Want) Need() int64 {
	if w.Min > 0 {
		return min(w.Min, w.Amount)
	}
	return w.Amount
}

// Verdict is what became of one want. Budget is the one that could not pay; its
// zero value where none is to blame. Entity is set with every refusal.
type Verdict struct {
	Outcome Outcome
	Amount  int64
	Entity  string
	Budget  Budget
}

// Plan is the decision on all wants of a grant.
type Plan struct {
	Leases   []Slice // one per budget that was granted from, by budget id
	Verdicts []Verdict
}

// Refused says whether any want needs Budget.OpenSpent for its verdict.
func (p Plan) Refused() bool {
	return slices.ContainsFunc(p.Verdicts, func(v Verdict) bool {
		return v.Outcome == Exceeded || v.Outcome == Held
	})
}

// Slice is the amount that one lease takes from one budget.
type Slice struct {
	Budget Budget
	Amount int64
}

// Decide answers wants in order against the current budgets of their entities.
// Extras are given only after every want has had its turn, so that a wish never
// takes what a request behind it needs. holders is the number of live holders.
func Decide(wants []Want, budgets []Budget, holders int) (Plan, error) {
	d := newDecision(budgets)
	plan := Plan{Verdicts: make([]Verdict, len(wants))}
	for i, w := range wants {
		if w.Amount < 0 || w.Min < 0 || w.Desired < 0 {
			return Plan{}, fmt.Errorf("cannot grant: want %d has a negative amount", i)
		}
		plan.Verdicts[i] = d.serve(w)
	}
	for i, w := range wants {
		if plan.Verdicts[i].Outcome == Granted && w.Desired > 0 {
			d.extra(w, int64(max(holders, 1)))
		}
	}
	plan.Leases = d.slices()
	return plan, nil
}

// decision is the state of one Decide.
type decision struct {
	byEntity map[string]*Slice
	rest     map[string]int64 // free − what this grant has taken
	taken    map[string]bool  // a zero amount is a lease too: a hold needs one
}

func newDecision(budgets []Budget) *decision {
	d := &decision{
		byEntity: make(map[string]*Slice, len(budgets)),
		rest:     make(map[string]int64, len(budgets)),
		taken:    make(map[string]bool, len(budgets)),
	}
	for _, b := range budgets {
		d.byEntity[b.Entity] = &Slice{Budget: b}
		d.rest[b.Entity] = b.Free()
	}
	return d
}

// serve takes a want's amount from all its entities, or nothing.
func (d *decision) serve(w Want) Verdict {
	amount := w.Amount
	for _, e := range w.Entities {
		if d.byEntity[e] == nil {
			return Verdict{Outcome: UnknownEntity, Entity: e}
		}
		amount = min(amount, d.rest[e])
	}
	if amount < w.Need() {
		return d.refuse(w)
	}
	for _, e := range distinct(w.Entities) {
		d.take(e, amount)
	}
	return Verdict{Outcome: Granted, Amount: amount}
}

// refuse blames the first entity whose money is gone, or else the first whose
// money is held: a client must not be told to retry when one of its budgets
// will not recover.
func (d *decision) refuse(w Want) Verdict {
	var held *Slice
	for _, e := range w.Entities {
		s := d.byEntity[e]
		if d.rest[e] >= w.Need() {
			continue
		}
		if s.Budget.Limit-s.Budget.Reported() < w.Need() {
			return Verdict{Outcome: Exceeded, Entity: e, Budget: s.Budget}
		}
		if held == nil {
			held = s
		}
	}
	return Verdict{Outcome: Held, Entity: held.Budget.Entity, Budget: held.Budget}
}

// extra adds a granted want's wish where the rest is plentiful.
func (d *decision) extra(w Want, holders int64) {
	for _, e := range distinct(w.Entities) {
		rest := d.rest[e]
		if rest <= 0 || rest/scarceHolds < w.Amount {
			continue
		}
		d.take(e, min(w.Desired, rest/(2*holders)))
	}
}

func (d *decision) take(entity string, amount int64) {
	d.byEntity[entity].Amount += amount
	d.rest[entity] -= amount
	d.taken[entity] = true
}

func (d *decision) slices() []Slice {
	var out []Slice
	for e, s := range d.byEntity {
		if d.taken[e] {
			out = append(out, *s)
		}
	}
	slices.SortFunc(out, func(a, b Slice) int { return cmp.Compare(a.Budget.ID, b.Budget.ID) })
	return out
}

// distinct keeps the first of each name: an entity named twice pays once.
func distinct(names []string) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// Entities lists the distinct entities of all wants.
func Entities(wants []Want) []string {
	var all []string
	for _, w := range wants {
		all = append(all, w.Entities...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
