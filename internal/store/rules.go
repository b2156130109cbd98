package store

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/money"
)

// KeyEntity is the name of the entity that holds a key's own budget.
func KeyEntity(id string) string { return "key:" + id }

// Fresh checks a batch against the cursor: it drops the records that are known
// and returns ErrGap when the batch starts beyond the next number or has a hole.
func Fresh(records []Record, last uint64) ([]Record, error) {
	for i := range records {
		if i > 0 && records[i].Seq != records[i-1].Seq+1 {
			return nil, fmt.Errorf("cannot commit record %d after record %d of one batch: %w", records[i].Seq, records[i-1].Seq, ErrGap)
		}
	}
	if len(records) > 0 && records[0].Seq > last+1 {
		return nil, fmt.Errorf("cannot commit record %d while the cursor stands at %d: %w", records[0].Seq, last, ErrGap)
	}
	known := slices.IndexFunc(records, func(r Record) bool { return r.Seq > last })
	if known < 0 {
		return nil, nil
	}
	return records[known:], nil
}

// Refs lists the leases that records charge, in lock order.
func Refs(records []Record) []LeaseRef {
	var refs []LeaseRef
	for i := range records {
		for _, c := range records[i].Charges {
			refs = append(refs, c.LeaseRef)
		}
	}
	return SortRefs(refs)
}

// SortRefs orders lease references as locks are taken and drops doubles.
func SortRefs(refs []LeaseRef) []LeaseRef {
	slices.SortFunc(refs, func(a, b LeaseRef) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Budget, b.Budget))
	})
	return slices.Compact(refs)
}

// LedgerWants is the grant in the ledger's words.
func (g Grant) LedgerWants() []ledger.Want {
	out := make([]ledger.Want, len(g.Wants))
	for i, w := range g.Wants {
		out[i] = ledger.Want{Entities: w.Entities, Amount: w.Amount, Min: w.Min, Desired: w.Desired}
	}
	return out
}

// ResultOf is a verdict in the store's words.
func ResultOf(v ledger.Verdict) WantResult {
	return WantResult{
		Outcome: outcome(v.Outcome),
		Granted: v.Amount,
		Entity:  v.Entity,
		Limit:   v.Budget.Limit,
		Spent:   v.Budget.Reported(),
		Reset:   v.Budget.Until,
	}
}

func outcome(o ledger.Outcome) Outcome {
	switch o {
	case ledger.Granted:
		return Granted
	case ledger.Exceeded:
		return Exceeded
	case ledger.Held:
		return Held
	case ledger.UnknownEntity:
		return UnknownEntity
	}
	return 0
}

// UntilIn is the time left to a period's end, at least one millisecond while it
// has one: it travels in whole milliseconds, and 0 means that it has none.
func UntilIn(until, now time.Time) time.Duration {
	if until.IsZero() {
		return 0
	}
	return max(until.Sub(now), time.Millisecond)
}

// CheckSeq refuses numbers that a database's bigint cannot hold.
func CheckSeq(seq uint64) error {
	if seq == 0 || seq > math.MaxInt64 {
		return fmt.Errorf("cannot use number %d: want 1 to %d", seq, int64(math.MaxInt64))
	}
	return nil
}

// DayKey is what spend_daily adds up by.
type DayKey struct {
	Day    string // YYYY-MM-DD, UTC
	KeyID  string
	UserID string
	TeamID string
	OrgID  string
	Model  string
}

// DaySums adds records up by day, in an order that is the same in every
// transaction, so that two of them never wait for each other in a circle.
func DaySums(records []Record) ([]DayKey, map[DayKey]*DaySpend) {
	sums := make(map[DayKey]*DaySpend)
	var keys []DayKey
	for i := range records {
		r := &records[i]
		k := DayKey{r.Start.UTC().Format(time.DateOnly), clip(r.KeyID), clip(r.UserID), clip(r.TeamID), clip(r.OrganizationID), clip(r.Model)}
		if !plausible(r.Start) {
			k.Day = "1970-01-01" // a dead letter's money is still somebody's spend
		}
		s := sums[k]
		if s == nil {
			s = &DaySpend{}
			sums[k] = s
			keys = append(keys, k)
		}
		s.Requests++
		s.Cost += min(max(r.Cost, 0), ledger.MaxCost)
		addUsage(&s.Usage, r.Usage)
	}
	slices.SortFunc(keys, func(a, b DayKey) int {
		return cmp.Or(strings.Compare(a.Day, b.Day), strings.Compare(a.KeyID, b.KeyID), strings.Compare(a.UserID, b.UserID),
			strings.Compare(a.TeamID, b.TeamID), strings.Compare(a.OrgID, b.OrgID), strings.Compare(a.Model, b.Model))
	})
	return keys, sums
}

func addUsage(sum *money.Usage, u money.Usage) {
	bounded := func(n int64) int64 { return min(max(n, 0), maxTokens) }
	sum.Input += bounded(u.Input)
	sum.Output += bounded(u.Output)
	sum.Cached += bounded(u.Cached)
	sum.CacheWrite += bounded(u.CacheWrite)
	sum.Reasoning += bounded(u.Reasoning)
}

// clip bounds a text that stands in an index, whose rows must stay small.
func clip(s string) string {
	if len(s) <= 256 {
		return s
	}
	return strings.ToValidUTF8(s[:256], "")
}

// CheckGrantSeq compares a grant's number with the highest that was answered. A
// number beyond the next one is an error: a grant before it was abandoned.
func CheckGrantSeq(seq, last uint64) (replayed bool, err error) {
	if seq > last+1 {
		return false, fmt.Errorf("cannot grant number %d: number %d was never asked for: %w", seq, last+1, ErrGap)
	}
	return seq <= last, nil
}

// LeaseOf is a freshly granted lease.
func LeaseOf(seq uint64, s ledger.Slice, now time.Time) Lease {
	return Lease{
		LeaseRef: LeaseRef{Seq: seq, Budget: s.Budget.ID},
		Entity:   s.Budget.Entity,
		Granted:  s.Amount,
		UntilIn:  UntilIn(s.Budget.Until, now),
		State:    LeaseOpen,
	}
}

// SplitReturns parts the leases whose last record is committed from those that
// must wait for it.
func SplitReturns(leases []ReturnLease, last uint64) (ready, pending []LeaseRef) {
	for _, l := range leases {
		if l.After > last {
			pending = append(pending, l.LeaseRef)
			continue
		}
		ready = append(ready, l.LeaseRef)
	}
	return SortRefs(ready), pending
}

// TrimTargets lists the leases in lock order with the amount each is lowered to,
// the lowest where one is named twice.
func TrimTargets(leases []TrimLease) ([]LeaseRef, map[LeaseRef]int64) {
	var refs []LeaseRef
	to := make(map[LeaseRef]int64, len(leases))
	for _, l := range leases {
		refs = append(refs, l.LeaseRef)
		if have, named := to[l.LeaseRef]; !named || l.To < have {
			to[l.LeaseRef] = l.To
		}
	}
	return SortRefs(refs), to
}
