package keyring

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	shards = 64
	// evictionSample is how many entries are looked at to find one that was not used
	// for long. Map order is random, so that they are a fair sample.
	evictionSample = 8
)

// cache holds entries by the key's hash, in shards so that lookups do not meet.
type cache struct {
	shard [shards]shard
}

type shard struct {
	mu      sync.RWMutex
	entries map[[32]byte]*entry
	unknown map[[32]byte]*entry // answers "no such key", bounded apart so that a guesser evicts no key
	calls   map[[32]byte]*call
	max     int
}

// entry is one answer of the ledger. All but the atomics is immutable.
type entry struct {
	key    *Key // nil: no such key
	loaded time.Duration
	used   atomic.Int64 // last use, since Keyring.base
	asked  atomic.Int64 // last background question
}

// result is what a lookup returns for e.
func (e *entry) result() (*Key, error) {
	if e.key == nil {
		return nil, ErrUnknown
	}
	return e.key, nil
}

// touch notes a use, to the second: a hot key must not become a hot cache line.
func (e *entry) touch(now time.Duration) {
	if now-time.Duration(e.used.Load()) > time.Second {
		e.used.Store(int64(now))
	}
}

// call is a question under way, shared by all who ask.
type call struct {
	done  chan struct{}
	stale bool // the key changed meanwhile; guarded by the shard's lock
	key   *Key
	err   error
}

func (c *cache) init(maxKeys int) {
	for i := range c.shard {
		c.shard[i].entries = map[[32]byte]*entry{}
		c.shard[i].unknown = map[[32]byte]*entry{}
		c.shard[i].calls = map[[32]byte]*call{}
		c.shard[i].max = max(1, (maxKeys+shards-1)/shards)
	}
}

func (c *cache) of(hash [32]byte) *shard { return &c.shard[hash[0]%shards] }

func (c *cache) find(hash [32]byte) *entry {
	s := c.of(hash)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.find(hash)
}

func (s *shard) find(hash [32]byte) *entry {
	if e := s.entries[hash]; e != nil {
		return e
	}
	return s.unknown[hash]
}

// join returns the call for hash, and whether the caller has to make it. Where an
// answer came since the caller saw seen, that is returned instead of a call.
func (c *cache) join(hash [32]byte, seen *entry) (running *call, mine bool, answer *entry) {
	s := c.of(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(hash); e != nil && e != seen {
		return nil, false, e
	}
	if running = s.calls[hash]; running != nil && !running.stale {
		return running, false, nil
	}
	// Who comes after a change must not share an answer from before it.
	running = &call{done: make(chan struct{})}
	s.calls[hash] = running
	return running, true, nil
}

// finish publishes a call's answer and caches it unless the key has changed since
// the call began.
func (c *cache) finish(hash [32]byte, mine *call, e *entry) {
	s := c.of(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[hash] == mine {
		delete(s.calls, hash)
	}
	if e != nil && !mine.stale {
		s.store(hash, e)
	}
	close(mine.done)
}

// changed says whether the key changed while c was under way.
func (c *cache) changed(hash [32]byte, of *call) bool {
	s := c.of(hash)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return of.stale
}

func (s *shard) store(hash [32]byte, e *entry) {
	old := s.entries[hash]
	switch {
	case e.key == nil:
		delete(s.entries, hash)
		makeRoom(s.unknown, s.max)
		s.unknown[hash] = e
	case old != nil && old.key.Version > e.key.Version:
	default:
		delete(s.unknown, hash)
		if old == nil {
			makeRoom(s.entries, s.max)
		}
		s.entries[hash] = e
	}
}

// makeRoom evicts from a full map what was not used for longest among a sample.
func makeRoom(entries map[[32]byte]*entry, most int) {
	if len(entries) < most {
		return
	}
	var victim [32]byte
	oldest, seen := int64(-1), 0
	for hash, e := range entries {
		if used := max(e.used.Load(), int64(e.loaded)); oldest < 0 || used < oldest {
			victim, oldest = hash, used
		}
		if seen++; seen == evictionSample {
			break
		}
	}
	delete(entries, victim)
}

// forget drops a key that has changed, and what is being answered about it.
func (c *cache) forget(hash [32]byte) {
	s := c.of(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, hash)
	delete(s.unknown, hash)
	if running := s.calls[hash]; running != nil {
		running.stale = true
	}
}

// forgetAll drops everything.
func (c *cache) forgetAll() {
	for i := range c.shard {
		s := &c.shard[i]
		s.mu.Lock()
		clear(s.entries)
		clear(s.unknown)
		for _, running := range s.calls {
			running.stale = true
		}
		s.mu.Unlock()
	}
}
