package hold

import (
	"context"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// Want is what one request needs from each of its entities.
type Want struct {
	Entities []string // that have a budget; none: nothing has to be held
	Amount   int64    // the request's hold, nano-dollars; below 1 it is taken as 1
	Min      int64    // a smaller hold that also serves; 0: Amount only
}

// Hold is money held for one request, on one lease of each of its entities. It is
// used by one request's goroutine and ends with exactly one Settle or Release.
type Hold struct {
	m      *Manager
	amount int64
	leases []*lease
	inline [3]*lease // so that few entities need no second allocation
	over   bool
}

// Hold takes money for a request: from the leases at hand without asking anybody,
// else with the next grant. It waits at most Config.MaxWait. Errors: *[Refused],
// [ErrUnavailable], [ErrFenced], or ctx's own.
func (m *Manager) Hold(ctx context.Context, w Want) (*Hold, error) {
	w.Amount = max(w.Amount, 1)
	h := &Hold{m: m, amount: w.Amount}
	if len(w.Entities) == 0 {
		return h, nil
	}
	now := m.now()
	m.mu.Lock()
	if !m.stopping && m.take(h, w.Entities, w.Amount, now) {
		m.mu.Unlock()
		return h, nil
	}
	m.mu.Unlock()
	return m.wait(ctx, h, w)
}

// Amount is what is held of each entity, in nano-dollars: between the want's Min
// and Amount, or what Raise made of it.
func (h *Hold) Amount() int64 { return h.amount }

// Leases names the leases the hold stands on, for the journal.
func (h *Hold) Leases() []*ledgerv1.LeaseRef {
	refs := make([]*ledgerv1.LeaseRef, len(h.leases))
	for i, l := range h.leases {
		refs[i] = l.ref
	}
	return refs
}

// Raise makes the hold amount in total, on the same leases, before a further
// attempt that may be billed too. It returns [ErrNoRoom] when a lease cannot
// give it, and then nothing has changed: the attempt must not be made. A lease never
// grows, so there is nothing to wait for.
func (h *Hold) Raise(ctx context.Context, amount int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := h.m
	m.mu.Lock()
	defer m.mu.Unlock()
	more := amount - h.amount
	if more <= 0 {
		return nil
	}
	now := m.now()
	if h.over || m.fenced || now >= m.validUntil {
		return ErrNoRoom
	}
	for _, l := range h.leases {
		if l.avail < more || !m.usable(l, now) {
			return ErrNoRoom
		}
	}
	for _, l := range h.leases {
		l.avail -= more
	}
	h.amount = amount
	return nil
}

// Charges is what a record of this cost does to each lease. It changes nothing.
func (h *Hold) Charges(cost int64) []*ledgerv1.LeaseCharge {
	cost = max(cost, 0)
	over := max(0, cost-h.amount)
	charges := make([]*ledgerv1.LeaseCharge, len(h.leases))
	for i, l := range h.leases {
		charges[i] = &ledgerv1.LeaseCharge{Lease: l.ref, CostNano: cost, OverrunNano: over}
	}
	return charges
}

// Settle ends the hold: what was held goes out and cost, overrun included, goes
// in, in one step. seq is the number of the request's record, given at its close.
// Only the first Settle or Release counts.
func (h *Hold) Settle(cost int64, seq uint64) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.over {
		return
	}
	h.over = true
	h.m.put(h, max(cost, 0), seq)
}

// Release ends the hold of a request that was never dispatched nor journaled.
func (h *Hold) Release() { h.Settle(0, 0) }
