package ledger

import "time"

// LimitState is what a decision on limits is made from.
type LimitState struct {
	Meters  []Meter         // parallel to the asks
	Now     int64           // the database's time, Unix microseconds
	Holders int             // that live, of all pods
	Dead    map[string]bool // holders whose process is known to have ended; may be incomplete
	Window  Window
}

// DecideLimits books what a holder gives back, then serves its wants in order, all or
// nothing each, then its wishes. It changes nothing in st. The law for every meter:
// what is counted never exceeds the limit by a grant.
func DecideLimits(s LimitSync, st LimitState) LimitPlan {
	d := newLimitDecision(s, st)
	plan := LimitPlan{Verdicts: make([]LimitVerdict, len(s.Wants))}
	for i, w := range s.Wants {
		plan.Verdicts[i] = d.serve(w)
	}
	for i := range s.Asks {
		plan.Grants = append(plan.Grants, d.finish(i))
		plan.Meters = append(plan.Meters, d.meters[i].Meter)
	}
	return plan
}

// limitDecision is the state of one DecideLimits.
type limitDecision struct {
	sync    LimitSync
	window  Window
	holders int64
	meters  []limitMeter
}

// limitMeter is a meter with what this decision takes of it.
type limitMeter struct {
	Meter
	now     int64
	taken   int64
	settled int64
	have    int64 // slots that the holder may keep
}

func newLimitDecision(s LimitSync, st LimitState) *limitDecision {
	d := &limitDecision{sync: s, window: st.Window, holders: int64(max(st.Holders, 1)), meters: make([]limitMeter, len(s.Asks))}
	for i, a := range s.Asks {
		m := &d.meters[i]
		m.Meter, m.now = st.Meters[i].at(st.Now, st.Dead)
		if a.Kind == LimitParallel {
			m.have = min(a.Have, m.slots(s.Holder)+max(a.Limit-m.counted(), 0))
			m.keep(Slot{Holder: s.Holder, Count: m.have, Ends: d.ends(m.now)})
			continue
		}
		m.settled = d.window.settled(m.now)
		for _, r := range a.Returns {
			m.settle(r, m.settled)
		}
		m.add(m.settled, a.Charge)
	}
	return d
}

// ends is when the requests of slots that are renewed now have ended for sure: the last
// begins before the slots need renewal.
func (d *limitDecision) ends(now int64) int64 {
	return now + (d.window.Calm() + d.sync.Longest + d.window.Margin()).Microseconds()
}

// rest is what a limit can still give.
func (d *limitDecision) rest(ask int) int64 {
	return d.sync.Asks[ask].Limit - d.meters[ask].counted() - d.meters[ask].taken
}

// serve takes a want from all its limits, or nothing. The limit that is blamed is the
// one that takes longest to recover, since a retry before that is in vain.
func (d *limitDecision) serve(w LimitWant) LimitVerdict {
	verdict := LimitVerdict{Granted: true}
	for _, n := range w {
		if d.rest(n.Ask) >= n.Amount {
			continue
		}
		if r := d.retry(n); verdict.Granted || later(r, verdict.Retry) {
			verdict = LimitVerdict{Ask: n.Ask, Retry: r}
		}
	}
	if verdict.Granted {
		for _, n := range w {
			d.meters[n.Ask].taken += n.Amount
		}
	}
	return verdict
}

func (d *limitDecision) retry(n LimitNeed) time.Duration {
	m, ask := &d.meters[n.Ask], d.sync.Asks[n.Ask]
	switch {
	case n.Amount > ask.Limit:
		return RetryNever
	case ask.Kind == LimitParallel:
		return RetryUnknown
	}
	if r := m.retry(ask.Limit, n.Amount, m.taken, m.now); r != RetryUnknown {
		return r
	}
	// It waits for what this very sync has taken.
	return time.Duration(d.window.expiry(m.now, d.permitUse(false))-m.now) * time.Microsecond
}

// later orders retry times: never is the last.
func later(a, b time.Duration) bool {
	return a == RetryNever && b != RetryNever || b != RetryNever && a > b
}

// finish gives one ask what its wants took and what is wished beyond, and counts it.
func (d *limitDecision) finish(i int) LimitGrant {
	ask, m := d.sync.Asks[i], &d.meters[i]
	if ask.Kind == LimitParallel {
		return d.finishSlots(ask, m)
	}
	extra, calm := d.extra(i)
	g := LimitGrant{Amount: m.taken + extra, Settled: m.settled, Use: d.permitUse(calm), Calm: calm}
	g.Cell = d.window.expiry(m.now, g.Use)
	m.add(g.Cell, g.Amount)
	m.taken = 0
	g.Free, g.Reset = max(d.rest(i), 0), m.reset(m.now)
	return g
}

// permitUse is how long permits may be used; never shorter than it takes to hand them over.
func (d *limitDecision) permitUse(calm bool) time.Duration {
	if calm {
		return d.window.Calm()
	}
	return min(max(d.window.Short(), d.sync.Use), d.window.Calm())
}

// idleShare is the part of a limit, 1 in idleShare, that rests with holders who do not
// use it while most of the limit is free.
const idleShare = 8

// extra is what a holder gets beyond its wants, and whether for long. While at least half
// of a limit is free, a wish may last long, within a share that all holders can have at
// once; else it is at most a quarter of the rest, for a short time.
func (d *limitDecision) extra(i int) (extra int64, calm bool) {
	ask, rest := d.sync.Asks[i], d.rest(i)
	if rest <= 0 {
		return 0, false
	}
	long := min(max(ask.Calm, 0), ask.Limit/(idleShare*d.holders))
	short := min(max(ask.Short, 0), rest/4)
	if half := ask.Limit / 2; rest-long >= half && long >= short {
		return long, true
	}
	return short, false
}

// finishSlots renews the holder's slots. Those that it lost, since it was not heard of for
// so long that nothing can run in them, are gone unless they are still free. How long they
// may be kept unused depends on whether somebody else may need them.
func (d *limitDecision) finishSlots(ask LimitAsk, m *limitMeter) LimitGrant {
	spare := max(d.holders, ask.Limit/4) // with so much free, nobody lacks what rests here
	extra := min(max(ask.Short, 0), max(ask.Limit-m.counted()-m.taken-spare, 0))
	mine := m.have + m.taken + extra
	g := LimitGrant{Amount: mine - ask.Have, Use: d.window.Calm()}
	m.keep(Slot{Holder: d.sync.Holder, Count: mine, Ends: d.ends(m.now)})
	m.taken = 0
	total := m.counted()
	g.Free = max(ask.Limit-total, 0)
	if total <= ask.Limit/2 {
		g.Rest = ask.Limit / (4 * d.holders)
	}
	if g.Free >= spare {
		g.Keep = d.window.Length / 30
	}
	return g
}
