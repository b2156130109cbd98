package hold

import (
	"context"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// beatLoop keeps the holder alive in the ledger: five heartbeats per ttl, and soon
// again after one that was not answered.
func (m *Manager) beatLoop(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		wait, err := m.heartbeat(ctx)
		if err != nil {
			if failures == 0 {
				m.cfg.Logger.Warn("cannot renew the holder", "error", err)
			}
			wait = min(time.Second, 20*time.Millisecond<<min(failures, 8))
			failures++
		} else {
			failures = 0
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-m.wakeBeat:
		case <-ctx.Done():
		}
		t.Stop()
		if m.isFenced() {
			return
		}
	}
}

// heartbeat renews the holder once and returns when to do so again.
func (m *Manager) heartbeat(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.GrantTimeout)
	defer cancel()
	resp, err := m.cfg.Client.Heartbeat(ctx, &ledgerv1.HeartbeatRequest{
		Holder: m.cfg.Holder, SentMonotonicNs: int64(m.now()), JournalDir: m.cfg.JournalDir,
	})
	if err != nil {
		return 0, err
	}
	if resp.GetFenced() {
		m.fence()
		return 0, ErrFenced
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sawReaps(resp.GetReaps())
	ttl := time.Duration(resp.GetTtlMs()) * time.Millisecond
	// An answer that comes late must not shorten what a later one gave.
	if sent := time.Duration(resp.GetSentMonotonicNs()); sent >= m.beatSent || m.ttl == 0 {
		m.beatSent, m.ttl = sent, ttl
		m.validUntil = sent + ttl - min(m.cfg.Margin, ttl/4)
	}
	return max(ttl/5, 10*time.Millisecond), nil
}

func (m *Manager) isFenced() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fenced
}

func (m *Manager) isValid() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now() < m.validUntil
}
