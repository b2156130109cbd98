package hold

import (
	"errors"
	"fmt"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// ErrUnavailable means that the ledger could not be asked in time (Config.MaxWait),
// or that this holder's validity is over because heartbeats are not answered. It says
// nothing about the budget; callers answer with a Retry-After.
var ErrUnavailable = errors.New("ledger unavailable")

// ErrFenced means that the ledger has closed this process life.
var ErrFenced = errors.New("holder is closed in the ledger")

// ErrNoRoom means that a hold cannot be raised on the leases it stands on.
var ErrNoRoom = errors.New("cannot raise hold: its lease has no room")

var (
	errStopping = fmt.Errorf("%w: worker is stopping", ErrUnavailable)
	errExpired  = fmt.Errorf("%w: heartbeats are not answered", ErrUnavailable)
	errNoAnswer = fmt.Errorf("%w: no answer to a grant", ErrUnavailable)
)

// Outcome says why a request got no money.
type Outcome uint8

// Outcomes of a refused request.
const (
	Exceeded      Outcome = iota + 1 // the money is spent
	Held                             // the money is only held by requests in flight: worth a retry
	UnknownEntity                    // the entity has no budget row
)

// String returns the outcome as it stands in logs.
func (o Outcome) String() string {
	switch o {
	case Exceeded:
		return "exceeded"
	case Held:
		return "held"
	case UnknownEntity:
		return "unknown_entity"
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// Refused is the ledger's verdict on a request. Use errors.As.
type Refused struct {
	Outcome Outcome
	Entity  string    // the first that could not pay
	Limit   int64     // of that entity, nano-dollars
	Spent   int64     // of that entity, nano-dollars
	Reset   time.Time // end of that entity's period; zero: it has no end
}

// Error implements error.
func (r *Refused) Error() string {
	return fmt.Sprintf("cannot hold money of %s: %s", r.Entity, r.Outcome)
}

func refusedFrom(res *ledgerv1.WantResult) *Refused {
	r := &Refused{Entity: res.GetRefusedEntity(), Limit: res.GetLimitNano(), Spent: res.GetSpentNano()}
	switch res.GetOutcome() {
	case ledgerv1.WantResult_OUTCOME_EXCEEDED:
		r.Outcome = Exceeded
	case ledgerv1.WantResult_OUTCOME_UNKNOWN_ENTITY:
		r.Outcome = UnknownEntity
	default:
		r.Outcome = Held
	}
	if ms := res.GetResetMs(); ms > 0 {
		r.Reset = time.UnixMilli(ms)
	}
	return r
}
