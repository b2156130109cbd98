package store

import (
	"context"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/money"
)

// Verifier recomputes from the records what the ledger's other rows must say.
type Verifier interface {
	// Verify compares in one snapshot, so that it is right while requests are booked.
	// It changes nothing and adds up in the database: its own memory is bounded by
	// VerifyOptions.Limit.
	Verify(ctx context.Context, o VerifyOptions) (Report, error)
}

// VerifyOptions say how much to look at and to name.
type VerifyOptions struct {
	// Since leaves out what began before; zero: everything that is kept.
	Since time.Time
	// Limit bounds each list of the report; 0: 100. Counts and sums are always whole.
	Limit int
}

const usualFindings = 100

// Most is the limit of each list.
func (o VerifyOptions) Most() int {
	if o.Limit <= 0 {
		return usualFindings
	}
	return o.Limit
}

// Report is what Verify found. Amounts are nano-dollars.
type Report struct {
	At       time.Time `json:"at"`        // the database's clock
	Since    time.Time `json:"since"`     // of the options; zero: everything
	KeptFrom time.Time `json:"kept_from"` // earlier records were dropped by their age; zero: none were
	Totals   Totals    `json:"totals"`

	// Differences have no explanation: a row says something else than the records.
	Differences List[Difference] `json:"differences"`

	// What follows is explained, and may still call for a look.
	OpenLeases  List[LeaseFinding]  `json:"open_leases"`
	LostLeases  List[LeaseFinding]  `json:"lost_leases"`      // charged by a reaper, not taken back
	LateLeases  List[LeaseFinding]  `json:"late_leases"`      // closed before their last record
	Interrupted List[RecordFinding] `json:"interrupted"`      // booked at all that was held, not corrected
	RecordsLost List[RecordFinding] `json:"records_lost"`     // stand for records that a journal no longer had
	DeadLetters List[DeadLetter]    `json:"dead_letters"`     // records that cannot stand among the others
	Overruns    List[BudgetFinding] `json:"overruns"`         // billed beyond what was held, late records included
	OverLimit   List[BudgetFinding] `json:"over_their_limit"` // above a limit that was lowered
	Unchecked   List[BudgetFinding] `json:"unchecked"`        // budgets that cannot be recomputed: not all of their records are looked at
}

// List is the first of what was found, the largest amount first, and how much there
// is in all.
type List[T any] struct {
	Count int64 `json:"count"`
	Sum   int64 `json:"sum"` // of the amount that the list is about
	First []T   `json:"first"`
}

// Totals are sums over all records that were looked at.
type Totals struct {
	Records     int64 `json:"records"`
	Cost        int64 `json:"cost"`
	Estimated   int64 `json:"estimated"`
	Unpriced    int64 `json:"unpriced"` // sent to a model without a price: cost 0
	Corrected   int64 `json:"corrected"`
	Holders     int64 `json:"holders"`
	Leases      int64 `json:"leases"`
	Budgets     int64 `json:"budgets"`
	DailyRows   int64 `json:"daily_rows"`
	DailyCost   int64 `json:"daily_cost"`
	BudgetSpent int64 `json:"budget_spent"` // of current budgets, open leases included
	Leased      int64 `json:"leased"`
}

// DifferenceKind is the table whose row differs.
type DifferenceKind string

// Kinds of differences.
const (
	DaysDiffer     DifferenceKind = "spend_daily"
	SubjectsDiffer DifferenceKind = "spend_subjects"
	LeaseDiffers   DifferenceKind = "lease"
	BudgetDiffers  DifferenceKind = "budget"
	CursorDiffers  DifferenceKind = "cursor"
)

// Difference is one number of one row that the records do not explain.
type Difference struct {
	Kind    DifferenceKind `json:"kind"`
	Subject string         `json:"subject"` // which row
	Field   string         `json:"field"`
	Want    int64          `json:"want"` // recomputed; for the law, the most that is allowed
	Have    int64          `json:"have"` // as the row says
}

// LeaseFinding is a lease worth naming.
type LeaseFinding struct {
	Holder  HolderID  `json:"holder"`
	Seq     uint64    `json:"seq"`
	Budget  int64     `json:"budget"`
	Entity  string    `json:"entity"`
	Amount  int64     `json:"amount"` // open: granted; lost: charged; late: records after the close
	Spent   int64     `json:"spent"`
	Created time.Time `json:"created"` // zero: from a release that did not note it
	Expires time.Time `json:"expires"` // of the holder, unless it is renewed
}

// RecordFinding is a record worth naming.
type RecordFinding struct {
	Holder    HolderID  `json:"holder"`
	Seq       uint64    `json:"seq"`
	RequestID string    `json:"request_id"`
	KeyID     string    `json:"key_id"`
	Model     string    `json:"model"`
	Start     time.Time `json:"start"`
	Cost      int64     `json:"cost"`
}

// DeadLetter is a record that cannot stand among the others.
type DeadLetter struct {
	ID        int64     `json:"id"`
	Holder    HolderID  `json:"holder"`
	Seq       uint64    `json:"seq"`
	RequestID string    `json:"request_id"`
	Reason    string    `json:"reason"`
	At        time.Time `json:"at"`
	Cost      int64     `json:"cost"`
}

// BudgetFinding is a budget row worth naming.
type BudgetFinding struct {
	ID     int64     `json:"id"`
	Entity string    `json:"entity"`
	From   time.Time `json:"from"`
	Limit  int64     `json:"limit"`
	Spent  int64     `json:"spent"`
	Amount int64     `json:"amount"` // what the list is about
}

// Explained says whether every row says what the records say.
func (r *Report) Explained() bool { return r.Differences.Count == 0 }

// scopeSlack is how long before a lease its first record may have begun: a request
// waits for its lease, and clocks differ.
const scopeSlack = time.Hour

// Scope is what Verify reads, and what it may check with that. Zero times: all.
type Scope struct {
	Read  time.Time // records that began since
	Days  time.Time // days since, of which every record is read
	Check time.Time // leases, budgets and holders that began since, of which every record is read
}

// ScopeOf narrows a check to what is kept and to what was asked for. Records can be
// read from a while before since, but not from before they are kept.
func ScopeOf(since, keptFrom time.Time) Scope {
	if since.After(keptFrom) {
		read := since.Add(-scopeSlack)
		if read.Before(keptFrom) {
			read = keptFrom
		}
		s := Scope{Read: read, Days: nextMidnight(since), Check: since}
		if s.Check.Before(read.Add(scopeSlack)) {
			s.Check = read.Add(scopeSlack)
		}
		return s
	}
	if keptFrom.IsZero() {
		return Scope{}
	}
	return Scope{Read: keptFrom, Days: nextMidnight(keptFrom), Check: keptFrom.Add(scopeSlack)}
}

// nextMidnight is t, or the first midnight (UTC) after it.
func nextMidnight(t time.Time) time.Time {
	day := t.UTC().Truncate(24 * time.Hour)
	if day.Before(t) {
		day = day.AddDate(0, 0, 1)
	}
	return day
}

// Booked is what a dead letter moved, in the words of the sums that it is part of.
type Booked struct {
	DayKey
	Subjects []string // that spend_subjects adds it up for
	Usage    money.Usage
	Cost     int64
	Charges  []LeaseCharge
}

// Booked is what the record moves when it is a dead letter: amounts are cut to what
// the ledger takes.
func (r *Record) Booked() Booked {
	keys, sums := DaySums([]Record{*r})
	sum := sums[keys[0]]
	b := Booked{DayKey: keys[0], Usage: sum.Usage, Cost: sum.Cost, Charges: make([]LeaseCharge, len(r.Charges))}
	subjects, _ := SubjectSums([]Record{*r})
	for _, s := range subjects {
		b.Subjects = append(b.Subjects, s.Subject)
	}
	for i, c := range r.Charges {
		c.Cost, c.Overrun = ledger.Bounded(c.Cost, c.Overrun)
		b.Charges[i] = c
	}
	return b
}
