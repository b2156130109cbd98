// Package store is the ledger's persistence: what the collector asks of a
// database, whichever one it is. PostgreSQL (store/postgres) serves a cluster,
// SQLite (store/sqlite) the all-in-one; store/storetest holds the one suite that
// both must pass. The rules themselves live in internal/ledger.
//
// All money is int64 nano-dollars. Every method may be called from several
// goroutines at once and by several collectors at once on one database.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/penstock-gateway/penstock/internal/money"
)

// ErrNotFound means that the row asked for does not exist.
var ErrNotFound = errors.New("not found")

// ErrConflict means that a unique value (a key, an alias) is taken.
var ErrConflict = errors.New("already exists")

// ErrInUse means that something else still needs what was to be deleted.
var ErrInUse = errors.New("still in use")

// ErrGap means that a batch starts beyond the cursor: a record before it is
// missing, so nothing was written.
var ErrGap = errors.New("record numbers have a gap")

// ErrNoLease means that a record charges a lease that its holder never got:
// nothing was written, and sending it again will not help.
var ErrNoLease = errors.New("no such lease")

// ErrInvalid means that a value cannot be stored as it is: the caller's fault.
var ErrInvalid = errors.New("invalid value")

// ErrUnavailable wraps every failure that says nothing about the request: the
// database is away, restarting, or out of connections. Callers retry.
var ErrUnavailable = errors.New("database unavailable")

// Unavailable is an ErrUnavailable that says why in plain words.
type Unavailable struct {
	Cause string // one sentence without secrets; the same for the same trouble
	Err   error  // what the database or its driver said
}

func (e *Unavailable) Error() string   { return e.Cause }
func (e *Unavailable) Unwrap() []error { return []error{ErrUnavailable, e.Err} }

// Store is everything a collector needs.
type Store interface {
	Ledger
	Keys
	Directory
	Spend
	Limits
	Verifier
	Corrector
	Stuck

	// Ping says whether the database answers.
	Ping(ctx context.Context) error
	// Maintain prepares what time brings: partitions ahead, rows past their keep.
	// Safe to call from several collectors at once.
	Maintain(ctx context.Context) error
	Close()
}

// Ledger moves money. Its methods follow the ledger's rules to the letter; see
// internal/ledger for the decisions and docs/ledger.md for what they promise.
type Ledger interface {
	// Heartbeat makes holders known and moves their expiry to the database's
	// clock + ttl. A closed holder is answered with Fenced.
	Heartbeat(ctx context.Context, holders []HolderID, ttl time.Duration) ([]HolderState, error)
	// Grant answers one numbered grant of one holder in one transaction.
	Grant(ctx context.Context, g Grant) (GrantResult, error)
	// Commit writes one holder's records in one transaction and returns the
	// cursor's new value. Known records are dropped; a gap writes nothing and
	// returns ErrGap beside the cursor's value. A record that the database will
	// not take is written to dead_letters and still moves its money.
	Commit(ctx context.Context, holder HolderID, records []Record) (lastSeq uint64, err error)
	// Return closes leases whose records are in; pending ones are returned.
	Return(ctx context.Context, holder HolderID, leases []ReturnLease) (pending []LeaseRef, err error)
	// Trim lowers granted amounts.
	Trim(ctx context.Context, holder HolderID, leases []TrimLease) error
	// Reap charges the leases of holders that expired longer than margin ago as
	// lost. It never frees money. It returns how many holders it reaped.
	Reap(ctx context.Context, margin time.Duration) (int, error)
	// CloseHolder ends an adopted holder: when its cursor has reached top, all its
	// leases in the database are closed and the holder is fenced, in one
	// transaction. It returns false when the cursor is still below top.
	CloseHolder(ctx context.Context, holder HolderID, top uint64) (bool, error)
}

// HolderID is "podUID/index/epochhex", the primary key of holders and cursors.
type HolderID string

// HolderState answers a heartbeat.
type HolderState struct {
	Holder HolderID
	Reaps  uint32
	Fenced bool
}

// Grant asks for money for waiting requests of one holder.
type Grant struct {
	Holder HolderID
	Seq    uint64
	Wants  []Want
}

// Want is one waiting request: all entities or none.
type Want struct {
	Entities []string
	Amount   int64
	Min      int64 // 0: Amount only
	Desired  int64 // beyond Amount, may be ignored
}

// GrantStatus tells what became of a grant as a whole.
type GrantStatus int

// Grant statuses.
const (
	GrantOK         GrantStatus = iota + 1
	GrantRenewFirst             // holder closed, expired or unknown: nothing recorded
	GrantReplayed               // seq was answered before
)

// GrantResult answers a Grant. Results are parallel to the wants; empty when replayed.
type GrantResult struct {
	Status  GrantStatus
	Leases  []Lease
	Results []WantResult
	Reaps   uint32
}

// Outcome is the verdict on one want.
type Outcome int

// Outcomes of a want.
const (
	Granted Outcome = iota + 1
	Exceeded
	Held
	UnknownEntity
)

// WantResult is the verdict on one want with what its error message needs.
type WantResult struct {
	Outcome Outcome
	Granted int64
	Entity  string // the first that could not pay
	Limit   int64
	Spent   int64     // reported spend: settled and known of open leases
	Reset   time.Time // zero: the period has no end
}

// LeaseState is the life of a lease.
type LeaseState string

// Lease states as they stand in the database.
const (
	LeaseOpen   LeaseState = "open"
	LeaseLost   LeaseState = "lost"
	LeaseClosed LeaseState = "closed"
)

// LeaseRef names a lease of a holder.
type LeaseRef struct {
	Seq    uint64
	Budget int64
}

// Lease is money that a holder serves holds from.
type Lease struct {
	LeaseRef
	Entity  string
	Granted int64
	UntilIn time.Duration // period end − database time; 0: no end
	State   LeaseState
}

// ReturnLease is a lease to close once record After is committed.
type ReturnLease struct {
	LeaseRef
	After uint64
}

// TrimLease is a lease and its new, lower amount.
type TrimLease struct {
	LeaseRef
	To int64
}

// Status of a record. The texts stand in the database and in the admin API.
type Status string

// Record statuses.
const (
	StatusSuccess         Status = "success"
	StatusFailure         Status = "failure"
	StatusClientClosed    Status = "client_closed"
	StatusUpstreamAborted Status = "upstream_aborted"
	StatusInterrupted     Status = "interrupted"
)

// Record is one finished request.
type Record struct {
	Seq            uint64
	RequestID      string
	KeyID          string
	KeyAlias       string
	UserID         string
	TeamID         string
	OrganizationID string
	EndUser        string
	Tags           []string
	CallType       string
	RequestedModel string
	Model          string
	ModelID        string
	Provider       string
	APIBase        string
	Start          time.Time
	End            time.Time
	FirstToken     time.Time // zero: none was seen
	Stream         bool
	Status         Status
	HTTPStatus     int
	ErrorCode      string
	Usage          money.Usage
	Cost           int64
	Hold           int64
	Charges        []LeaseCharge
	Attempts       int
	Estimated      bool
	PriceVersion   string
	UpstreamID     string
	ClientIP       string
	OutputCap      int64
	CorrectedFrom  *int64 // the cost before an administrator corrected it; read only
}

// LeaseCharge is a record's effect on one lease. Cost includes Overrun.
type LeaseCharge struct {
	LeaseRef
	Cost    int64
	Overrun int64
}

// Keys keeps virtual keys.
type Keys interface {
	CreateKey(ctx context.Context, k Key) error
	// Key returns the key with its reported spend, or ErrNotFound.
	Key(ctx context.Context, id string) (Key, error)
	// KeyByAlias finds the id of an alias, or ErrNotFound.
	KeyByAlias(ctx context.Context, alias string) (string, error)
	// UpdateKey changes what the patch names and returns the new row.
	UpdateKey(ctx context.Context, id string, p KeyPatch) (Key, error)
	// DeleteKeys deletes the named keys that exist and returns their ids. by is who
	// did it, for the audit.
	DeleteKeys(ctx context.Context, ids []string, by string) ([]string, error)
	ListKeys(ctx context.Context, f KeyFilter) (KeyPage, error)
	// Changes returns ids of keys, and names of entities, changed after a position, oldest first, at most
	// 1,000, and the new position. Rows of transactions that are not visible yet
	// hold the position back, so that a late commit is never skipped. A position
	// of -1 means "now". Positions are opaque; one that comes back lower than after
	// means that the database was replaced, so that every cached key is suspect.
	Changes(ctx context.Context, after int64) (ids []string, position int64, err error)
}

// Key is a virtual key. ID is the lower-case hex of its SHA-256; the key itself
// is stored nowhere.
type Key struct {
	ID             string
	Name           string // "sk-...abcd"
	Alias          string
	UserID         string
	TeamID         string
	OrganizationID string
	Models         []string
	Aliases        map[string]string
	Blocked        bool
	Expires        time.Time // zero: never
	MaxBudget      *int64    // nil: none
	BudgetDuration string    // "" : the budget never resets
	BudgetResetAt  time.Time
	Spend          int64 // reported; read only
	Tags           []string
	MetadataJSON   string // "{}" when empty
	// SettingsJSON keeps further fields of /key/generate as they came (limits and
	// others that a later release acts on), so that nothing a user set is lost.
	SettingsJSON string
	CreatedBy    string
	CreatedAt    time.Time
	UpdatedBy    string
	UpdatedAt    time.Time
	Version      int64
}

// KeyPatch changes the fields whose pointer is set.
type KeyPatch struct {
	Alias          *string
	UserID         *string
	TeamID         *string
	OrganizationID *string
	Models         *[]string
	Aliases        *map[string]string
	Blocked        *bool
	Expires        *time.Time // zero time: never
	MaxBudget      **int64    // pointer to nil: no budget
	BudgetDuration *string
	Tags           *[]string
	MetadataJSON   *string
	// Settings changes single fields of SettingsJSON to these JSON values; null takes
	// a field away. Others stay, whoever changes them at the same time.
	Settings  map[string]json.RawMessage
	Spend     *int64 // sets the period's spend (administrator's correction)
	UpdatedBy string
}

// KeyFilter selects keys for a page. Empty fields match everything.
type KeyFilter struct {
	UserID         string
	TeamID         string
	OrganizationID string
	ID             string
	Alias          string
	Page           int // from 1
	Size           int // at most 1,000
}

// KeyPage is one page of keys, newest first.
type KeyPage struct {
	Keys  []Key
	Total int
}

// Spend reads what was spent.
type Spend interface {
	// Records returns records newest first.
	Records(ctx context.Context, f RecordFilter) ([]Record, error)
	// DailySpend sums cost per day (UTC) over the filter, oldest first.
	DailySpend(ctx context.Context, f RecordFilter) ([]DaySpend, error)
}

// RecordFilter selects records. Empty fields match everything.
type RecordFilter struct {
	RequestID string
	KeyID     string
	UserID    string
	From      time.Time // inclusive
	To        time.Time // exclusive
	Limit     int       // at most 10,000
	// BeforeStart and BeforeID continue after the last row of a page (keyset).
	BeforeStart time.Time
	BeforeID    string
}

// DaySpend is one day's sum.
type DaySpend struct {
	Day      time.Time
	KeyID    string
	Model    string
	Requests int64
	Usage    money.Usage
	Cost     int64
}
