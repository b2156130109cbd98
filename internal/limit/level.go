package limit

import "time"

// Levels are the limits of a subject as this worker knows them.
type Levels struct{ Requests, Tokens, Parallel Level }

// Level is one limit. Limit 0: there is none.
type Level struct {
	Limit int64
	// Remaining is a bound, not a promise: what is at hand here and what the ledger had
	// left when it was last asked. Others may have taken it since.
	Remaining int64
	// Reset is until all that counted when the ledger was last asked counts no more.
	Reset time.Duration
}

// Remaining returns the limits of a subject, zero for one that is not known here.
func (m *Manager) Remaining(name string) Levels {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.book.subjects[name]
	if s == nil {
		return Levels{}
	}
	now := m.now()
	return Levels{
		Requests: s.requests.level(now),
		Tokens:   s.tokens.level(now),
		Parallel: Level{Limit: max(s.slots.limit, 0), Remaining: max(s.slots.have-s.slots.inUse+s.slots.free, 0)},
	}
}

func (p *permits) level(now time.Duration) Level {
	if p.limit <= 0 {
		return Level{}
	}
	return Level{Limit: p.limit, Remaining: min(p.atHand(now)+p.free, p.limit), Reset: max(p.resetAt-now, 0)}
}
