package hold

import (
	"context"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

const (
	// urgency is how long after a refusal drained leases are returned without delay.
	urgency = 2 * time.Second
	// urgentPause and calmPause are the pauses between returns: short while money is
	// short, else long enough to return many leases at once.
	urgentPause = 50 * time.Millisecond
	calmPause   = 250 * time.Millisecond
	// maxReturns bounds one call.
	maxReturns = 1000
)

// returnLoop returns idle and drained leases and trims recalled ones. It is the only
// caller of Return and Trim, so one of each is outstanding at most.
func (m *Manager) returnLoop(ctx context.Context) {
	failures, last := 0, m.now()-calmPause
	for !m.isFenced() {
		if pause := m.pause(last, failures); pause > 0 {
			t := time.NewTimer(pause)
			select {
			case <-t.C:
			case <-m.wakeReturn:
			case <-ctx.Done():
			}
			t.Stop()
			if ctx.Err() != nil {
				return
			}
			m.sweep()
			if m.pause(last, failures) > 0 {
				continue
			}
		}
		last = m.now()
		if m.giveBack(ctx) {
			failures = 0
		} else {
			failures++
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// pause is how long the loop may sleep before it has something to do.
func (m *Manager) pause(last time.Duration, failures int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	pause := min(m.cfg.IdleReturn/8, max(time.Millisecond, m.nextWake-now))
	switch {
	case failures > 0:
		return min(time.Second, urgentPause<<min(failures, 5)) - (now - last)
	case len(m.trims) > 0:
		return 0
	case len(m.returning) == 0:
		return pause
	case m.stopping || now < m.urgentUntil:
		return min(pause, urgentPause-(now-last))
	}
	return min(pause, calmPause-(now-last))
}

// sweep marks what has been idle for too long and wakes who has waited enough.
func (m *Manager) sweep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for l := m.idle.first; l != nil && now-l.idleSince >= m.cfg.IdleReturn; l = m.idle.first {
		m.markReturning(l)
	}
	m.wakeParked(now)
}

// Recall gives back what is leased of an entity and not held, because its budget has
// changed: the next request asks the ledger, which knows the new limit.
func (m *Manager) Recall(entity string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recall(entity)
}

// RecallAll is Recall for every entity.
func (m *Manager) RecallAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.entities {
		m.recall(name)
	}
}

// recall gives back what this worker has of an entity and does not use: idle leases
// are returned, the rest of others is trimmed, which needs no record to be in. It
// returns false when there is nothing to give back.
func (m *Manager) recall(name string) bool {
	e := m.entities[name]
	if e == nil {
		return false
	}
	found := false
	for _, l := range e.leases {
		if l.avail <= 0 {
			// One that is spent and on its way back settles what is held and what is
			// spent: the ledger's next verdict is then the right one.
			found = found || l.returning
			continue
		}
		if l.open == 0 && !l.returning {
			m.markReturning(l)
		}
		if l.reaps == m.reaps { // a lost lease is not trimmed
			m.trims[l] = struct{}{}
		}
		found = found || l.returning || l.reaps == m.reaps
	}
	kick(m.wakeReturn)
	return found
}

// giveBack returns and trims what is due. It returns false when the ledger did not answer.
func (m *Manager) giveBack(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.GrantTimeout)
	defer cancel()
	return m.returnLeases(ctx) && m.trimLeases(ctx)
}

func (m *Manager) returnLeases(ctx context.Context) bool {
	req := m.returnRequest()
	if len(req.GetLeases()) == 0 {
		return true
	}
	resp, err := m.cfg.Client.Return(ctx, req)
	if err != nil {
		m.cfg.Logger.Warn("cannot return leases; trying again", "error", err)
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ref := range resp.GetClosed() {
		if l := m.leases[keyOf(ref)]; l != nil {
			m.drop(l)
		}
	}
	if len(resp.GetClosed()) > 0 {
		m.requeueParked()
	}
	m.checkEmpty()
	return true
}

func (m *Manager) returnRequest() *ledgerv1.ReturnRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	acked := uint64(1<<64 - 1)
	if m.cfg.Acked != nil {
		acked = m.cfg.Acked()
	}
	req := &ledgerv1.ReturnRequest{Holder: m.cfg.Holder}
	for l := range m.returning {
		if l.lastSeq <= acked {
			req.Leases = append(req.Leases, &ledgerv1.ReturnLease{Lease: l.ref, AfterSeq: l.lastSeq})
		}
		if len(req.Leases) == maxReturns {
			break
		}
	}
	return req
}

func (m *Manager) trimLeases(ctx context.Context) bool {
	trimmed, req := m.trimRequest()
	if len(trimmed) == 0 {
		return true
	}
	if _, err := m.cfg.Client.Trim(ctx, req); err != nil {
		m.cfg.Logger.Warn("cannot trim leases; trying again", "error", err)
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range trimmed {
		delete(m.trims, l)
	}
	m.requeueParked()
	return true
}

// trimRequest lowers each recalled lease to what is settled and held, first here
// and then in the ledger. What is lowered stays so when the call fails.
func (m *Manager) trimRequest() ([]*lease, *ledgerv1.TrimRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	req := &ledgerv1.TrimRequest{Holder: m.cfg.Holder}
	var trimmed []*lease
	for l := range m.trims {
		if l.avail > 0 {
			l.granted -= l.avail
			l.avail = 0
		}
		trimmed = append(trimmed, l)
		req.Leases = append(req.Leases, &ledgerv1.TrimLease{Lease: l.ref, ToNano: l.granted})
	}
	return trimmed, req
}
