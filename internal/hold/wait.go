package hold

import (
	"container/list"
	"context"
	"errors"
	"time"
)

// heldPatience bounds how long a request waits for money that is only held: settled
// money counts as held until its record is committed and its lease returned.
const heldPatience = 700 * time.Millisecond

// heldAgain is how soon the ledger is asked again about money that others hold.
const heldAgain = 200 * time.Millisecond

// waiter is a request without money yet. All fields but done are guarded by
// Manager.mu.
type waiter struct {
	want    Want
	hold    *Hold
	done    chan struct{} // closed when over
	over    bool
	err     error
	place   *list.Element // in Manager.queue or Manager.parked; nil: it is asked for
	parked  bool
	line    *list.Element // in its first entity's waiters
	refusal *Refused      // of the last answer
	// patience ends the wait for what this worker gives back; 0: not begun.
	patience time.Duration
	wakeAt   time.Duration // when parked
}

// wait joins the next grant.
func (m *Manager) wait(ctx context.Context, h *Hold, want Want) (*Hold, error) {
	w := &waiter{want: want, hold: h, done: make(chan struct{})}
	if err := m.join(w); err != nil {
		return nil, err
	}
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
	if err := ctx.Err(); err != nil { // served, and gone in the same moment
		h.Release()
		return nil, err
	}
	return h, nil
}

func (m *Manager) join(w *waiter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	switch {
	case m.fenced:
		return ErrFenced
	case m.stopping:
		return errStopping
	case now >= m.validUntil && (m.ttl > 0 || now > m.cfg.MaxWait):
		kick(m.wakeBeat)
		return errExpired
	case m.pending && now-m.pendingSince > m.cfg.MaxWait:
		return errNoAnswer // the outage is known: do not let requests pile up
	}
	e := m.entity(w.want.Entities[0])
	w.line = e.waiters.PushBack(w)
	m.enqueue(w)
	return nil
}

// enqueue has w asked for in the next grant.
func (m *Manager) enqueue(w *waiter) {
	m.unplace(w)
	w.place = m.queue.PushBack(w)
	kick(m.wakeGrant)
}

// park keeps w until wakeAt, or until this worker has given money back.
func (m *Manager) park(w *waiter, wakeAt time.Duration) {
	m.unplace(w)
	w.place, w.parked, w.wakeAt = m.parked.PushBack(w), true, wakeAt
	m.nextWake = min(m.nextWake, wakeAt)
	kick(m.wakeReturn)
}

func (m *Manager) unplace(w *waiter) {
	switch {
	case w.place == nil:
	case w.parked:
		m.parked.Remove(w.place)
	default:
		m.queue.Remove(w.place)
	}
	w.place, w.parked = nil, false
}

// finish ends a wait; err nil means that w.hold stands.
func (m *Manager) finish(w *waiter, err error) {
	if w.over {
		return
	}
	m.unplace(w)
	e := m.entities[w.want.Entities[0]]
	e.waiters.Remove(w.line)
	m.tidy(e)
	w.over, w.err = true, err
	close(w.done)
}

// leave ends a wait from the waiter's side. A request that was told of money held
// by others hears that rather than that no answer came.
func (m *Manager) leave(w *waiter, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.refusal != nil && errors.Is(err, errNoAnswer) {
		err = w.refusal
	}
	m.finish(w, err)
}

// serve gives w its amount from leases at hand.
func (m *Manager) serve(w *waiter, amount int64, now time.Duration) bool {
	if w.over || !m.take(w.hold, w.want.Entities, amount, now) {
		return false
	}
	m.finish(w, nil)
	return true
}

// serveLine serves those who wait for e, in order, as far as its leases go.
func (m *Manager) serveLine(e *entity) {
	for e.waiters.Len() > 0 {
		w := e.waiters.Front().Value.(*waiter)
		if !m.serve(w, w.want.Amount, m.now()) {
			return
		}
	}
}

// failWaiters ends every wait.
func (m *Manager) failWaiters(err error) {
	for _, e := range m.entities {
		for e.waiters.Len() > 0 {
			m.finish(e.waiters.Front().Value.(*waiter), err)
		}
	}
}

// requeueParked lets those ask again who wait for this worker's own money, since
// some of it was just given back.
func (m *Manager) requeueParked() {
	for el := m.parked.Front(); el != nil; {
		w := el.Value.(*waiter)
		el = el.Next()
		if w.refusal != nil {
			m.enqueue(w)
		}
	}
}

// wakeParked asks again for those whose time has come.
func (m *Manager) wakeParked(now time.Duration) {
	if now < m.nextWake {
		return
	}
	m.nextWake = never
	for el := m.parked.Front(); el != nil; {
		w := el.Value.(*waiter)
		el = el.Next()
		if now < w.wakeAt {
			m.nextWake = min(m.nextWake, w.wakeAt)
			continue
		}
		m.enqueue(w) // the verdict may be another by now: what was held is spent, or free
	}
}
