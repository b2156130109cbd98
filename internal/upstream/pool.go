package upstream

import (
	"slices"
	"sync"
	"time"
)

// pool keeps the connections of one target that are not in use, the one used
// last on top: it is the least likely to have been closed by the upstream, and
// the others may grow old and go.
type pool struct {
	max int

	mu     sync.Mutex
	idle   []*conn
	closed bool
	timer  *time.Timer // runs while there is something to sweep
	// The upstream's own idle limit as far as it has shown, see learn.
	limit      time.Duration
	limitUntil time.Time
}

const (
	// A connection that an upstream closes because it restarts teaches a wrong
	// limit; these two keep the harm of it small.
	minLearned = 250 * time.Millisecond
	learnedFor = 10 * time.Minute
)

// learn takes from a kept connection that was found closed that the upstream
// does not keep them as long as we do. Others are given up before that age:
// a request that crosses the close on its way may be lost, and whether it was
// read cannot always be told.
func (p *pool) learn(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	limit := max(now.Sub(c.idleSince)*3/4, minLearned)
	if limit < p.limit || now.After(p.limitUntil) {
		p.limit, p.limitUntil = limit, now.Add(learnedFor)
	}
}

// take gives the connection used last, or nil. It may be dead: the caller
// checks. The error is ErrClosed.
func (p *pool) take() (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if p.closed {
		return nil, ErrClosed
	}
	if n == 0 {
		return nil, nil
	}
	c := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return c, nil
}

// put keeps a connection for at most a time. It is false when the pool is full
// or closed.
func (p *pool) put(c *conn, idle time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.max {
		return false
	}
	c.idleSince = time.Now()
	if c.idleSince.Before(p.limitUntil) {
		idle = min(idle, p.limit)
	}
	c.idleUntil = c.idleSince.Add(idle)
	p.idle = append(p.idle, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(time.Until(c.idleUntil), p.sweep)
	}
	return true
}

// sweep closes what is kept too long and comes again when the next one is due.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.idle = slices.DeleteFunc(p.idle, func(c *conn) bool {
		if now.Before(c.idleUntil) {
			return false
		}
		c.raw.Close()
		return true
	})
	if p.closed || len(p.idle) == 0 {
		p.timer = nil
		return
	}
	next := p.idle[0].idleUntil
	for _, c := range p.idle[1:] {
		if c.idleUntil.Before(next) {
			next = c.idleUntil
		}
	}
	p.timer.Reset(max(time.Until(next), time.Millisecond))
}

func (p *pool) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	for _, c := range p.idle {
		c.raw.Close()
	}
	p.idle = nil
}
