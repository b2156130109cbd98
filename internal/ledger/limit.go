package ledger

import "time"

// LimitKind says what a limit counts. Its numbers stand in the database.
type LimitKind int16

// Kinds of limits.
const (
	LimitRequests LimitKind = 1 // admitted within a window
	LimitTokens   LimitKind = 2 // charged within a window
	LimitParallel LimitKind = 3 // running at any moment
)

// Window is the time over which requests and tokens are counted: the limit holds in
// every stretch of this length, wherever it begins.
type Window struct{ Length time.Duration }

// Short is how long permits may be used while their limit is in demand. What is granted
// counts for Short + Length, so this is what a limit loses at most by leasing.
func (w Window) Short() time.Duration { return w.Length / 40 }

// Calm is how long permits may be used while most of a limit is free, so that a rarely
// used key asks rarely. Slots last as long without being renewed.
func (w Window) Calm() time.Duration { return w.Length / 2 }

// Cell is how finely time is counted.
func (w Window) Cell() time.Duration { return w.Length / 120 }

// Margin is added to every expiry: a database's clock may be slewed against the
// clocks of workers and of those who count behind us.
func (w Window) Margin() time.Duration { return w.Length / 500 }

// settled is when a use that happened before now counts no more, on the grid of cells.
func (w Window) settled(now int64) int64 { return w.expiry(now, 0) }

// expiry is when a use that happens within use from now counts no more.
func (w Window) expiry(now int64, use time.Duration) int64 {
	cell := max(w.Cell().Microseconds(), 1)
	end := now + (use + w.Length + w.Margin()).Microseconds()
	return (end + cell - 1) / cell * cell
}

// LimitSync is one numbered call of a holder: what it gives back, and what it needs.
type LimitSync struct {
	Holder string
	Asks   []LimitAsk
	Wants  []LimitWant
	// Use is how long permits have to last to be of use to the holder.
	Use time.Duration
	// Longest is the longest that a request of the holder can run.
	Longest time.Duration
}

// LimitAsk is one limit of one subject as the holder stands to it. A sync names each
// limit at most once.
type LimitAsk struct {
	Subject string
	Kind    LimitKind
	Limit   int64 // below 1: nothing is admitted
	Returns []PermitReturn
	Charge  int64 // tokens used beyond what was granted; booked whatever the limit
	Have    int64 // slots that the holder keeps, as it believes
	Short   int64 // wished for beyond the wants, if the permits last Window.Short
	Calm    int64 // … and if they last Window.Calm
}

// PermitReturn ends the use of permits that were granted before.
type PermitReturn struct {
	Cell    int64 // LimitGrant.Cell, or LimitGrant.Settled for a correction afterwards
	Granted int64
	Used    int64
}

// LimitWant is what one waiting request lacks: all of it or nothing.
type LimitWant []LimitNeed

// LimitNeed is an amount of the limit Asks[Ask]. A want names each at most once.
type LimitNeed struct {
	Ask    int
	Amount int64
}

// LimitGrant is what a sync gave of one limit.
type LimitGrant struct {
	Amount  int64         // of slots below 0 when some were lost
	Cell    int64         // where the permits are counted
	Settled int64         // where the used part of what was returned is counted now
	Use     time.Duration // no use later than this after the sync was first sent
	Rest    int64         // so many slots may rest at the holder as long as Use
	Keep    time.Duration // how long others may
	Free    int64         // what nobody has
	Reset   time.Duration // until all that counts now counts no more
	Calm    bool
}

// Retry times of a refusal that are not a duration.
const (
	RetryUnknown time.Duration = 0  // somebody else's request has to end
	RetryNever   time.Duration = -1 // the want is above the limit
)

// LimitVerdict is what became of one want.
type LimitVerdict struct {
	Granted bool
	Ask     int           // the limit that refused
	Retry   time.Duration // until it can fit at the latest, if nobody else comes
}

// LimitPlan is the decision on a sync. Meters and Grants are parallel to its asks,
// Verdicts to its wants.
type LimitPlan struct {
	Meters   []Meter
	Grants   []LimitGrant
	Verdicts []LimitVerdict
}

// RefusedParallel says whether a slot was refused, so that it matters which of the
// holders that have slots are dead.
func (p LimitPlan) RefusedParallel(asks []LimitAsk) bool {
	for _, v := range p.Verdicts {
		if !v.Granted && asks[v.Ask].Kind == LimitParallel {
			return true
		}
	}
	return false
}
