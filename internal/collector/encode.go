package collector

import (
	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/store"
)

// encodeKey is a key as a worker admits requests by it. Only entities that have a
// budget are named.
func encodeKey(a *store.Admission) *ledgerv1.Key {
	k := &a.Key
	limit := int64(-1)
	if a.Limit != nil {
		limit = *a.Limit
	}
	entities := make([]*ledgerv1.Entity, len(a.Entities))
	for i, name := range a.Entities {
		entities[i] = &ledgerv1.Entity{Name: name, Budgeted: true}
	}
	limits := keyLimits(k)
	for i := range a.Related {
		limits = append(limits, limitsOf(a.Related[i].Name(), a.Related[i].SettingsJSON)...)
	}
	return &ledgerv1.Key{
		Id:             k.ID,
		Alias:          k.Alias,
		Name:           k.Name,
		Blocked:        k.Blocked,
		ExpiresMs:      toMillis(k.Expires),
		Models:         k.Models,
		Aliases:        k.Aliases,
		Entities:       entities,
		SpendNano:      k.Spend,
		MaxBudgetNano:  limit,
		UserId:         k.UserID,
		TeamId:         k.TeamID,
		OrganizationId: k.OrganizationID,
		Tags:           k.Tags,
		MetadataJson:   k.MetadataJSON,
		Version:        k.Version,
		Limits:         limits,
	}
}

func encodeGrant(seq uint64, r store.GrantResult) *ledgerv1.GrantResponse {
	resp := &ledgerv1.GrantResponse{Seq: seq, Status: encodeGrantStatus(r.Status), Reaps: r.Reaps}
	for _, l := range r.Leases {
		resp.Leases = append(resp.Leases, &ledgerv1.Lease{
			Seq:         l.Seq,
			BudgetId:    l.Budget,
			Entity:      l.Entity,
			GrantedNano: l.Granted,
			UntilInMs:   l.UntilIn.Milliseconds(),
			State:       encodeLeaseState(l.State),
		})
	}
	for _, w := range r.Results {
		resp.Results = append(resp.Results, &ledgerv1.WantResult{
			Outcome:       encodeOutcome(w.Outcome),
			GrantedNano:   w.Granted,
			RefusedEntity: w.Entity,
			LimitNano:     w.Limit,
			SpentNano:     w.Spent,
			ResetMs:       toMillis(w.Reset),
		})
	}
	return resp
}

func encodeGrantStatus(s store.GrantStatus) ledgerv1.GrantResponse_Status {
	switch s {
	case store.GrantOK:
		return ledgerv1.GrantResponse_STATUS_OK
	case store.GrantRenewFirst:
		return ledgerv1.GrantResponse_STATUS_RENEW_FIRST
	case store.GrantReplayed:
		return ledgerv1.GrantResponse_STATUS_REPLAYED
	default:
		return ledgerv1.GrantResponse_STATUS_UNSPECIFIED
	}
}

func encodeLeaseState(s store.LeaseState) ledgerv1.Lease_State {
	switch s {
	case store.LeaseOpen:
		return ledgerv1.Lease_STATE_OPEN
	case store.LeaseLost:
		return ledgerv1.Lease_STATE_LOST
	case store.LeaseClosed:
		return ledgerv1.Lease_STATE_CLOSED
	default:
		return ledgerv1.Lease_STATE_UNSPECIFIED
	}
}

func encodeOutcome(o store.Outcome) ledgerv1.WantResult_Outcome {
	switch o {
	case store.Granted:
		return ledgerv1.WantResult_OUTCOME_GRANTED
	case store.Exceeded:
		return ledgerv1.WantResult_OUTCOME_EXCEEDED
	case store.Held:
		return ledgerv1.WantResult_OUTCOME_HELD
	case store.UnknownEntity:
		return ledgerv1.WantResult_OUTCOME_UNKNOWN_ENTITY
	default:
		return ledgerv1.WantResult_OUTCOME_UNSPECIFIED
	}
}

// encodeReturn names the leases that closed: all that were asked for and are not
// pending.
func encodeReturn(asked []store.ReturnLease, pending []store.LeaseRef) *ledgerv1.ReturnResponse {
	waiting := make(map[store.LeaseRef]bool, len(pending))
	resp := &ledgerv1.ReturnResponse{}
	for _, ref := range pending {
		waiting[ref] = true
		resp.Pending = append(resp.Pending, encodeRef(ref))
	}
	for _, l := range asked {
		if !waiting[l.LeaseRef] {
			resp.Closed = append(resp.Closed, encodeRef(l.LeaseRef))
		}
	}
	return resp
}

func encodeRef(r store.LeaseRef) *ledgerv1.LeaseRef {
	return &ledgerv1.LeaseRef{Seq: r.Seq, BudgetId: r.Budget}
}
