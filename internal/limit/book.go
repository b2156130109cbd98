package limit

import (
	"container/list"
	"time"
)

// book is a worker's state: what it has, who waits, and the call that is under way. It
// is guarded by Manager.mu.
type book struct {
	cfg      Config
	times    times
	subjects map[string]*subject
	due      dueHeap
	soon     []*subject
	waiters  list.List // of *waiter, in the order they came
	nextAsk  time.Duration
	passes   []*Pass // released ones, for the next requests

	seq      uint64
	flight   *flight
	lastCall time.Duration // when the last one was answered
	trip     time.Duration // how long calls take lately
	wake     bool          // the loop should look again
	stopping bool
}

func newBook(cfg Config) *book {
	return &book{cfg: cfg, times: usual(), subjects: map[string]*subject{}, nextAsk: never}
}

func (b *book) takeWake() bool {
	wake := b.wake
	b.wake = false
	return wake
}

// admit admits a request from what is at hand, or refuses it by what is known. Both nil:
// the ledger has to be asked.
func (b *book) admit(m *Manager, want Want, now time.Duration) (*Pass, error) {
	if b.stopping {
		return nil, errStopping
	}
	p := b.newPass(m)
	if b.take(p, &want, now) {
		return p, nil
	}
	b.passes = append(b.passes, p)
	if err := b.knownRefusal(&want, now); err != nil {
		return nil, err
	}
	if b.flight != nil && now-b.flight.sent > b.cfg.MaxWait {
		return nil, errNoAnswer // the outage is known: do not let requests pile up
	}
	return nil, nil
}

func (b *book) newPass(m *Manager) *Pass {
	if n := len(b.passes); n > 0 {
		p := b.passes[n-1]
		b.passes = b.passes[:n-1]
		return p
	}
	return &Pass{m: m}
}

// take gives p its part of every subject, all or none.
func (b *book) take(p *Pass, want *Want, now time.Duration) bool {
	p.parts, p.tokens, p.leased = p.inline[:0], want.Tokens, want.Tokens
	for i := range want.Subjects {
		if !b.find(p, want, &want.Subjects[i], now) {
			return false
		}
	}
	for i := range p.parts {
		b.use(&p.parts[i], want.Tokens, now)
	}
	return true
}

// find adds what p can have of one subject, and takes nothing yet.
func (b *book) find(p *Pass, want *Want, w *Subject, now time.Duration) bool {
	s := b.subjects[w.Name]
	if s == nil {
		return *w == Subject{Name: w.Name}
	}
	for i := range p.parts {
		if p.parts[i].s == s {
			return true // named twice
		}
	}
	if s.requests.limit != w.RPM || s.tokens.limit != w.TPM || s.slots.limit != w.Parallel {
		b.relimit(s, w, now)
	}
	x := part{s: s, slot: w.Parallel != 0}
	if w.RPM != 0 {
		if x.requests = s.requests.pick(1, now); x.requests == nil {
			return false
		}
	}
	if n := want.need(w, TPM); n != 0 {
		if x.tokens = s.tokens.pick(n, now); x.tokens == nil {
			return false
		}
	}
	if x.slot && !s.slots.room(now) {
		return false
	}
	p.parts = append(p.parts, x)
	return true
}

// use takes what find has found.
func (b *book) use(x *part, tokens int64, now time.Duration) {
	s := x.s
	more := false
	if x.requests != nil {
		more = s.requests.take(x.requests, 1, &b.times, now)
	}
	if x.tokens != nil {
		more = s.tokens.take(x.tokens, tokens, &b.times, now) || more
	}
	if x.slot {
		s.slots.take(now)
	}
	s.passes++
	s.lastUse = now
	if more {
		b.flag(s)
	}
}

// knownRefusal is the refusal that the ledger would give, where that is known.
func (b *book) knownRefusal(want *Want, now time.Duration) error {
	for i := range want.Subjects {
		w := &want.Subjects[i]
		for _, k := range [...]Kind{RPM, TPM, Parallel} {
			if need := want.need(w, k); need > 0 && need > w.limit(k) || w.limit(k) < 0 {
				return &Refused{Kind: k, Subject: w.Name, Limit: max(w.limit(k), 0), Remaining: max(w.limit(k), 0), Never: true}
			}
		}
		s := b.subjects[w.Name]
		if s == nil {
			continue
		}
		for _, p := range [...]*permits{&s.requests, &s.tokens} {
			if r, need := p.refused, want.need(w, p.kind); need > 0 && need >= r.need && now < r.until {
				return &Refused{Kind: p.kind, Subject: w.Name, Limit: p.limit, Remaining: p.atHand(now) + p.free, RetryAfter: r.retryAt - now}
			}
		}
		if w.Parallel > 0 && int64(s.waiters) > w.Parallel {
			return b.noSlot(s) // more wait than could run
		}
	}
	return nil
}

func (b *book) noSlot(s *subject) error {
	return &Refused{Kind: Parallel, Subject: s.name, Limit: s.slots.limit, Remaining: s.slots.free, RetryAfter: parallelRetry}
}

// settle corrects a pass's charge. What was an overshoot is not taken back.
func (b *book) settle(p *Pass, actual int64, now time.Duration) {
	back := min(max(p.tokens-actual, 0), p.leased)
	p.leased -= back
	for i := range p.parts {
		x := &p.parts[i]
		if x.s.tokens.limit == 0 {
			continue
		}
		switch t := &x.s.tokens; {
		case actual > p.tokens:
			t.overshoot(actual-p.tokens, now)
		case x.tokens != nil:
			t.refund(x.tokens, back, now)
		}
		b.hear(x.s, now+b.times.fast)
	}
	p.tokens = actual
}

// unuse takes back all that a pass has used, but for its slots.
func (b *book) unuse(p *Pass, now time.Duration) {
	for i := range p.parts {
		x := &p.parts[i]
		if x.requests != nil {
			x.s.requests.refund(x.requests, 1, now)
		}
		if x.tokens != nil {
			x.s.tokens.refund(x.tokens, p.leased, now)
		}
		b.hear(x.s, now+b.times.fast)
	}
	p.tokens, p.leased = 0, 0
}

// release ends a pass.
func (b *book) release(p *Pass, now time.Duration) {
	waiting := false
	for i := range p.parts {
		s := p.parts[i].s
		s.passes--
		if !p.parts[i].slot {
			continue
		}
		if b.stopping {
			b.recall(s, now)
		}
		if s.slots.put(b.times.calm, now) {
			b.hear(s, s.slots.giveAt)
			if s.slots.giveAt == now { // somebody else may wait for it
				b.nextAsk = min(b.nextAsk, max(now, b.lastCall+minRest/2))
			}
		}
		waiting = waiting || s.waiters > 0
	}
	clear(p.inline[:])
	p.parts, p.tokens = nil, 0
	b.passes = append(b.passes, p)
	if waiting {
		b.serveWaiters(now)
	}
}
