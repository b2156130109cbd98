package tokens

import (
	"sync/atomic"
	"time"
)

// memory is the table of learned words that is in use. One that has filled up,
// be it by junk that somebody sent, is exchanged for an empty one: at most once a
// minute, so that nobody can keep it empty.
type memory struct {
	current atomic.Pointer[learned]
	next    atomic.Int64 // Unix seconds before which it is kept
}

const (
	renewSeconds = 60
	// tooFull is how many words may find no room before a table is exchanged: a
	// word that comes again and again counts each time.
	tooFull = 1 << 14

	pageSize   = 4096
	bucketSize = 64
)

func (m *memory) renew() { m.current.Store(newLearned()) }

// warm takes a table whose memory is there already.
func (m *memory) warm() {
	l := newLearned()
	for i := 0; i < len(l.short); i += pageSize / bucketSize {
		l.short[i][0][0] = 0
	}
	for i := 0; i < len(l.long); i += pageSize / bucketSize {
		l.long[i][0][0] = 0
	}
	m.current.Store(l)
}

// table returns the table to use, a new one where it is time for it.
func (m *memory) table() *learned {
	l := m.current.Load()
	if l.full.Load() < tooFull {
		return l
	}
	now, next := time.Now().Unix(), m.next.Load()
	if now < next || !m.next.CompareAndSwap(next, now+renewSeconds) {
		return l
	}
	m.renew()
	return m.current.Load()
}
