package hold

import (
	"container/list"
	"math"
	"slices"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

type leaseKey struct {
	seq    uint64
	budget int64
}

func keyOf(ref *ledgerv1.LeaseRef) leaseKey { return leaseKey{ref.GetSeq(), ref.GetBudgetId()} }

// entity is what holds a budget, as this worker knows it. It exists while it has a
// lease or a waiter.
type entity struct {
	name    string
	leases  []*lease  // not closed, oldest first
	hint    int       // where the last lease with room was found
	waiters list.List // whose first entity this is
	pace    pace
	wished  uint64 // the last grant that asked for more than its waiters need
}

// lease is money taken from one budget. All fields are guarded by Manager.mu.
type lease struct {
	ref       *ledgerv1.LeaseRef
	entity    *entity
	granted   int64
	avail     int64 // granted − full cost settled − open holds; below 0 after an overrun
	open      int   // open holds
	lastHold  int64
	lastSeq   uint64        // last record that touched it
	since     time.Duration // when it was first asked for
	deadline  time.Duration // no hold from then on
	reaps     uint32        // the holder's reaps when it was granted
	returning bool          // never held from again
	idleSince time.Duration
	prev      *lease // in Manager.idle
	next      *lease
	inIdle    bool
}

const never = time.Duration(math.MaxInt64)

// usable says whether a new hold may be taken from l at all.
func (m *Manager) usable(l *lease, now time.Duration) bool {
	return !l.returning && l.reaps == m.reaps && now < l.deadline
}

// pick finds a lease of e with room for amount.
func (m *Manager) pick(e *entity, amount int64, now time.Duration) *lease {
	for i := range e.leases {
		at := e.hint + i
		if at >= len(e.leases) {
			at -= len(e.leases)
		}
		if l := e.leases[at]; l.avail >= amount && m.usable(l, now) {
			e.hint = at
			return l
		}
	}
	return nil
}

// take puts h on one lease of each entity, all or none.
func (m *Manager) take(h *Hold, entities []string, amount int64, now time.Duration) bool {
	if now >= m.validUntil || m.fenced {
		return false
	}
	h.leases = h.inline[:0]
	for i, name := range entities {
		if slices.Contains(entities[:i], name) {
			continue
		}
		e := m.entities[name]
		if e == nil {
			return false
		}
		l := m.pick(e, amount, now)
		if l == nil {
			return false
		}
		h.leases = append(h.leases, l)
	}
	h.amount = amount
	for _, l := range h.leases {
		l.avail -= amount
		l.lastHold = amount
		l.open++
		m.idle.remove(l)
	}
	return true
}

// most returns the greatest amount that every entity could hold now.
func (m *Manager) most(entities []string, now time.Duration) int64 {
	amount := int64(math.MaxInt64)
	for _, name := range entities {
		best := int64(0)
		if e := m.entities[name]; e != nil {
			for _, l := range e.leases {
				if m.usable(l, now) {
					best = max(best, l.avail)
				}
			}
		}
		amount = min(amount, best)
	}
	return amount
}

// put takes h off its leases, which were charged cost each by record seq, and
// passes on what became free.
func (m *Manager) put(h *Hold, cost int64, seq uint64) {
	now := m.now()
	for _, l := range h.leases {
		l.entity.pace.add(cost, now)
		l.avail += h.amount - cost
		l.lastSeq = max(l.lastSeq, seq)
		l.open--
	}
	for _, l := range h.leases {
		m.serveLine(l.entity)
	}
	for _, l := range h.leases {
		switch {
		case l.open == 0:
			m.rest(l)
		case m.oversized(l, now) && l.reaps == m.reaps: // a lost lease is not trimmed
			m.trims[l] = struct{}{}
			kick(m.wakeReturn)
		}
	}
}

// oversized says that l outlives its entity's pace: others wait for its money, and a
// limit that was lowered would come late.
func (m *Manager) oversized(l *lease, now time.Duration) bool {
	return now-l.since >= m.cfg.IdleReturn && l.avail > max(desiredHolds*l.lastHold, l.entity.pace.recent(now))
}

// rest decides what becomes of a lease without open holds.
func (m *Manager) rest(l *lease) {
	now := m.now()
	if m.stopping || l.avail < max(1, l.lastHold) || !m.usable(l, now) || m.oversized(l, now) {
		m.markReturning(l)
		return
	}
	l.idleSince = now
	m.idle.push(l)
}

// markReturning ends the use of a lease for good; it is returned afterwards. The
// lease must have no open hold, so lastSeq is the last record that can touch it.
func (m *Manager) markReturning(l *lease) {
	m.idle.remove(l)
	l.returning = true
	m.returning[l] = struct{}{}
	kick(m.wakeReturn)
}

// add takes a lease from a grant's answer.
func (m *Manager) add(g *ledgerv1.Lease, firstSent time.Duration, reaps uint32) {
	ref := &ledgerv1.LeaseRef{Seq: g.GetSeq(), BudgetId: g.GetBudgetId()}
	if m.leases[keyOf(ref)] != nil || g.GetState() == ledgerv1.Lease_STATE_CLOSED {
		return
	}
	l := &lease{
		ref: ref, entity: m.entity(g.GetEntity()), reaps: reaps, deadline: never,
		granted: g.GetGrantedNano(), avail: g.GetGrantedNano(), since: firstSent,
	}
	if in := g.GetUntilInMs(); in > 0 {
		l.deadline = firstSent + time.Duration(in)*time.Millisecond - m.cfg.Margin
	}
	l.entity.leases = append(l.entity.leases, l)
	m.leases[keyOf(ref)] = l
	if g.GetState() == ledgerv1.Lease_STATE_LOST || l.avail <= 0 {
		m.markReturning(l)
		return
	}
	m.rest(l)
}

// drop forgets a lease that the ledger has closed.
func (m *Manager) drop(l *lease) {
	delete(m.leases, keyOf(l.ref))
	delete(m.returning, l)
	delete(m.trims, l)
	e := l.entity
	e.leases = slices.DeleteFunc(e.leases, func(x *lease) bool { return x == l })
	e.hint = 0
	m.tidy(e)
}

func (m *Manager) entity(name string) *entity {
	e := m.entities[name]
	if e == nil {
		e = &entity{name: name}
		m.entities[name] = e
	}
	return e
}

func (m *Manager) tidy(e *entity) {
	if len(e.leases) == 0 && e.waiters.Len() == 0 {
		delete(m.entities, e.name)
	}
}

// sawReaps learns the holder's count of reaps. A greater one means that older
// leases were charged as lost: nothing is held from them any more.
func (m *Manager) sawReaps(reaps uint32) {
	if reaps <= m.reaps {
		return
	}
	m.reaps = reaps
	for _, l := range m.leases {
		if l.open == 0 && !l.returning && l.reaps != reaps {
			m.markReturning(l)
		}
	}
}

// idleList holds leases without open holds, longest idle first.
type idleList struct{ first, last *lease }

func (q *idleList) push(l *lease) {
	q.remove(l)
	l.inIdle, l.prev, l.next = true, q.last, nil
	if q.last != nil {
		q.last.next = l
	} else {
		q.first = l
	}
	q.last = l
}

func (q *idleList) remove(l *lease) {
	if !l.inIdle {
		return
	}
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		q.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		q.last = l.prev
	}
	l.inIdle, l.prev, l.next = false, nil, nil
}
