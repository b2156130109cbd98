package hold

import "time"

// paceWindow is the time whose spend a lease is to last for: a busy key then asks
// the ledger about once in it instead of every few requests.
const paceWindow = 2 * time.Second

// pace is what an entity has spent lately, in this worker.
type pace struct {
	from         time.Duration // begin of the current window
	spent, older int64         // in the current window, and in the one before
}

// add counts a cost that was settled.
func (p *pace) add(cost int64, now time.Duration) {
	p.turn(now)
	p.spent += cost
}

// recent is the spend of about the last window: the current one and that part of
// the one before which is not older.
func (p *pace) recent(now time.Duration) int64 {
	p.turn(now)
	return p.spent + int64(float64(p.older)*float64(p.from+paceWindow-now)/float64(paceWindow))
}

// turn begins a new window when the current one is over.
func (p *pace) turn(now time.Duration) {
	switch passed := now - p.from; {
	case passed < paceWindow:
	case passed < 2*paceWindow:
		p.from, p.older, p.spent = p.from+paceWindow, p.spent, 0
	default:
		p.from, p.older, p.spent = now, 0, 0
	}
}
