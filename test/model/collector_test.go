package model

import (
	"context"
	"errors"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/store"
)

// serve answers a message as a collector does: one transaction of the store each. It
// runs outside of the bubble.
func (w *world) serve(m *message) answer {
	ctx, holder := context.Background(), m.from.holder
	switch req := m.req.(type) {
	case *ledgerv1.HeartbeatRequest:
		states, err := w.ledger.Heartbeat(ctx, []store.HolderID{holder}, ttl)
		if err != nil {
			return answer{err: err}
		}
		return answer{resp: &ledgerv1.HeartbeatResponse{
			SentMonotonicNs: req.GetSentMonotonicNs(), TtlMs: ttl.Milliseconds(), Reaps: states[0].Reaps, Fenced: states[0].Fenced,
		}}
	case *ledgerv1.GrantRequest:
		res, err := w.ledger.Grant(ctx, decodeGrant(holder, req))
		return answer{resp: encodeGrant(req.GetSeq(), res), err: err}
	case *ledgerv1.ReturnRequest:
		return w.serveReturn(holder, req)
	case *ledgerv1.TrimRequest:
		var leases []store.TrimLease
		for _, l := range req.GetLeases() {
			leases = append(leases, store.TrimLease{LeaseRef: refOf(l.GetLease()), To: l.GetToNano()})
		}
		return answer{resp: &ledgerv1.TrimResponse{}, err: w.ledger.Trim(ctx, holder, leases)}
	}
	last, err := w.ledger.Commit(ctx, holder, m.rows)
	if errors.Is(err, store.ErrGap) {
		err = nil // the ack tells from where to send again
	}
	return answer{resp: last, err: err}
}

func (w *world) serveReturn(holder store.HolderID, req *ledgerv1.ReturnRequest) answer {
	var leases []store.ReturnLease
	for _, l := range req.GetLeases() {
		leases = append(leases, store.ReturnLease{LeaseRef: refOf(l.GetLease()), After: l.GetAfterSeq()})
	}
	pending, err := w.ledger.Return(context.Background(), holder, leases)
	if err != nil {
		return answer{err: err}
	}
	waits := map[store.LeaseRef]bool{}
	resp := &ledgerv1.ReturnResponse{}
	for _, ref := range pending {
		waits[ref] = true
		resp.Pending = append(resp.Pending, &ledgerv1.LeaseRef{Seq: ref.Seq, BudgetId: ref.Budget})
	}
	for _, l := range leases {
		if !waits[l.LeaseRef] {
			resp.Closed = append(resp.Closed, &ledgerv1.LeaseRef{Seq: l.Seq, BudgetId: l.Budget})
		}
	}
	return answer{resp: resp}
}

func decodeGrant(holder store.HolderID, req *ledgerv1.GrantRequest) store.Grant {
	g := store.Grant{Holder: holder, Seq: req.GetSeq()}
	for _, want := range req.GetWants() {
		g.Wants = append(g.Wants, store.Want{
			Entities: want.GetEntities(), Amount: want.GetAmountNano(), Min: want.GetMinAmountNano(), Desired: want.GetDesiredNano(),
		})
	}
	return g
}

func encodeGrant(seq uint64, r store.GrantResult) *ledgerv1.GrantResponse {
	resp := &ledgerv1.GrantResponse{Seq: seq, Reaps: r.Reaps, Status: map[store.GrantStatus]ledgerv1.GrantResponse_Status{
		store.GrantOK: ledgerv1.GrantResponse_STATUS_OK, store.GrantRenewFirst: ledgerv1.GrantResponse_STATUS_RENEW_FIRST,
		store.GrantReplayed: ledgerv1.GrantResponse_STATUS_REPLAYED,
	}[r.Status]}
	for _, l := range r.Leases {
		resp.Leases = append(resp.Leases, &ledgerv1.Lease{
			Seq: l.Seq, BudgetId: l.Budget, Entity: l.Entity, GrantedNano: l.Granted, UntilInMs: l.UntilIn.Milliseconds(),
			State: map[store.LeaseState]ledgerv1.Lease_State{
				store.LeaseOpen: ledgerv1.Lease_STATE_OPEN, store.LeaseLost: ledgerv1.Lease_STATE_LOST, store.LeaseClosed: ledgerv1.Lease_STATE_CLOSED,
			}[l.State],
		})
	}
	for _, v := range r.Results {
		resp.Results = append(resp.Results, &ledgerv1.WantResult{
			GrantedNano: v.Granted, RefusedEntity: v.Entity, LimitNano: v.Limit, SpentNano: v.Spent,
			Outcome: map[store.Outcome]ledgerv1.WantResult_Outcome{
				store.Granted: ledgerv1.WantResult_OUTCOME_GRANTED, store.Exceeded: ledgerv1.WantResult_OUTCOME_EXCEEDED,
				store.Held: ledgerv1.WantResult_OUTCOME_HELD, store.UnknownEntity: ledgerv1.WantResult_OUTCOME_UNKNOWN_ENTITY,
			}[v.Outcome],
		})
	}
	return resp
}

// decodeRecord takes over what money and identity need.
func decodeRecord(r *ledgerv1.SpendRecord) store.Record {
	rec := store.Record{
		Seq: r.GetSeq(), RequestID: r.GetRequestId(), KeyID: r.GetKeyId(), Tags: r.GetTags(), HTTPStatus: int(r.GetHttpStatus()),
		Start: time.UnixMilli(r.GetStartMs()), End: time.UnixMilli(r.GetEndMs()), Cost: r.GetCostNano(), Hold: r.GetHoldNano(), Attempts: int(r.GetAttempts()),
		Status: store.StatusSuccess,
	}
	if r.GetStatus() == ledgerv1.SpendRecord_STATUS_INTERRUPTED {
		rec.Status = store.StatusInterrupted
	}
	for _, c := range r.GetCharges() {
		rec.Charges = append(rec.Charges, store.LeaseCharge{LeaseRef: refOf(c.GetLease()), Cost: c.GetCostNano(), Overrun: c.GetOverrunNano()})
	}
	return rec
}

func refOf(r *ledgerv1.LeaseRef) store.LeaseRef {
	return store.LeaseRef{Seq: r.GetSeq(), Budget: r.GetBudgetId()}
}
