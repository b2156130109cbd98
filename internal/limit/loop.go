package limit

import (
	"context"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// loop talks to the ledger. It is the only caller of Limits, so one call is under way
// at most.
func (m *Manager) loop(ctx context.Context) {
	for ctx.Err() == nil {
		if pause := m.pause(); pause > 0 {
			t := time.NewTimer(pause)
			select {
			case <-t.C:
			case <-m.wake:
			case <-ctx.Done():
			}
			t.Stop()
			continue
		}
		m.mu.Lock()
		req := m.book.ask(m.now())
		m.checkEmpty()
		m.mu.Unlock()
		if req == nil {
			continue
		}
		resp := m.call(ctx, req)
		if resp == nil {
			return
		}
		m.mu.Lock()
		m.book.answer(resp, m.now())
		m.checkEmpty()
		m.mu.Unlock()
	}
}

// pause is how long there is nothing to say.
func (m *Manager) pause() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	return min(m.book.next(now)-now, time.Minute)
}

// call repeats req until it is answered, or ctx ends: a call that is given up might be
// served all the same.
func (m *Manager) call(ctx context.Context, req *ledgerv1.LimitsRequest) *ledgerv1.LimitsResponse {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		limited, cancel := context.WithTimeout(ctx, m.cfg.CallTimeout)
		resp, err := m.cfg.Client.Limits(limited, req)
		cancel()
		if err == nil && resp.GetSeq() == req.GetSeq() {
			return resp
		}
		if attempt == 0 {
			m.cfg.Logger.Warn("cannot ask about limits; trying again", "error", err)
		}
		backoff(ctx, attempt)
	}
	return nil
}

// backoff waits before the next attempt of a call, or until ctx ends.
func backoff(ctx context.Context, attempt int) {
	t := time.NewTimer(min(500*time.Millisecond, 10*time.Millisecond<<min(attempt, 8)))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
