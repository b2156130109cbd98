// Package hold keeps the money a worker may spend: it takes leases from the
// ledger, serves the hold of each request from them without asking anybody, and
// gives back what is not needed.
//
// The rules it follows (one numbered grant outstanding, a lease marked returning
// before it is returned, deadlines counted from the first send, …) are the ledger's;
// DESIGN.md in this folder says how they sit in this code.
package hold

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// Config describes a Manager. Client and Holder are required.
type Config struct {
	Client ledgerv1.LedgerClient
	Holder *ledgerv1.Holder
	// JournalDir is the name of this process life's journal folder under the pod's
	// journal root; heartbeats carry it.
	JournalDir string
	// Acked returns the number of the last record known to be committed. It spares
	// returns that the ledger would answer with "pending"; nil: let the ledger say.
	Acked func() uint64
	// Margin is how long before the holder's expiry and before a period's end the
	// last hold is taken; default 1 s, at most a quarter of the holder's ttl.
	Margin time.Duration
	// GrantTimeout ends one attempt of a call to the ledger; default 3 s. The grant
	// itself is repeated until it is answered.
	GrantTimeout time.Duration
	// MaxWait is how long a request waits for money; default 5 s.
	MaxWait time.Duration
	// IdleReturn is how long a lease rests unused before it is returned; default 5 s.
	IdleReturn time.Duration
	Logger     *slog.Logger
	// OnFenced is called once when the ledger has closed this process life: no hold
	// is taken any more, and the worker must restart with a new epoch. It runs on a
	// goroutine that Stop waits for, so it must not call Stop.
	OnFenced func()
}

// Manager holds money for the requests of one worker. Its methods may be called
// from several goroutines at once.
type Manager struct {
	cfg  Config
	base time.Time // zero of the monotonic clock in all durations below

	wakeGrant  chan struct{}
	wakeReturn chan struct{}
	wakeBeat   chan struct{}
	cancel     context.CancelFunc
	loops      sync.WaitGroup

	mu           sync.Mutex
	entities     map[string]*entity
	leases       map[leaseKey]*lease // every lease that is not closed
	idle         idleList
	returning    map[*lease]struct{}
	trims        map[*lease]struct{}
	queue        list.List     // waiters to be asked for, in order
	parked       list.List     // waiters that wait for something else than an answer
	nextWake     time.Duration // earliest wakeAt of the parked ones
	grantSeq     uint64        // number of the last grant that was begun
	pendingSince time.Duration
	pending      bool // grant grantSeq is not answered yet
	reaps        uint32
	beatSent     time.Duration // greatest echoed send time
	ttl          time.Duration // 0: no heartbeat was answered yet
	validUntil   time.Duration
	urgentUntil  time.Duration // money is short: return what is drained at once
	fenced       bool
	stopping     bool
	empty        chan struct{} // closed when stopping and nothing is left to return
}

// New returns a Manager that is not started.
func New(cfg Config) *Manager {
	setDefault(&cfg.Margin, time.Second)
	setDefault(&cfg.GrantTimeout, 3*time.Second)
	setDefault(&cfg.MaxWait, 5*time.Second)
	setDefault(&cfg.IdleReturn, 5*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{
		cfg:        cfg,
		base:       time.Now(),
		wakeGrant:  make(chan struct{}, 1),
		wakeReturn: make(chan struct{}, 1),
		wakeBeat:   make(chan struct{}, 1),
		entities:   map[string]*entity{},
		leases:     map[leaseKey]*lease{},
		returning:  map[*lease]struct{}{},
		trims:      map[*lease]struct{}{},
		empty:      make(chan struct{}),
		nextWake:   never,
	}
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// Start begins heartbeats and returns at once: a worker starts without its
// collector. The context's values are kept, its end is not: Stop ends the Manager.
func (m *Manager) Start(ctx context.Context) error {
	ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.loops.Go(func() { m.beatLoop(ctx) })
	m.loops.Go(func() { m.grantLoop(ctx) })
	m.loops.Go(func() { m.returnLoop(ctx) })
	return nil
}

// Stop takes no further hold, waits until open holds are settled and their records
// are in, returns every lease and ends the Manager. It returns an error when ctx
// ends first; what is then still leased is charged or freed by the ledger's own rules.
func (m *Manager) Stop(ctx context.Context) error {
	if m.cancel == nil {
		return nil
	}
	m.beginStop()
	var err error
	select {
	case <-m.empty:
	case <-ctx.Done():
		m.mu.Lock()
		err = fmt.Errorf("cannot return %d leases: %w", len(m.leases), ctx.Err())
		m.mu.Unlock()
	}
	m.cancel()
	m.loops.Wait()
	return err
}

func (m *Manager) beginStop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopping {
		return
	}
	m.stopping = true
	m.failWaiters(errStopping)
	for _, l := range m.leases {
		if l.open == 0 {
			m.markReturning(l)
		}
	}
	m.checkEmpty()
	kick(m.wakeReturn)
}

// checkEmpty tells Stop that nothing is left to do.
func (m *Manager) checkEmpty() {
	if !m.stopping || !m.fenced && (m.pending || len(m.leases) > 0) {
		return
	}
	select {
	case <-m.empty:
	default:
		close(m.empty)
	}
}

// fence ends admission for good.
func (m *Manager) fence() {
	m.mu.Lock()
	first := !m.fenced
	m.fenced = true
	m.failWaiters(ErrFenced)
	m.checkEmpty()
	m.mu.Unlock()
	if first {
		m.cfg.Logger.Error("the ledger has closed this process life; the worker must restart with a new epoch")
		if m.cfg.OnFenced != nil {
			m.cfg.OnFenced()
		}
	}
}

// now is the monotonic time since the Manager was made.
func (m *Manager) now() time.Duration { return time.Since(m.base) }

// kick wakes a loop; a wake-up that is already on its way is enough.
func kick(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// backoff waits before attempt n of a call, or until ctx ends.
func backoff(ctx context.Context, attempt int) {
	d := min(500*time.Millisecond, 10*time.Millisecond<<min(attempt, 8))
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
