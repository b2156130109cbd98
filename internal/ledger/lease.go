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
	cost = min(max(cost, 0), MaxCost)
	overrun = min(max(overrun, 0), cost)
	switch l.State {
	case Open:
		l.Spent += cost
		l.Overrun += overrun
		return Delta{}, nil
	case Lost:
		take := min(cost-overrun, l.Lost)
		l.Lost -= take
		l.Spent += cost
		return Delta{Spent: cost - take, Overrun: cost - take, Lost: -take}, nil
	case Closed:
		// Cannot happen unless an administrator closed it: booked in full, counted.
		l.Late++
		return Delta{Spent: cost, Overrun: cost}, nil
	}
	return Delta{}, fmt.Errorf("cannot charge a lease in state %q", l.State)
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
