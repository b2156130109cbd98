package limit

import (
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// answer takes the answer to the call that is under way.
func (b *book) answer(resp *ledgerv1.LimitsResponse, now time.Duration) {
	f := b.flight
	b.flight, b.lastCall, b.trip = nil, now, (b.trip+now-f.sent+1)/2
	if ms := resp.GetWindowMs(); ms > 0 {
		b.times = timesOf(millis(ms), millis(resp.GetShortMs()), millis(resp.GetCalmMs()), millis(resp.GetCellMs()))
	}
	for i, m := range f.meters {
		grant := &ledgerv1.LimitGrant{} // of a replayed call nothing is known but that it was heard
		if i < len(resp.GetGrants()) {
			grant = resp.GetGrants()[i]
		}
		m.closed(grant.GetSettled(), b.times.window+b.times.cell, now)
		switch {
		case resp.GetReplayed():
		case m.p != nil:
			m.p.granted(grant, f.sent, now, &b.times)
		default:
			m.s.slots.granted(grant, f.sent, now)
		}
	}
	for i, w := range f.waiters {
		w.asked = false
		if w.over {
			continue
		}
		if i < len(resp.GetVerdicts()) {
			b.verdict(w, f, resp.GetVerdicts()[i], now)
			continue
		}
		b.park(w, now)
	}
	f.settle(b, now)
}

// settle schedules all that the call touched.
func (f *flight) settle(b *book, now time.Duration) {
	for _, s := range f.touched {
		b.schedule(s, now)
	}
}

// settle is for a call that was not needed.
func (a *asking) settle() { a.flight.settle(a.b, a.now) }

// closed notes where the ledger counts what was returned.
func (m *meterRef) closed(settled int64, counts, now time.Duration) {
	for _, g := range m.over {
		l := g.lease
		if l == nil {
			continue
		}
		l.state = leaseClosed
		if settled > 0 {
			l.cell, l.counts = min(l.cell, settled), min(l.counts, now+counts)
		}
		if l.refund > 0 && settled > 0 {
			m.p.correct(l.cell, l.refund)
		}
	}
}

// granted takes what the ledger gave of a requests or tokens limit.
func (p *permits) granted(g *ledgerv1.LimitGrant, sent, now time.Duration, t *times) {
	use := millis(g.GetUseMs())
	p.known, p.calm, p.free, p.resetAt = true, g.GetCalm(), g.GetFree(), now+millis(g.GetResetMs())
	if !p.calm { // others need what would rest here
		for _, l := range p.leases {
			l.deadline = min(l.deadline, now+t.short)
			l.lead = min(l.lead, t.short/4)
		}
	}
	if g.GetAmount() <= 0 {
		return
	}
	p.leases = append(p.leases, &lease{
		cell: g.GetCell(), granted: g.GetAmount(), low: g.GetAmount() / 4, deadline: sent + use, lead: use / 4,
		counts: now + use + t.window + t.cell,
	})
}

// granted takes what the ledger gave of a parallel limit.
func (s *slots) granted(g *ledgerv1.LimitGrant, sent, now time.Duration) {
	s.have += g.GetAmount()
	s.told = s.have
	s.valid = sent + millis(g.GetUseMs())
	s.shelf, s.keep, s.free = g.GetRest(), millis(g.GetKeepMs()), g.GetFree()
	if s.have > s.inUse {
		s.giveAt = min(s.giveAt, now+s.pause(millis(g.GetUseMs())))
	}
}

// verdict ends the wait of a request, or has it asked for again.
func (b *book) verdict(w *waiter, f *flight, v *ledgerv1.LimitVerdict, now time.Duration) {
	if v.GetGranted() {
		if !b.serve(w, now) {
			b.park(w, now) // it came too late to be used, or somebody was faster
		}
		return
	}
	if int(v.GetMeter()) >= len(f.meters) {
		b.park(w, now)
		return
	}
	m := f.meters[v.GetMeter()]
	retry := millis(v.GetRetryMs())
	if m.p == nil {
		b.refusedSlot(w, m.s, retry < 0, now)
		return
	}
	p := m.p
	w.refused = &Refused{Kind: p.kind, Subject: m.s.name, Limit: p.limit, Remaining: p.atHand(now) + p.free, RetryAfter: max(retry, 0), Never: retry < 0}
	if retry > 0 {
		need := int64(1)
		if p.kind == TPM {
			need = w.want.Tokens
		}
		p.refused = refusal{need: need, until: now + min(retry, max(b.times.cell, retry/8)), retryAt: now + retry}
	}
	b.finish(w, w.refused)
}

// slotAgain is how soon the ledger is asked again about a slot.
const slotAgain = 40 * time.Millisecond

// refusedSlot keeps w for a moment: a request elsewhere may have ended just now.
func (b *book) refusedSlot(w *waiter, s *subject, never bool, now time.Duration) {
	w.refused = &Refused{Kind: Parallel, Subject: s.name, Limit: s.slots.limit, Remaining: s.slots.free, RetryAfter: parallelRetry}
	switch {
	case b.serve(w, now): // it has ended here
	case never || now-w.joined >= b.cfg.Patience:
		b.finish(w, w.refused)
	default:
		b.park(w, now+slotAgain)
	}
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
