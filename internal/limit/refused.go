package limit

import (
	"errors"
	"fmt"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// ErrUnavailable means that the ledger could not be asked in time (Config.MaxWait). It
// says nothing about the limits; callers answer with a Retry-After.
var ErrUnavailable = errors.New("ledger unavailable")

var (
	errStopping = fmt.Errorf("%w: worker is stopping", ErrUnavailable)
	errNoAnswer = fmt.Errorf("%w: no answer about limits", ErrUnavailable)
)

// Kind says which limit refused a request.
type Kind uint8

// Kinds of limits.
const (
	RPM Kind = iota + 1
	TPM
	Parallel
)

// String returns the kind as it stands in logs and metrics.
func (k Kind) String() string {
	switch k {
	case RPM:
		return "rpm"
	case TPM:
		return "tpm"
	case Parallel:
		return "parallel"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

func (k Kind) wire() ledgerv1.LimitKind {
	switch k {
	case RPM:
		return ledgerv1.LimitKind_LIMIT_KIND_REQUESTS
	case TPM:
		return ledgerv1.LimitKind_LIMIT_KIND_TOKENS
	case Parallel:
		return ledgerv1.LimitKind_LIMIT_KIND_PARALLEL
	}
	return ledgerv1.LimitKind_LIMIT_KIND_UNSPECIFIED
}

// Refused says which limit a request would have passed. It consumed nothing. Use errors.As.
type Refused struct {
	Kind      Kind
	Subject   string
	Limit     int64 // 0: nothing is ever admitted
	Remaining int64 // a bound: what was free when the ledger was last asked
	// RetryAfter is when the request fits if nobody else comes first. For Parallel it is
	// a second, since it depends on other requests' ends. 0 with Never.
	RetryAfter time.Duration
	// Never means that the request alone is above the limit.
	Never bool
}

// Error implements error.
func (r *Refused) Error() string {
	return fmt.Sprintf("cannot admit the request: %s limit %d of %s is reached", r.Kind, r.Limit, r.Subject)
}

// parallelRetry is what a client is told that found no slot.
const parallelRetry = time.Second
