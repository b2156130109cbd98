package ledger

import "fmt"

// State is the life of a lease.
type State string

// States of a lease, as they stand in the database.
const (
	Open   State = "open"
	Lost   State = "lost"
	Closed State = "closed"
)

// Lease is money taken from one budget by one holder.
type Lease struct {
	State   State
	Granted int64
	Spent   int64 // committed cost, overrun included
	Overrun int64
	Lost    int64 // what a reaper charged and no record has replaced yet
	Late    int64 // records that came after the lease was closed
}

// Charge books one record's cost on the lease and returns what changes in its
// budget. Cost includes overrun. A record for a lost lease replaces as much of
// the reaper's charge as it costs within its hold; the rest is new spend. Amounts
// outside [0, MaxCost] are cut to it: their record is a dead letter with the
// original in it.
func (l *Lease) Charge(cost, overrun int64) (Delta, error) {
	cost, overrun = Bounded(cost, overrun)
	switch l.State {
	case Open:
		l.Spent += cost
		l.Overrun += overrun
		return Delta{}, nil
	case Lost:
		take := min(cost-overrun, l.Lost)
		l.Lost -= take
		l.Spent += cost
		return Delta{Spent: cost - take, Overrun: cost - take, Lost: -take, Late: cost - take - overrun}, nil
	case Closed:
		// Cannot happen unless an administrator closed it: booked in full, counted.
		l.Late++
		return Delta{Spent: cost, Overrun: cost, Late: cost - overrun}, nil
	}
	return Delta{}, fmt.Errorf("cannot charge a lease in state %q", l.State)
}

// Bounded cuts a charge to what the ledger takes: amounts within [0, MaxCost], of
// which the overrun is a part.
func Bounded(cost, overrun int64) (boundedCost, boundedOverrun int64) {
	cost = min(max(cost, 0), MaxCost)
	return cost, min(max(overrun, 0), cost)
}

// Close settles the lease into its budget once all its records are in: an open
// one gives back what it did not spend, a lost one gives back the rest of the
// reaper's charge.
func (l *Lease) Close() Delta {
	var d Delta
	switch l.State {
	case Open:
		d = Delta{Spent: l.Spent, Overrun: l.Overrun, Leased: -l.Granted}
	case Lost:
		d = Delta{Spent: -l.Lost, Lost: -l.Lost}
		l.Lost = 0
	case Closed:
	}
	l.State = Closed
	return d
}

// Reap charges the remainder of an open lease as lost. It never frees money: a
// journal that nobody here can see may still spend it.
func (l *Lease) Reap() Delta {
	if l.State != Open {
		return Delta{}
	}
	l.Lost = max(0, l.Granted-(l.Spent-l.Overrun))
	l.State = Lost
	return Delta{Spent: l.Spent + l.Lost, Overrun: l.Overrun, Leased: -l.Granted, Lost: l.Lost}
}

// Trim lowers an open lease to an amount. A lease never grows.
func (l *Lease) Trim(to int64) Delta {
	to = max(to, 0)
	if l.State != Open || l.Granted <= to {
		return Delta{}
	}
	d := Delta{Leased: to - l.Granted}
	l.Granted = to
	return d
}

// TakeBack is an administrator's word that nothing was spent of what a reaper charged.
// The lease stays lost, at nothing: a record that turns up all the same is spend and
// overrun, so that no budget is passed unseen.
func (l *Lease) TakeBack() Delta {
	if l.State != Lost {
		return Delta{}
	}
	d := Delta{Spent: -l.Lost, Lost: -l.Lost}
	l.Lost = 0
	return d
}

// Charge is what a record costs a lease; Cost includes Overrun.
type Charge struct{ Cost, Overrun int64 }

// Corrected is the charge at another cost. What was held stays the bound of what is
// no overrun.
func (c Charge) Corrected(cost int64) Charge {
	return Charge{Cost: cost, Overrun: max(0, cost-(c.Cost-c.Overrun))}
}

// Correct replaces a charge of the lease by an administrator's and returns what
// changes in its budget, of whose overrun so much came late. Whatever leaves the
// budget was late first: that part must not stay behind as room for more.
func (l *Lease) Correct(before, after Charge, late int64) Delta {
	cost, overrun := after.Cost-before.Cost, after.Overrun-before.Overrun
	l.Spent, l.Overrun = max(0, l.Spent+cost), max(0, l.Overrun+overrun)
	if l.State == Open {
		return Delta{}
	}
	gone := min(max(0, overrun-cost), late)
	return Delta{Spent: cost, Overrun: overrun - gone, Late: -gone}
}
