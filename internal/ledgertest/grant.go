package ledgertest

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// Heartbeat follows the rule HEARTBEAT.
func (l *Ledger) Heartbeat(_ context.Context, req *ledgerv1.HeartbeatRequest) (*ledgerv1.HeartbeatResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.arrive("Heartbeat"); err != nil {
		return nil, err
	}
	id := holderID(req.GetHolder())
	h := l.holders[id]
	if h == nil {
		h = &holder{}
		l.holders[id] = h
	}
	if !h.closed {
		h.expires = time.Now().Add(l.cfg.TTL)
	}
	return &ledgerv1.HeartbeatResponse{
		SentMonotonicNs: req.GetSentMonotonicNs(),
		TtlMs:           l.cfg.TTL.Milliseconds(),
		Reaps:           h.reaps,
		Fenced:          h.closed,
	}, nil
}

// Grant follows the rule GRANT.
func (l *Ledger) Grant(_ context.Context, req *ledgerv1.GrantRequest) (*ledgerv1.GrantResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.arrive("Grant"); err != nil {
		return nil, err
	}
	id := holderID(req.GetHolder())
	h := l.holders[id]
	resp := &ledgerv1.GrantResponse{Seq: req.GetSeq()}
	if h == nil || h.closed || !h.expires.After(time.Now()) {
		resp.Status = ledgerv1.GrantResponse_STATUS_RENEW_FIRST
		return resp, nil
	}
	resp.Reaps = h.reaps
	if req.GetSeq() <= h.grantSeq {
		l.replay(id, resp)
		return resp, nil
	}
	if req.GetSeq() > h.grantSeq+1 {
		l.fail("Grant: %s sent seq %d after %d", id, req.GetSeq(), h.grantSeq)
		return nil, status.Error(codes.FailedPrecondition, "grant numbers have a gap")
	}
	h.grantSeq = req.GetSeq()
	l.grant(id, req, resp)
	l.audit("Grant")
	return resp, nil
}

func (l *Ledger) replay(id string, resp *ledgerv1.GrantResponse) {
	resp.Status = ledgerv1.GrantResponse_STATUS_REPLAYED
	for k, x := range l.leases {
		if k.holder == id && k.seq == resp.GetSeq() && x.state != ledgerv1.Lease_STATE_CLOSED {
			resp.Leases = append(resp.Leases, l.wireLease(k, x))
		}
	}
}

// share is what one grant takes from one budget.
type share struct {
	budget                 *budget
	granted, desired, hold int64
}

func (l *Ledger) grant(id string, req *ledgerv1.GrantRequest, resp *ledgerv1.GrantResponse) {
	resp.Status = ledgerv1.GrantResponse_STATUS_OK
	var shares []*share
	find := func(b *budget) *share {
		i := slices.IndexFunc(shares, func(s *share) bool { return s.budget == b })
		if i < 0 {
			shares = append(shares, &share{budget: b})
			i = len(shares) - 1
		}
		return shares[i]
	}
	for _, w := range req.GetWants() {
		res := l.decide(w)
		resp.Results = append(resp.Results, res)
		if res.GetOutcome() != ledgerv1.WantResult_OUTCOME_GRANTED {
			continue
		}
		for _, entity := range w.GetEntities() {
			s := find(l.current[entity])
			s.granted += res.GetGrantedNano()
			s.desired += w.GetDesiredNano()
			s.hold = w.GetAmountNano()
			s.budget.Leased += res.GetGrantedNano()
		}
	}
	for _, s := range shares {
		if s.granted == 0 {
			continue
		}
		free := s.budget.Limit - s.budget.Spent - s.budget.Leased
		spare := min(free, l.cfg.Spare(s.desired, s.hold, free, l.live()))
		s.budget.Leased += spare
		k := leaseKey{id, req.GetSeq(), s.budget.id}
		x := &lease{budget: s.budget, granted: s.granted + spare, state: ledgerv1.Lease_STATE_OPEN}
		l.leases[k] = x
		resp.Leases = append(resp.Leases, l.wireLease(k, x))
	}
}

// decide judges one want against what is free; it opens the next period of a
// budget whose time is over.
func (l *Ledger) decide(w *ledgerv1.Want) *ledgerv1.WantResult {
	least := w.GetAmountNano()
	if w.GetMinAmountNano() > 0 {
		least = min(least, w.GetMinAmountNano())
	}
	granted := w.GetAmountNano()
	for _, entity := range w.GetEntities() {
		b := l.current[entity]
		if b == nil {
			return &ledgerv1.WantResult{Outcome: ledgerv1.WantResult_OUTCOME_UNKNOWN_ENTITY, RefusedEntity: entity}
		}
		if !b.until.IsZero() && !time.Now().Before(b.until) {
			b = l.addBudget(entity, b.Limit, time.Time{})
		}
		free := b.Limit - b.Spent - b.Leased
		if free < least {
			return l.refuse(b, entity, least)
		}
		granted = min(granted, free)
	}
	return &ledgerv1.WantResult{Outcome: ledgerv1.WantResult_OUTCOME_GRANTED, GrantedNano: granted}
}

func (l *Ledger) refuse(b *budget, entity string, least int64) *ledgerv1.WantResult {
	spent := b.Spent
	for _, x := range l.leases {
		if x.budget == b && x.state == ledgerv1.Lease_STATE_OPEN {
			spent += x.spent
		}
	}
	res := &ledgerv1.WantResult{
		Outcome: ledgerv1.WantResult_OUTCOME_HELD, RefusedEntity: entity, LimitNano: b.Limit, SpentNano: spent,
	}
	if b.Limit-spent < least {
		res.Outcome = ledgerv1.WantResult_OUTCOME_EXCEEDED
	}
	if !b.until.IsZero() {
		res.ResetMs = b.until.UnixMilli()
	}
	return res
}

func (l *Ledger) wireLease(k leaseKey, x *lease) *ledgerv1.Lease {
	out := &ledgerv1.Lease{
		Seq: k.seq, BudgetId: k.budget, Entity: x.budget.entity, GrantedNano: x.granted, State: x.state,
	}
	if !x.budget.until.IsZero() {
		out.UntilInMs = max(1, time.Until(x.budget.until).Milliseconds())
	}
	return out
}

// live counts holders that may still take money.
func (l *Ledger) live() int {
	n := 0
	for _, h := range l.holders {
		if !h.closed && h.expires.After(time.Now()) {
			n++
		}
	}
	return n
}

// wholeHolds is the default Config.Spare.
func wholeHolds(desired, hold, free int64, holders int) int64 {
	if hold <= 0 {
		return 0
	}
	spare := min(desired, free/int64(2*max(1, holders)))
	return spare / hold * hold
}
