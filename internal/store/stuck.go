package store

import (
	"context"
	"fmt"
	"strings"
)

// Stuck decides what could only be tried again for ever: after a failover to a replica
// that lacks commits, the database no longer has what workers were told it had.
type Stuck interface {
	// Fence closes a holder whose worker may live: heartbeats and grants are refused, so
	// that the worker restarts with another. It moves no money. The holder's leases stay
	// until its journal is adopted, or until a reaper charges them as lost.
	Fence(ctx context.Context, holder HolderID) error
	// Bury books the next record of a holder although leases that it charges are not
	// there: as a dead letter, whose cost the budgets of those leases take as overrun. It
	// returns the cursor's new value. A record that is known is dropped; a gap is ErrGap.
	Bury(ctx context.Context, holder HolderID, r Record) (lastSeq uint64, err error)
}

// unleased is the grant of a charge whose lease is not there. Grants count from 1.
const unleased = 0

// Orphaned parts a record's charges from those whose lease is not there: they become
// charges of no lease, or are left out where the budget is not there either. It
// returns the reason for the dead letter.
func (r *Record) Orphaned(lease func(LeaseRef) bool, budget func(int64) bool) string {
	var kept []LeaseCharge
	var why []string
	for _, c := range r.Charges {
		switch {
		case lease(c.LeaseRef):
		case budget(c.Budget):
			why = append(why, fmt.Sprintf("lease %d of budget %d is not there, the budget takes the cost as overrun", c.Seq, c.Budget))
			c.Seq = unleased
		default:
			why = append(why, fmt.Sprintf("lease %d and budget %d are not there, its cost stands in the daily sums only", c.Seq, c.Budget))
			continue
		}
		kept = append(kept, c)
	}
	r.Charges = kept
	return strings.Join(why, "; ")
}
