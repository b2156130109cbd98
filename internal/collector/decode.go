package collector

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/store"
)

// Bounds of what a worker may send. They stand far above what one does send; their
// use is that a broken caller is told so instead of filling the database.
const (
	hashBytes   = 32
	epochBytes  = 16
	maxPodUID   = 253 // the longest Kubernetes name
	maxEntity   = 512
	maxWants    = 10_000
	maxEntities = 64
	maxLeases   = 10_000

	// A hundred million dollars: sums of sane amounts stay within int64.
	maxAmount = int64(1e17)
	// Numbers are bigint in the database.
	maxSeq = uint64(math.MaxInt64)
)

// holderID checks a holder and returns its name in the database. The separators of
// that name, and of the journal folder's, must not occur in its parts.
func holderID(h *ledgerv1.Holder) (store.HolderID, error) {
	switch uid := h.GetPodUid(); {
	case uid == "" || len(uid) > maxPodUID:
		return "", invalidf("holder.pod_uid must have 1 to %d bytes", maxPodUID)
	case strings.ContainsFunc(uid, func(r rune) bool { return r == '/' || r <= ' ' || r == 0x7f }):
		return "", invalidf("holder.pod_uid must not contain '/', spaces or control characters")
	case len(h.GetEpoch()) != epochBytes:
		return "", invalidf("holder.epoch must have %d bytes, not %d", epochBytes, len(h.GetEpoch()))
	}
	return holderName(h.GetPodUid(), h.GetIndex(), h.GetEpoch()), nil
}

func holderName(podUID string, index uint32, epoch []byte) store.HolderID {
	return store.HolderID(fmt.Sprintf("%s/%d/%x", podUID, index, epoch))
}

func decodeGrant(req *ledgerv1.GrantRequest) (store.Grant, error) {
	holder, err := holderID(req.GetHolder())
	if err != nil {
		return store.Grant{}, err
	}
	if req.GetSeq() == 0 || req.GetSeq() > maxSeq {
		return store.Grant{}, invalidf("seq of a grant must lie between 1 and %d", maxSeq)
	}
	if n := len(req.GetWants()); n == 0 || n > maxWants {
		return store.Grant{}, invalidf("a grant has 1 to %d wants, not %d", maxWants, n)
	}
	g := store.Grant{Holder: holder, Seq: req.GetSeq(), Wants: make([]store.Want, len(req.GetWants()))}
	for i, w := range req.GetWants() {
		if g.Wants[i], err = decodeWant(i, w); err != nil {
			return store.Grant{}, err
		}
	}
	return g, nil
}

func decodeWant(i int, w *ledgerv1.Want) (store.Want, error) {
	if n := len(w.GetEntities()); n == 0 || n > maxEntities {
		return store.Want{}, invalidf("wants[%d] has 1 to %d entities, not %d", i, maxEntities, n)
	}
	for _, e := range w.GetEntities() {
		if e == "" || len(e) > maxEntity {
			return store.Want{}, invalidf("wants[%d]: an entity has 1 to %d bytes", i, maxEntity)
		}
	}
	switch {
	case badAmount(w.GetAmountNano()), badAmount(w.GetMinAmountNano()), badAmount(w.GetDesiredNano()):
		return store.Want{}, invalidf("wants[%d]: amounts must lie between 0 and %d", i, maxAmount)
	case w.GetMinAmountNano() > w.GetAmountNano():
		return store.Want{}, invalidf("wants[%d]: min_amount_nano is above amount_nano", i)
	}
	return store.Want{
		Entities: w.GetEntities(),
		Amount:   w.GetAmountNano(),
		Min:      w.GetMinAmountNano(),
		Desired:  w.GetDesiredNano(),
	}, nil
}

func decodeReturn(req *ledgerv1.ReturnRequest) ([]store.ReturnLease, error) {
	if n := len(req.GetLeases()); n == 0 || n > maxLeases {
		return nil, invalidf("a return has 1 to %d leases, not %d", maxLeases, n)
	}
	leases := make([]store.ReturnLease, len(req.GetLeases()))
	for i, l := range req.GetLeases() {
		if badRef(l.GetLease()) || l.GetAfterSeq() > maxSeq {
			return nil, invalidf("leases[%d]: numbers must not pass %d", i, maxSeq)
		}
		leases[i] = store.ReturnLease{LeaseRef: decodeRef(l.GetLease()), After: l.GetAfterSeq()}
	}
	return leases, nil
}

func decodeTrim(req *ledgerv1.TrimRequest) ([]store.TrimLease, error) {
	if n := len(req.GetLeases()); n == 0 || n > maxLeases {
		return nil, invalidf("a trim has 1 to %d leases, not %d", maxLeases, n)
	}
	leases := make([]store.TrimLease, len(req.GetLeases()))
	for i, l := range req.GetLeases() {
		if badRef(l.GetLease()) || badAmount(l.GetToNano()) {
			return nil, invalidf("leases[%d]: needs a lease, and to_nano between 0 and %d", i, maxAmount)
		}
		leases[i] = store.TrimLease{LeaseRef: decodeRef(l.GetLease()), To: l.GetToNano()}
	}
	return leases, nil
}

func decodeRef(r *ledgerv1.LeaseRef) store.LeaseRef {
	return store.LeaseRef{Seq: r.GetSeq(), Budget: r.GetBudgetId()}
}

func badAmount(nano int64) bool { return nano < 0 || nano > maxAmount }

func badRef(r *ledgerv1.LeaseRef) bool { return r.GetSeq() == 0 || r.GetSeq() > maxSeq }

// decodeRecords checks one batch: ascending numbers without gaps.
func decodeRecords(records []*ledgerv1.SpendRecord) ([]store.Record, error) {
	if len(records) == 0 {
		return nil, invalidf("a batch needs at least one record")
	}
	rows := make([]store.Record, len(records))
	for i, r := range records {
		switch {
		case r.GetSeq() == 0 || r.GetSeq() > maxSeq:
			return nil, invalidf("records[%d].seq must lie between 1 and %d", i, maxSeq)
		case i > 0 && r.GetSeq() != rows[i-1].Seq+1:
			return nil, invalidf("records[%d].seq is %d after %d: records must ascend without gaps",
				i, r.GetSeq(), rows[i-1].Seq)
		}
		if err := checkCharges(r); err != nil {
			return nil, invalidf("records[%d] (seq %d): %v", i, r.GetSeq(), err)
		}
		rows[i] = decodeRecord(r)
	}
	return rows, nil
}

// checkCharges refuses leases that no database could hold. Amounts are not checked:
// the store books a record with an odd one as a dead letter, so that it does not
// block those behind it.
func checkCharges(r *ledgerv1.SpendRecord) error {
	for _, c := range r.GetCharges() {
		if badRef(c.GetLease()) {
			return invalidf("a charge names a lease with a number between 1 and %d", maxSeq)
		}
	}
	return nil
}

func decodeRecord(r *ledgerv1.SpendRecord) store.Record {
	u := r.GetUsage()
	return store.Record{
		Seq:            r.GetSeq(),
		RequestID:      r.GetRequestId(),
		KeyID:          r.GetKeyId(),
		KeyAlias:       r.GetKeyAlias(),
		UserID:         r.GetUserId(),
		TeamID:         r.GetTeamId(),
		OrganizationID: r.GetOrganizationId(),
		EndUser:        r.GetEndUser(),
		Tags:           r.GetTags(),
		CallType:       r.GetCallType(),
		RequestedModel: r.GetRequestedModel(),
		Model:          r.GetModel(),
		ModelID:        r.GetModelId(),
		Provider:       r.GetProvider(),
		APIBase:        r.GetApiBase(),
		Start:          fromMillis(r.GetStartMs()),
		End:            fromMillis(r.GetEndMs()),
		FirstToken:     fromMillis(r.GetFirstTokenMs()),
		Stream:         r.GetStream(),
		Status:         decodeStatus(r.GetStatus()),
		HTTPStatus:     int(r.GetHttpStatus()),
		ErrorCode:      r.GetErrorCode(),
		Usage: money.Usage{
			Input:      u.GetInputTokens(),
			Output:     u.GetOutputTokens(),
			Cached:     u.GetCachedTokens(),
			CacheWrite: u.GetCacheWriteTokens(),
			Reasoning:  u.GetReasoningTokens(),
		},
		Cost:         r.GetCostNano(),
		Hold:         r.GetHoldNano(),
		Charges:      decodeCharges(r.GetCharges()),
		Attempts:     int(r.GetAttempts()),
		Estimated:    r.GetEstimated(),
		PriceVersion: r.GetPriceVersion(),
		UpstreamID:   r.GetUpstreamId(),
		ClientIP:     r.GetClientIp(),
		OutputCap:    r.GetOutputCap(),
	}
}

func decodeCharges(charges []*ledgerv1.LeaseCharge) []store.LeaseCharge {
	if len(charges) == 0 {
		return nil
	}
	out := make([]store.LeaseCharge, len(charges))
	for i, c := range charges {
		out[i] = store.LeaseCharge{LeaseRef: decodeRef(c.GetLease()), Cost: c.GetCostNano(), Overrun: c.GetOverrunNano()}
	}
	return out
}

// decodeStatus takes a status that this release does not know for a failure: the
// row is booked all the same, and a newer worker beside an older collector is
// ordinary while a pod rolls.
func decodeStatus(s ledgerv1.SpendRecord_Status) store.Status {
	switch s {
	case ledgerv1.SpendRecord_STATUS_SUCCESS:
		return store.StatusSuccess
	case ledgerv1.SpendRecord_STATUS_CLIENT_CLOSED:
		return store.StatusClientClosed
	case ledgerv1.SpendRecord_STATUS_UPSTREAM_ABORTED:
		return store.StatusUpstreamAborted
	case ledgerv1.SpendRecord_STATUS_INTERRUPTED:
		return store.StatusInterrupted
	default:
		return store.StatusFailure
	}
}

// fromMillis reads a Unix time in milliseconds; 0 is no time at all.
func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func hexHash(hash []byte) (string, error) {
	if len(hash) != hashBytes {
		return "", invalidf("key_hash must have %d bytes, not %d", hashBytes, len(hash))
	}
	return hex.EncodeToString(hash), nil
}
