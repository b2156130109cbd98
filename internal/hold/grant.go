package hold

import (
	"context"
	"math"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

const (
	// maxWants bounds one grant, and so one transaction of the collector.
	maxWants = 512
	// desiredHolds is how many further holds of the same size a grant asks for at
	// least; the ledger gives them when the budget is far from its end.
	desiredHolds = 8
	// retryUnusable is the pause before money is asked for again that came too late
	// to be used: at a period's end the next answer would be the same.
	retryUnusable = 50 * time.Millisecond
)

// grantLoop asks for the money that waiting requests need, one numbered grant at a time.
func (m *Manager) grantLoop(ctx context.Context) {
	for {
		select {
		case <-m.wakeGrant:
		case <-ctx.Done():
			return
		}
		for m.waiting() && m.renew(ctx) {
			if p := m.nextGrant(); p != nil {
				m.exchange(ctx, p)
			}
		}
	}
}

func (m *Manager) waiting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queue.Len() > 0
}

// renew makes sure that the holder is valid before money is asked for: a grant to
// an expired holder could not be used.
func (m *Manager) renew(ctx context.Context) bool {
	for attempt := 0; ctx.Err() == nil && !m.isFenced(); attempt++ {
		if m.isValid() {
			return true
		}
		if _, err := m.heartbeat(ctx); err != nil {
			backoff(ctx, attempt)
		}
	}
	return false
}

// grant is a numbered grant with those who wait for it, parallel to its wants.
type grant struct {
	req       *ledgerv1.GrantRequest
	waiters   []*waiter
	firstSent time.Duration
}

// nextGrant serves from leases at hand who can be served and begins a grant for the
// others, or returns nil when nobody is left.
func (m *Manager) nextGrant() *grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &grant{firstSent: m.now()}
	req := &ledgerv1.GrantRequest{Holder: m.cfg.Holder}
	for m.queue.Len() > 0 && len(p.waiters) < maxWants {
		w := m.queue.Front().Value.(*waiter)
		if m.serve(w, w.want.Amount, p.firstSent) {
			continue
		}
		m.unplace(w)
		p.waiters = append(p.waiters, w)
		req.Wants = append(req.Wants, &ledgerv1.Want{
			Entities: w.want.Entities, AmountNano: w.want.Amount, MinAmountNano: w.want.Min,
			DesiredNano: m.desired(w.want, m.grantSeq+1, p.firstSent),
		})
	}
	if len(p.waiters) == 0 {
		return nil
	}
	m.grantSeq++
	m.pending, m.pendingSince = true, p.firstSent
	req.Seq = m.grantSeq
	p.req = req
	return p
}

// desired is what a grant asks for beyond the amount itself: some further holds, or
// what the slowest of the entities spends in paceWindow. The latter is for all who
// wait, so that only the first of an entity asks for it.
func (m *Manager) desired(w Want, seq uint64, now time.Duration) int64 {
	recent := int64(math.MaxInt64)
	for _, name := range w.Entities {
		e := m.entities[name]
		if e == nil || e.wished == seq {
			recent = 0
			continue
		}
		e.wished = seq
		recent = min(recent, e.pace.recent(now))
	}
	if w.Amount > math.MaxInt64/desiredHolds {
		return math.MaxInt64
	}
	return max(w.Amount*desiredHolds, recent)
}

// exchange repeats a grant under its number until it is answered. It is never
// abandoned, also when everybody who waited has gone: the ledger may have moved the
// money already, and only the answer tells.
func (m *Manager) exchange(ctx context.Context, p *grant) {
	for attempt := 0; ctx.Err() == nil && !m.isFenced(); attempt++ {
		resp, err := m.send(ctx, p.req)
		switch {
		case err != nil:
			if attempt == 0 {
				m.cfg.Logger.Warn("cannot get an answer to a grant; repeating it", "seq", p.req.GetSeq(), "error", err)
			}
		case resp.GetSeq() != p.req.GetSeq():
			// A late answer to an older grant: its leases were taken or come with a
			// replay, so taking them here would serve the money twice.
		case resp.GetStatus() == ledgerv1.GrantResponse_STATUS_RENEW_FIRST:
			if _, err := m.heartbeat(ctx); err == nil && attempt == 0 {
				continue
			}
		case resp.GetStatus() == ledgerv1.GrantResponse_STATUS_OK, resp.GetStatus() == ledgerv1.GrantResponse_STATUS_REPLAYED:
			m.answer(p, resp)
			return
		}
		backoff(ctx, attempt)
	}
}

func (m *Manager) send(ctx context.Context, req *ledgerv1.GrantRequest) (*ledgerv1.GrantResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.GrantTimeout)
	defer cancel()
	return m.cfg.Client.Grant(ctx, req)
}

// answer takes the leases of a grant and serves those who waited for it. After a
// replay the verdicts are lost: who cannot be served is asked for again.
func (m *Manager) answer(p *grant, resp *ledgerv1.GrantResponse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = false
	m.sawReaps(resp.GetReaps())
	for _, l := range resp.GetLeases() {
		m.add(l, p.firstSent, resp.GetReaps())
	}
	now := m.now()
	results := resp.GetResults()
	if len(results) != len(p.waiters) {
		results = make([]*ledgerv1.WantResult, len(p.waiters))
	}
	var refused []int
	for i, w := range p.waiters {
		switch {
		case w.over:
		case results[i].GetOutcome() == ledgerv1.WantResult_OUTCOME_GRANTED:
			m.granted(w, results[i].GetGrantedNano(), now)
		case results[i].GetOutcome() == ledgerv1.WantResult_OUTCOME_UNSPECIFIED:
			m.enqueue(w)
		default:
			refused = append(refused, i)
		}
	}
	for _, i := range refused { // after the granted ones, whose money is counted in the leases
		m.refused(p.waiters[i], refusedFrom(results[i]), now)
	}
	m.checkEmpty()
}

func (m *Manager) granted(w *waiter, amount int64, now time.Duration) {
	if amount < w.want.Amount {
		m.urgentUntil = now + urgency
	}
	if amount > 0 && m.serve(w, amount, now) {
		return
	}
	w.refusal = nil
	m.park(w, now+retryUnusable)
}

// refused serves w less where less serves, lets it wait while money that is only held
// may come back (from this worker, which knows when, or from others, which have to be
// asked about again), and else ends its wait.
func (m *Manager) refused(w *waiter, r *Refused, now time.Duration) {
	if w.over {
		return
	}
	m.urgentUntil = now + urgency
	amount := min(w.want.Amount, m.most(w.want.Entities, now))
	if enough := amount == w.want.Amount || w.want.Min > 0 && amount >= w.want.Min; enough && m.serve(w, amount, now) {
		return
	}
	if w.patience == 0 {
		w.patience = now + heldPatience
	}
	switch {
	case r.Outcome != Held || now >= w.patience:
		m.finish(w, r)
	case m.recall(r.Entity):
		w.refusal = r
		m.park(w, w.patience)
	default:
		w.refusal = nil
		m.park(w, min(now+heldAgain, w.patience))
	}
}
