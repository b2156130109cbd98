package limit

import (
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

const (
	// maxSubjects and maxReturns bound one call.
	maxSubjects = 2000
	maxReturns  = 200
	// maxAsked bounds the waiting requests of one call.
	maxAsked = 2000
	// maxPace is the pause between calls that no request waits for: long enough to tell
	// the ledger much at once.
	maxPace = 250 * time.Millisecond
)

// flight is a call that is not answered yet.
type flight struct {
	req     *ledgerv1.LimitsRequest
	sent    time.Duration // when it was first sent
	meters  []meterRef    // parallel to req.Meters
	waiters []*waiter     // parallel to req.Wants
	touched []*subject
}

// meterRef is one limit in a call.
type meterRef struct {
	s     *subject
	p     *permits // nil: the slots
	over  []giveBack
	debt  int64
	taken int64 // of what is at hand, by waiters of this call
}

// pace is the pause between calls that no request waits for.
func (b *book) pace() time.Duration {
	if b.stopping {
		return time.Millisecond
	}
	return min(maxPace, b.times.short/3)
}

// next is when the next call may be due.
func (b *book) next(now time.Duration) time.Duration {
	at := never
	if len(b.soon) > 0 {
		at = b.lastCall + b.pace()
	}
	if len(b.due) > 0 {
		at = min(at, max(b.due[0].due, b.lastCall+b.pace()))
	}
	return max(min(at, b.nextAsk), now)
}

// ask makes the next call, or nil when there is nothing to say.
func (b *book) ask(now time.Duration) *ledgerv1.LimitsRequest {
	b.serveWaiters(now)
	a := &asking{b: b, now: now, flight: &flight{sent: now}, index: map[*permits]int{}, slotIndex: map[*subject]int{}, seen: map[*subject]bool{}}
	a.gather()
	for _, w := range a.waiting() {
		a.want(w)
	}
	for _, s := range a.touched {
		a.tell(s)
	}
	if len(a.meters) == 0 {
		a.settle()
		return nil
	}
	b.seq++
	a.req = &ledgerv1.LimitsRequest{
		Holder: b.cfg.Holder, Seq: b.seq, UseMs: (2 * b.trip).Milliseconds(), LongestMs: b.cfg.LongestRequest.Milliseconds(),
		Meters: a.lines, Wants: a.wants,
	}
	b.flight = a.flight
	return a.req
}

// asking is a call that is being made.
type asking struct {
	b   *book
	now time.Duration
	*flight
	lines     []*ledgerv1.LimitMeter
	wants     []*ledgerv1.LimitWant
	index     map[*permits]int
	slotIndex map[*subject]int
	seen      map[*subject]bool
}

// gather finds the subjects that the ledger has to hear of; those that are due a little
// later too, so that it hears of many at once.
func (a *asking) gather() {
	b := a.b
	for len(b.soon) > 0 && len(a.touched) < maxSubjects {
		s := b.soon[len(b.soon)-1]
		b.soon = b.soon[:len(b.soon)-1]
		s.soon = false
		a.touch(s)
	}
	for len(b.due) > 0 && b.due[0].due <= a.now+b.pace() && len(a.touched) < maxSubjects {
		s := b.due[0]
		s.due = never // until schedule knows
		b.place(s)
		a.touch(s)
	}
}

func (a *asking) touch(s *subject) {
	if !a.seen[s] {
		a.seen[s] = true
		a.touched = append(a.touched, s)
	}
}

// waiting lists the requests to ask for, in order.
func (a *asking) waiting() []*waiter {
	var out []*waiter
	a.b.nextAsk = never
	for el := a.b.waiters.Front(); el != nil; el = el.Next() {
		w := el.Value.(*waiter)
		switch {
		case w.asked:
		case w.askAt > a.now || len(out) == maxAsked:
			a.b.nextAsk = min(a.b.nextAsk, w.askAt)
		default:
			out = append(out, w)
		}
	}
	return out
}

// want adds what w lacks. What is at hand is left for it: it is not asked for.
func (a *asking) want(w *waiter) {
	line := &ledgerv1.LimitWant{}
	for i := range w.want.Subjects {
		sub := &w.want.Subjects[i]
		if namedBefore(w.want.Subjects, i) {
			continue
		}
		s := a.b.subject(sub.Name)
		if s.requests.limit != sub.RPM || s.tokens.limit != sub.TPM || s.slots.limit != sub.Parallel {
			a.b.relimit(s, sub, a.now)
		}
		a.touch(s)
		for _, p := range [...]*permits{&s.requests, &s.tokens} {
			if need := w.want.need(sub, p.kind); need > 0 {
				m := a.permits(s, p)
				p.last = need
				a.need(line, m, need, p.pick(a.meters[m].taken+need, a.now) != nil)
			}
		}
		if sub.Parallel > 0 {
			m := a.slots(s)
			a.need(line, m, 1, a.now < s.slots.valid && a.meters[m].taken < s.slots.have-s.slots.inUse)
		}
	}
	w.asked = true
	a.waiters, a.wants = append(a.waiters, w), append(a.wants, line)
}

func namedBefore(subjects []Subject, i int) bool {
	for j := range i {
		if subjects[j].Name == subjects[i].Name {
			return true
		}
	}
	return false
}

// need asks for an amount of a meter, unless it is at hand beside what waiters before take.
func (a *asking) need(line *ledgerv1.LimitWant, meter int, amount int64, atHand bool) {
	if atHand {
		a.meters[meter].taken += amount
		return
	}
	line.Needs = append(line.Needs, &ledgerv1.LimitNeed{Meter: uint32(meter), Amount: amount})
}

// permits is the index of a requests or tokens limit in the call.
func (a *asking) permits(s *subject, p *permits) int {
	i, ok := a.index[p]
	if !ok {
		p.retire(a.now)
		i = a.add(meterRef{s: s, p: p}, &ledgerv1.LimitMeter{Subject: s.name, Kind: p.kind.wire(), Limit: p.limit})
		a.index[p] = i
	}
	return i
}

// slots is the index of a parallel limit in the call.
func (a *asking) slots(s *subject) int {
	i, ok := a.slotIndex[s]
	if !ok {
		i = a.add(meterRef{s: s}, &ledgerv1.LimitMeter{Subject: s.name, Kind: Parallel.wire(), Limit: s.slots.limit})
		a.slotIndex[s] = i
	}
	return i
}

func (a *asking) add(m meterRef, line *ledgerv1.LimitMeter) int {
	a.meters, a.lines = append(a.meters, m), append(a.lines, line)
	return len(a.meters) - 1
}

// tell adds what the ledger has to hear of a subject.
func (a *asking) tell(s *subject) {
	for _, p := range [...]*permits{&s.requests, &s.tokens} {
		p.retire(a.now)
		_, needed := a.index[p]
		short, calm := int64(0), int64(0)
		if p.limit > 0 && !a.b.stopping {
			short, calm = p.wish(&a.b.times, a.b.active(s, a.now), needed, a.now)
		}
		if !needed && short == 0 && calm == 0 && len(p.over) == 0 && p.debt == 0 {
			continue
		}
		i := a.permits(s, p)
		a.lines[i].DesiredShort, a.lines[i].DesiredCalm = short, calm
		a.giveBack(p, i)
	}
	reserved := int64(0)
	i, needed := a.slotIndex[s]
	if needed {
		reserved = a.meters[i].taken
	}
	s.slots.rest(reserved, a.b.times.calm, a.now)
	if needed || s.slots.news(&a.b.times, a.now) {
		i = a.slots(s)
		a.lines[i].Have, s.slots.told = s.slots.have, s.slots.have
		if needed && s.slots.keep > 0 && !a.b.stopping {
			a.lines[i].DesiredShort = s.slots.have / 8
		}
	}
}

// giveBack adds what is over of one limit.
func (a *asking) giveBack(p *permits, i int) {
	m, line := &a.meters[i], a.lines[i]
	n := min(len(p.over), maxReturns)
	m.over, p.over = p.over[:n:n], p.over[n:]
	for _, g := range m.over {
		line.Returns = append(line.Returns, &ledgerv1.PermitReturn{Cell: g.cell, Granted: g.granted, Used: g.used})
	}
	line.Charge, m.debt, p.debt = p.debt, p.debt, 0
}
