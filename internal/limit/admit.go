package limit

import (
	"container/list"
	"context"
	"time"
)

// Want is what one request needs: all of it or nothing.
type Want struct {
	// Subjects are the entities whose limits apply. They must not change while Admit runs.
	Subjects []Subject
	// Tokens is what the request is charged at admission against every TPM: its input and
	// the output that is likely (see [Outputs]). Pass.Settle corrects it.
	Tokens int64
}

// Subject has limits over all pods. 0: no such limit; below 0: nothing is admitted.
type Subject struct {
	Name     string // e.g. "key:<hash>"
	RPM      int64
	TPM      int64
	Parallel int64
}

// limit is the subject's limit of one kind.
func (s *Subject) limit(k Kind) int64 {
	switch k {
	case RPM:
		return s.RPM
	case TPM:
		return s.TPM
	default:
		return s.Parallel
	}
}

// need is what w takes of one limit of s; 0: nothing.
func (w *Want) need(s *Subject, k Kind) int64 {
	switch {
	case s.limit(k) == 0:
		return 0
	case k == TPM:
		return w.Tokens
	}
	return 1
}

// Admit admits a request, at once where permits are at hand. The Pass must be released
// exactly once and not be used afterwards. Errors: [*Refused], [ErrUnavailable], or ctx's own.
func (m *Manager) Admit(ctx context.Context, want Want) (*Pass, error) {
	m.mu.Lock()
	now := m.now()
	p, err := m.book.admit(m, want, now)
	if p != nil || err != nil {
		wake := m.book.takeWake()
		m.mu.Unlock()
		if wake {
			m.kick()
		}
		return p, err
	}
	w := m.book.join(m, want, now)
	m.mu.Unlock()
	m.kick()
	return m.wait(ctx, w)
}

func (m *Manager) wait(ctx context.Context, w *waiter) (*Pass, error) {
	limit := time.NewTimer(m.cfg.MaxWait)
	defer limit.Stop()
	select {
	case <-w.done:
	case <-ctx.Done():
		m.leave(w, ctx.Err())
	case <-limit.C:
		m.leave(w, errNoAnswer)
	}
	if w.err != nil {
		return nil, w.err
	}
	if err := ctx.Err(); err != nil { // admitted, and gone in the same moment
		w.pass.Cancel()
		return nil, err
	}
	return w.pass, nil
}

// leave ends a wait from the waiter's side. A request that was told of a limit hears
// that rather than that no answer came.
func (m *Manager) leave(w *waiter, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.book.leave(w, err)
}

// waiter is a request that needs an answer of the ledger.
type waiter struct {
	want    Want
	pass    *Pass
	done    chan struct{} // closed when over
	over    bool
	err     error
	joined  time.Duration
	askAt   time.Duration // when it may be asked for
	asked   bool          // it is in the call that is under way
	refused *Refused      // what it was told so far
	place   *list.Element
}
