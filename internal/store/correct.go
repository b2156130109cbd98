package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

// ErrCorrected means that a correction was made before, or that there is nothing left
// to correct.
var ErrCorrected = errors.New("corrected already")

// Corrector lets an administrator set right what the ledger had to assume. Each
// correction is made once and audited in its own transaction.
type Corrector interface {
	// TakeBack frees what a reaper charged for a lease whose holder disappeared.
	// ErrNotFound: no such lease; ErrCorrected: nothing is charged for it (any more).
	TakeBack(ctx context.Context, c TakeBack) (Correction, error)
	// CorrectRecord sets the cost of an interrupted request, in its record, the daily
	// sums, its leases and their budgets. ErrNotFound: no such record; ErrInvalid: it
	// was not interrupted, or several have the request's id; ErrCorrected: made before.
	CorrectRecord(ctx context.Context, c CorrectRecord) (Correction, error)
}

// TakeBack names the lease whose lost charge is to be freed.
type TakeBack struct {
	Holder HolderID
	LeaseRef
	By, Reason string
}

// CorrectRecord names a record and what it really cost.
type CorrectRecord struct {
	RequestID string
	// Holder and Seq tell records of the same request id apart; empty: there is one.
	Holder     HolderID
	Seq        uint64
	Cost       int64
	By, Reason string
}

// Correction is what was changed, in nano-dollars.
type Correction struct {
	Subject string `json:"subject"` // as the audit names it
	Before  int64  `json:"before"`
	After   int64  `json:"after"`
	Reason  string `json:"reason,omitempty"`
}

// LeaseName is how people name a lease: "holder/grant/budget".
func LeaseName(h HolderID, ref LeaseRef) string {
	return fmt.Sprintf("%s/%d/%d", h, ref.Seq, ref.Budget)
}

// ParseLeaseName reads what LeaseName writes.
func ParseLeaseName(name string) (HolderID, LeaseRef, error) {
	bad := fmt.Errorf("cannot read the lease %q: want holder/grant/budget as verify names it: %w", name, ErrInvalid)
	parts := strings.Split(name, "/")
	if len(parts) < 3 {
		return "", LeaseRef{}, bad
	}
	n := len(parts)
	holder := strings.Join(parts[:n-2], "/")
	seq, err := strconv.ParseUint(parts[n-2], 10, 63)
	if err != nil || seq == 0 || holder == "" {
		return "", LeaseRef{}, bad
	}
	budget, err := strconv.ParseInt(parts[n-1], 10, 64)
	if err != nil || budget <= 0 {
		return "", LeaseRef{}, bad
	}
	return HolderID(holder), LeaseRef{Seq: seq, Budget: budget}, nil
}

// Check refuses a correction that says nothing that can be done.
func (c CorrectRecord) Check() error {
	switch {
	case c.RequestID == "" || !Storable(c.RequestID) || !Storable(string(c.Holder)):
		return fmt.Errorf("cannot correct a record without its request id: %w", ErrInvalid)
	case c.Cost < 0 || c.Cost > ledger.MaxCost:
		return fmt.Errorf("cannot correct a cost to %d nano-dollars: want 0 to %d: %w", c.Cost, ledger.MaxCost, ErrInvalid)
	case (c.Holder == "") != (c.Seq == 0):
		return fmt.Errorf("cannot correct a record by half of its number: holder and seq go together: %w", ErrInvalid)
	}
	return nil
}

// Candidate is a record that a correction may mean.
type Candidate struct {
	Record
	Holder HolderID
}

// Choose picks the one record that is meant.
func (c CorrectRecord) Choose(found []Candidate) (Candidate, error) {
	switch {
	case len(found) == 0:
		return Candidate{}, ErrNotFound
	case len(found) > 1:
		return Candidate{}, fmt.Errorf("several records have the request id %s: name holder and seq: %w", c.RequestID, ErrInvalid)
	}
	r := found[0]
	switch {
	case r.CorrectedFrom != nil:
		return r, ErrCorrected
	case r.ErrorCode == errorLost:
		return r, fmt.Errorf("the record stands for a lost one and has nothing to correct; take back the charge of its lease: %w", ErrInvalid)
	case r.Status != StatusInterrupted:
		return r, fmt.Errorf("the request was not interrupted, its cost is exact: %w", ErrInvalid)
	}
	return r, nil
}

// errorLost is the error code of records that stand for lost ones.
const errorLost = "record_lost"

// Adjust moves a record's charges to another cost on leases that the caller read under
// its locks; one that is not kept any more counts as closed. late is each budget's
// overrun that came late. It returns the changes of budgets by budget id.
func (r *Record) Adjust(cost int64, leases map[LeaseRef]*ledger.Lease, late map[int64]int64) map[int64]ledger.Delta {
	changes := make(map[int64]ledger.Delta)
	for i, c := range r.Charges {
		l := leases[c.LeaseRef]
		if l == nil {
			l = &ledger.Lease{State: ledger.Closed}
		}
		before := ledger.Charge{Cost: c.Cost, Overrun: c.Overrun}
		after := before.Corrected(cost)
		d := l.Correct(before, after, late[c.Budget]+changes[c.Budget].Late)
		changes[c.Budget] = changes[c.Budget].Add(d)
		r.Charges[i].Cost, r.Charges[i].Overrun = after.Cost, after.Overrun
	}
	r.Cost = cost
	return changes
}
