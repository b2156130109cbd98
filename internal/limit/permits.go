package limit

import (
	"slices"
	"time"
)

const never = time.Duration(1<<63 - 1)

// permits is what this worker has of one requests or tokens limit of one subject.
type permits struct {
	kind   Kind
	limit  int64      // as the last request had it; 0: none
	leases []*lease   // may be used, oldest first
	over   []giveBack // to be told to the ledger
	debt   int64      // used beyond what was granted, to be told to the ledger
	fast   pace       // use in about times.fast: sizes short leases
	slow   pace       // use in about times.calm: sizes long ones
	last   int64      // what the last request took

	// What the ledger said last.
	known   bool
	calm    bool
	free    int64
	resetAt time.Duration
	refused refusal
}

// refusal spares questions whose answer is known.
type refusal struct {
	need    int64
	until   time.Duration // the answer stands so long
	retryAt time.Duration
}

// lease is permits of one grant.
type lease struct {
	cell     int64 // where the ledger counts them
	granted  int64
	used     int64
	low      int64         // ask for more when so few are left
	deadline time.Duration // no use from then on
	lead     time.Duration // ask for more so long before the deadline
	counts   time.Duration // from then on the ledger counts none of them
	state    leaseState
	refund   int64 // used ones that came back while the ledger was being told
}

type leaseState uint8

const (
	leaseOpen   leaseState = iota
	leaseAsked             // its end is being told to the ledger
	leaseClosed            // the ledger counts what was used in cell
)

// giveBack is one return as the ledger is told of it.
type giveBack struct {
	cell, granted, used int64
	lease               *lease // nil: a correction of a closed one
}

func (l *lease) avail() int64 { return l.granted - l.used }

// pick finds a lease that can take need.
func (p *permits) pick(need int64, now time.Duration) *lease {
	for _, l := range p.leases {
		if l.granted-l.used >= need && now < l.deadline {
			return l
		}
	}
	return nil
}

// take uses need of l and says whether it is time to ask for more.
func (p *permits) take(l *lease, need int64, t *times, now time.Duration) bool {
	l.used += need
	p.last = need
	p.fast.add(need, t.fast, now)
	p.slow.add(need, t.calm, now)
	return l.avail() <= l.low
}

// atHand is what can be used now.
func (p *permits) atHand(now time.Duration) int64 {
	n := int64(0)
	for _, l := range p.leases {
		if now < l.deadline {
			n += l.avail()
		}
	}
	return n
}

// retire takes leases out of use that are over, or used up. What was used up and is over
// needs no word: the ledger counts it as long as it has to.
func (p *permits) retire(now time.Duration) {
	p.leases = slices.DeleteFunc(p.leases, func(l *lease) bool {
		switch {
		case now >= l.deadline && l.avail() == 0:
			l.state = leaseClosed
			return true
		case now >= l.deadline || l.avail() == 0:
			l.state = leaseAsked
			p.over = append(p.over, giveBack{l.cell, l.granted, l.used, l})
			return true
		}
		return false
	})
}

// refund gives n used permits of l back.
func (p *permits) refund(l *lease, n int64, now time.Duration) {
	n = min(n, l.used)
	l.used -= n
	switch {
	case n == 0 || l.state == leaseOpen:
	case l.state == leaseAsked:
		l.refund += n
	case now < l.counts:
		p.correct(l.cell, n)
	}
}

// correct has n used permits, which the ledger counts in cell, count no more.
func (p *permits) correct(cell, n int64) {
	for i := range p.over {
		if p.over[i].lease == nil && p.over[i].cell == cell {
			p.over[i].granted += n
			return
		}
	}
	p.over = append(p.over, giveBack{cell: cell, granted: n})
}

// overshoot books n that were used without a permit: from what is at hand, the rest as
// a debt.
func (p *permits) overshoot(n int64, now time.Duration) {
	for _, l := range p.leases {
		if now < l.deadline && n > 0 {
			take := min(n, l.avail())
			l.used += take
			n -= take
		}
	}
	p.debt += n
}

// wish is what a grant should bring beyond the requests that wait for it: what is likely
// to be used, less what is at hand for some time. Nothing while half of it is there. While
// a limit is in demand, what is used rarely is not kept ready, and only asked for with
// what is needed.
func (p *permits) wish(t *times, active, needed bool, now time.Duration) (short, calm int64) {
	usable := int64(0)
	for _, l := range p.leases {
		if now < l.deadline-l.lead {
			usable += l.avail()
		}
		if l.avail() <= l.low {
			l.low = -1 // this is the look that was asked for
		}
	}
	short = p.fast.recent(t.fast, now) * int64(t.short) / int64(t.fast)
	calm = p.slow.recent(t.calm, now)
	if active {
		calm = max(calm, p.last)
	}
	target := short
	if p.calm || !p.known || needed {
		target = max(short, calm)
	}
	if target == 0 || usable > target/2 {
		return 0, 0
	}
	return max(short-usable, 0), max(calm-usable, 0)
}

// recall ends the use of every lease.
func (p *permits) recall(now time.Duration) {
	for _, l := range p.leases {
		l.deadline = min(l.deadline, now)
	}
}

// next is when something is to be done about p by itself.
func (p *permits) next(t *times, active bool, now time.Duration) time.Duration {
	at, end := never, never
	for _, l := range p.leases {
		if more := l.deadline - l.lead; active && now < more {
			at = min(at, more)
			continue
		}
		end = min(end, l.deadline)
	}
	if len(p.over) > 0 || p.debt > 0 {
		end = min(end, now+t.fast)
	}
	if p.calm && end != never {
		end += t.calm / 2 // nobody is short of them: they go with other news
	}
	return min(at, end)
}

// isEmpty says that nothing is at hand or to be told.
func (p *permits) isEmpty() bool { return len(p.leases) == 0 && len(p.over) == 0 && p.debt == 0 }
