// Package ledgertest is a double of the ledger service for tests of what runs
// inside a worker: the ledger's rules kept in memory, a client that needs no
// socket, and the faults of a bad day (lost requests and replies, duplicates,
// delays, a collector that is away, a fenced holder).
//
// A Ledger checks law 2 (spent − overrun + leased ≤ limit) after each step and
// remembers every violation; see [Ledger.Err].
package ledgertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// Config describes a Ledger. The zero value is useful.
type Config struct {
	// TTL is a holder's life without a heartbeat; default 60 s.
	TTL time.Duration
	// Spare decides how much money beyond the wants a lease gets, from what the
	// wants desire, what one hold takes, and what is free. Default: at most free ÷
	// (2 × holders), in whole holds.
	Spare func(desired, hold, free int64, holders int) int64
}

// Ledger keeps budgets, leases, cursors and keys in memory. It is a
// ledgerv1.LedgerServer, so it can also stand behind a real socket. Its methods
// may be called from several goroutines at once.
type Ledger struct {
	ledgerv1.UnimplementedLedgerServer
	cfg Config

	// Rates keeps the rate limits. Set its fields before the first call.
	Rates Limits

	mu      sync.Mutex
	budgets map[int64]*budget
	current map[string]*budget // by entity
	leases  map[leaseKey]*lease
	holders map[string]*holder
	errs    []error
	keys    keys
	down    bool
	broken  chan struct{} // closed to break all open streams
	plan    func(method string) Fault
	late    []func()
	calls   map[string]int
}

type budget struct {
	Budget
	id     int64
	entity string
	until  time.Time // zero: the period has no end
}

// Budget is one budget row, in nano-dollars.
type Budget struct {
	Limit, Spent, Overrun, Leased, Lost int64
}

type leaseKey struct {
	holder string
	seq    uint64
	budget int64
}

type lease struct {
	budget                        *budget
	granted, spent, overrun, lost int64
	state                         ledgerv1.Lease_State
}

type holder struct {
	expires  time.Time
	grantSeq uint64
	cursor   uint64
	reaps    uint32
	closed   bool
}

// New returns an empty ledger.
func New(cfg Config) *Ledger {
	if cfg.TTL == 0 {
		cfg.TTL = time.Minute
	}
	if cfg.Spare == nil {
		cfg.Spare = wholeHolds
	}
	return &Ledger{
		cfg:     cfg,
		budgets: map[int64]*budget{},
		current: map[string]*budget{},
		leases:  map[leaseKey]*lease{},
		holders: map[string]*holder{},
		keys:    newKeys(),
		broken:  make(chan struct{}),
		calls:   map[string]int{},
	}
}

// AddBudget gives an entity a budget whose period has no end.
func (l *Ledger) AddBudget(entity string, limit int64) {
	l.AddPeriod(entity, limit, time.Time{})
}

// AddPeriod gives an entity a budget whose period ends at until; the first grant
// after that opens a next period with the same limit and no end.
func (l *Ledger) AddPeriod(entity string, limit int64, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addBudget(entity, limit, until)
}

func (l *Ledger) addBudget(entity string, limit int64, until time.Time) *budget {
	b := &budget{id: int64(len(l.budgets) + 1), entity: entity, until: until}
	b.Limit = limit
	l.budgets[b.id] = b
	l.current[entity] = b
	return b
}

// Budget returns the row of an entity's present period.
func (l *Ledger) Budget(entity string) Budget {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.current[entity]; b != nil {
		return b.Budget
	}
	return Budget{}
}

// OpenLeases counts leases that are not closed, of all holders.
func (l *Ledger) OpenLeases() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, x := range l.leases {
		if x.state != ledgerv1.Lease_STATE_CLOSED {
			n++
		}
	}
	return n
}

// Calls counts the calls of a method ("Grant") that reached the ledger.
func (l *Ledger) Calls(method string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[method]
}

// Err returns every broken law and rule seen so far, or nil.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...)
}

// arrive counts a call and refuses it while the ledger is down.
func (l *Ledger) arrive(method string) error {
	if l.down {
		return errAway
	}
	l.calls[method]++
	return nil
}

var errAway = status.Error(codes.Unavailable, "database unavailable")

// audit runs after each step.
func (l *Ledger) audit(step string) {
	for id, b := range l.budgets {
		if b.Spent-b.Overrun+b.Leased > b.Limit {
			l.fail("%s: budget %d is passed: %+v", step, id, b.Budget)
		}
		if b.Leased < 0 || b.Lost < 0 {
			l.fail("%s: budget %d went below zero: %+v", step, id, b.Budget)
		}
	}
}

func (l *Ledger) fail(format string, args ...any) {
	if len(l.errs) < 20 {
		l.errs = append(l.errs, fmt.Errorf(format, args...))
	}
}

// holderID is the holder's name as the database knows it.
func holderID(h *ledgerv1.Holder) string {
	return fmt.Sprintf("%s/%d/%x", h.GetPodUid(), h.GetIndex(), h.GetEpoch())
}
