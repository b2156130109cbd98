package collector

import (
	"context"
	"sync"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// stuck ends what could only be tried again for ever. After a failover to a replica
// that lacks commits, the database is behind what workers were told: their records
// start beyond its cursor, charge leases that it never granted, or their grants follow
// one that it does not know. The worker's process life is over then: it is fenced, its
// worker restarts, and its journal is adopted with all that is still in it.
type stuck struct {
	c *Collector

	mu   sync.Mutex
	gaps map[store.HolderID]standstill
}

// standstill is a cursor that stands while records beyond it come.
type standstill struct {
	cursor uint64
	since  time.Time
	fenced bool
}

func newStuck(c *Collector) *stuck { return &stuck{c: c, gaps: map[store.HolderID]standstill{}} }

// moved forgets a holder whose records were committed.
func (s *stuck) moved(holder store.HolderID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gaps, holder)
}

// gap notes records that start beyond the cursor. A worker that is told the cursor
// sends from there at once; when the cursor still stands after GapWait, the worker no
// longer has what is missing, because it was acked.
func (s *stuck) gap(holder store.HolderID, cursor, first uint64) {
	now := time.Now()
	s.mu.Lock()
	was := s.gaps[holder]
	if was.since.IsZero() || was.cursor != cursor {
		was = standstill{cursor: cursor, since: now}
	}
	lost := !was.fenced && now.Sub(was.since) >= s.c.cfg.GapWait
	was.fenced = was.fenced || lost
	s.gaps[holder] = was
	s.mu.Unlock()
	if lost {
		s.fence(holder, "the database has lost records that it had acknowledged", "cursor", cursor, "first_record", first)
	}
}

// fence closes a holder and says why. When the database cannot be reached just now,
// the worker's next try comes back here.
func (s *stuck) fence(holder store.HolderID, why string, details ...any) {
	ctx, cancel := context.WithTimeout(s.c.work, callTimeout)
	defer cancel()
	log := s.c.log.With("holder", holder, "why", why).With(details...)
	if err := s.c.cfg.Store.Fence(ctx, holder); err != nil {
		s.moved(holder)
		log.Warn("cannot fence a worker that has to restart", "error", err)
		return
	}
	s.c.stats.fenced.Add(1)
	log.Error("a worker is fenced and has to restart, its journal will be adopted")
}
