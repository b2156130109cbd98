package ledger

import "time"

// MaxCost bounds what one record may move, in nano-dollars (a million dollars).
// An upstream that reports absurd usage must not overflow a sum that everybody
// else's money stands in.
const MaxCost int64 = 1e15

// Budget is one row of budgets: an amount for one entity and one period.
type Budget struct {
	ID      int64
	Entity  string
	Limit   int64
	Spent   int64 // settled, overrun and lost included
	Overrun int64 // the part of Spent beyond what was held
	Leased  int64 // granted to open leases
	Lost    int64 // the part of Spent that only a reaper charged
	Until   time.Time

	// OpenSpent is the sum of what the budget's open leases have committed. It is
	// only needed to tell Exceeded from Held.
	OpenSpent int64
}

// Free is what a grant may take.
func (b Budget) Free() int64 { return b.Limit - b.Spent - b.Leased }

// Reported is the spend that people see: settled, and known of open leases.
func (b Budget) Reported() int64 { return b.Spent + b.OpenSpent }

// Delta is a change of a budget row.
type Delta struct {
	Spent, Overrun, Leased, Lost int64

	// Late is the part of Overrun that was within a hold, but came after the money had
	// been charged as lost or given back. Nothing is decided by it: it lets overruns be
	// recomputed from the records.
	Late int64
}

// Add sums two changes of the same row.
func (d Delta) Add(o Delta) Delta {
	return Delta{d.Spent + o.Spent, d.Overrun + o.Overrun, d.Leased + o.Leased, d.Lost + o.Lost, d.Late + o.Late}
}

// Opening is the change that gives a fresh row a spend from before it existed.
// What lies beyond the limit counts as overrun, since nobody held it.
func Opening(limit, spent int64) Delta {
	return Delta{Spent: spent, Overrun: max(0, spent-limit)}
}
