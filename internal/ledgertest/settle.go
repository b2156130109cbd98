package ledgertest

import (
	"context"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// Return follows the rule RETURN.
func (l *Ledger) Return(_ context.Context, req *ledgerv1.ReturnRequest) (*ledgerv1.ReturnResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.arrive("Return"); err != nil {
		return nil, err
	}
	id := holderID(req.GetHolder())
	resp := &ledgerv1.ReturnResponse{}
	for _, r := range req.GetLeases() {
		if h := l.holders[id]; h == nil || h.cursor < r.GetAfterSeq() {
			resp.Pending = append(resp.Pending, r.GetLease())
			continue
		}
		if x := l.leases[keyOf(id, r.GetLease())]; x != nil {
			x.close()
		}
		resp.Closed = append(resp.Closed, r.GetLease())
	}
	l.audit("Return")
	return resp, nil
}

// Trim follows the rule TRIM.
func (l *Ledger) Trim(_ context.Context, req *ledgerv1.TrimRequest) (*ledgerv1.TrimResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.arrive("Trim"); err != nil {
		return nil, err
	}
	id := holderID(req.GetHolder())
	for _, t := range req.GetLeases() {
		x := l.leases[keyOf(id, t.GetLease())]
		if x == nil || x.state != ledgerv1.Lease_STATE_OPEN || x.granted <= t.GetToNano() {
			continue
		}
		x.budget.Leased -= x.granted - t.GetToNano()
		x.granted = t.GetToNano()
	}
	l.audit("Trim")
	return &ledgerv1.TrimResponse{}, nil
}

// Reap charges the open leases of a holder as lost, as a reaper does when the
// holder's heartbeats stay away.
func (l *Ledger) Reap(holder *ledgerv1.Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := holderID(holder)
	for k, x := range l.leases {
		if k.holder != id || x.state != ledgerv1.Lease_STATE_OPEN {
			continue
		}
		x.lost = max(0, x.granted-(x.spent-x.overrun))
		x.state = ledgerv1.Lease_STATE_LOST
		x.budget.Leased -= x.granted
		x.budget.Spent += x.spent + x.lost
		x.budget.Overrun += x.overrun
		x.budget.Lost += x.lost
	}
	if h := l.holders[id]; h != nil {
		h.reaps++
	}
	l.audit("Reap")
}

// Fence closes a holder with all its leases, as its adoption does.
func (l *Ledger) Fence(holder *ledgerv1.Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := holderID(holder)
	for k, x := range l.leases {
		if k.holder == id {
			x.close()
		}
	}
	if h := l.holders[id]; h != nil {
		h.closed = true
	}
	l.audit("Fence")
}

// close is the rule CLOSE_LEASE.
func (x *lease) close() {
	switch x.state {
	case ledgerv1.Lease_STATE_OPEN:
		x.budget.Spent += x.spent
		x.budget.Overrun += x.overrun
		x.budget.Leased -= x.granted
	case ledgerv1.Lease_STATE_LOST:
		x.budget.Spent -= x.lost
		x.budget.Lost -= x.lost
		x.lost = 0
	}
	x.state = ledgerv1.Lease_STATE_CLOSED
}

// Commit follows the rule COMMIT for records of one holder in ascending order and
// returns the cursor.
func (l *Ledger) Commit(of *ledgerv1.Holder, records ...*ledgerv1.SpendRecord) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.arrive("Record"); err != nil {
		return 0, err
	}
	id := holderID(of)
	h := l.holders[id]
	if h == nil {
		h = &holder{}
		l.holders[id] = h
	}
	for _, r := range records {
		if r.GetSeq() > h.cursor+1 {
			break // a gap: what is missing comes first
		}
		if r.GetSeq() <= h.cursor {
			continue // known
		}
		for _, c := range r.GetCharges() {
			l.charge(id, c)
		}
		h.cursor = r.GetSeq()
	}
	l.audit("Record")
	return h.cursor, nil
}

func (l *Ledger) charge(id string, c *ledgerv1.LeaseCharge) {
	x := l.leases[keyOf(id, c.GetLease())]
	if x == nil {
		l.fail("Record: no lease %v of %s", c.GetLease(), id)
		return
	}
	cost, over := c.GetCostNano(), c.GetOverrunNano()
	switch x.state {
	case ledgerv1.Lease_STATE_OPEN:
		x.spent += cost
		x.overrun += over
		if x.spent-x.overrun > x.granted {
			l.fail("Record: lease %v is spent beyond what was granted", c.GetLease())
		}
	case ledgerv1.Lease_STATE_LOST:
		take := min(cost-over, x.lost)
		x.lost -= take
		x.spent += cost
		x.budget.Lost -= take
		x.budget.Spent += cost - take
		x.budget.Overrun += cost - take
	default:
		l.fail("Record: lease %v was closed before its record came", c.GetLease())
		x.budget.Spent += cost
		x.budget.Overrun += cost
	}
}

func keyOf(id string, ref *ledgerv1.LeaseRef) leaseKey {
	return leaseKey{id, ref.GetSeq(), ref.GetBudgetId()}
}
