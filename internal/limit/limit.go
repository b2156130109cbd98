// Package limit keeps rate limits inside a worker: it takes permits and slots from the
// ledger, which counts them over all pods, admits requests from what is at hand without
// asking anybody, and gives back what is not used.
//
// What may be used until when is decided by internal/ledger; docs/adr/0005-rate-limits.md
// says why the limits hold. book is the worker's side of those rules without clock or
// goroutine; Manager gives it both.
package limit

import (
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
	// MaxWait is how long a request waits for the ledger; default 5 s.
	MaxWait time.Duration
	// Patience is how long a request waits for a slot that a request elsewhere may just
	// be giving back; default 300 ms.
	Patience time.Duration
	// CallTimeout ends one attempt of a call to the ledger; default 3 s. The call itself
	// is repeated until it is answered.
	CallTimeout time.Duration
	// LongestRequest is the longest that a request with a slot runs; the caller sees to
	// it. Slots of a pod that was lost with its memory come back that late; default 10 min,
	// at most 24 h.
	LongestRequest time.Duration
	Logger         *slog.Logger
}

// Manager admits the requests of one worker. Its methods may be called from several
// goroutines at once.
type Manager struct {
	cfg  Config
	base time.Time // zero of the monotonic clock in all durations of book

	wake   chan struct{}
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu    sync.Mutex
	book  *book
	empty chan struct{} // closed when stopping and nothing is left to give back
}

// New returns a Manager that is not started.
func New(cfg Config) *Manager {
	setDefault(&cfg.MaxWait, 5*time.Second)
	setDefault(&cfg.Patience, 300*time.Millisecond)
	setDefault(&cfg.CallTimeout, 3*time.Second)
	setDefault(&cfg.LongestRequest, 10*time.Minute)
	cfg.LongestRequest = min(cfg.LongestRequest, 24*time.Hour)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{
		cfg:   cfg,
		base:  time.Now(),
		wake:  make(chan struct{}, 1),
		book:  newBook(cfg),
		empty: make(chan struct{}),
	}
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// Start begins to talk to the ledger and returns at once: a worker starts without its
// collector. The context's values are kept, its end is not: Stop ends the Manager.
func (m *Manager) Start(ctx context.Context) error {
	ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.loops.Go(func() { m.loop(ctx) })
	return nil
}

// Stop admits no further request, waits until the open ones are released, gives
// everything back and ends the Manager. It returns an error when ctx ends first; what is
// then still out comes back by itself.
func (m *Manager) Stop(ctx context.Context) error {
	if m.cancel == nil {
		return nil
	}
	m.mu.Lock()
	m.book.stop(m.now())
	m.checkEmpty()
	m.mu.Unlock()
	m.kick()
	var err error
	select {
	case <-m.empty:
	case <-ctx.Done():
		err = fmt.Errorf("cannot give back all permits and slots: %w", ctx.Err())
	}
	m.cancel()
	m.loops.Wait()
	return err
}

// Recall gives back what is not in use of a subject, because its limits have changed.
func (m *Manager) Recall(subject string) {
	m.mu.Lock()
	if s := m.book.subjects[subject]; s != nil {
		m.book.recall(s, m.now())
	}
	m.mu.Unlock()
	m.kick()
}

// RecallAll is Recall for every subject.
func (m *Manager) RecallAll() {
	m.mu.Lock()
	for _, s := range m.book.subjects {
		m.book.recall(s, m.now())
	}
	m.mu.Unlock()
	m.kick()
}

// checkEmpty tells Stop that nothing is left to do.
func (m *Manager) checkEmpty() {
	if !m.book.stopping || !m.book.isEmpty() {
		return
	}
	select {
	case <-m.empty:
	default:
		close(m.empty)
	}
}

// now is the monotonic time since the Manager was made.
func (m *Manager) now() time.Duration { return time.Since(m.base) }

// kick wakes the loop; a wake-up that is already on its way is enough.
func (m *Manager) kick() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
