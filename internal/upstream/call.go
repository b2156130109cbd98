package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Call is one request of a client on its way to an upstream. It is used for
// one attempt after another, never for two at once. It must not be copied.
type Call struct {
	Method string
	// Path is appended to the target's base path; it begins with "/" and may
	// hold a query. It is sent as it is, so it must be escaped already.
	Path string
	// Headers are sent in order. Host, Content-Length, Transfer-Encoding,
	// Connection and Accept-Encoding are this package's own and are left out.
	Headers [][2]string
	// Body is sent piece after piece and is never joined into one.
	Body [][]byte
	// Deadline ends the whole exchange, body included. Zero means none.
	Deadline time.Time

	canceled atomic.Bool
	mu       sync.Mutex
	dialing  context.CancelFunc
	conn     *conn
}

// Cancel closes the call's connection at once, in whatever phase it is, and
// makes Do and Response.Read return ErrCanceled, now and for every later
// attempt. It may be called from any goroutine, any number of times, and does
// not block.
func (c *Call) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canceled.Store(true)
	if c.dialing != nil {
		c.dialing()
	}
	if c.conn != nil {
		c.conn.abort()
	}
}

// Canceled reports whether Cancel was called.
func (c *Call) Canceled() bool { return c.canceled.Load() }

// Reset makes the call ready for another client's request and drops every
// reference it holds. The caller makes sure that nobody can still cancel the
// old one and that its Response is closed.
func (c *Call) Reset() {
	c.Method, c.Path, c.Deadline = "", "", time.Time{}
	clear(c.Headers)
	clear(c.Body)
	c.Headers, c.Body = c.Headers[:0], c.Body[:0]
	c.canceled.Store(false)
}

// attachDial lets Cancel interrupt a dial. It is false when the call is
// canceled already.
func (c *Call) attachDial(stop context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialing = stop
	return !c.canceled.Load()
}

// attach lets Cancel close a connection. It is false when the call is
// canceled already.
func (c *Call) attach(cn *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialing, c.conn = nil, cn
	return !c.canceled.Load()
}

// detach ends the call's hold on its connection: a cancel that comes later
// must not hit the connection's next user. It is false when the call was
// canceled, and so the connection closed, before.
func (c *Call) detach() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialing, c.conn = nil, nil
	return !c.canceled.Load()
}

// bodyLen is the total length of the body in bytes.
func (c *Call) bodyLen() int {
	n := 0
	for _, piece := range c.Body {
		n += len(piece)
	}
	return n
}

// until is the earlier of the call's deadline and d from now.
func (c *Call) until(d time.Duration) time.Time {
	at := time.Now().Add(d)
	if !c.Deadline.IsZero() && c.Deadline.Before(at) {
		return c.Deadline
	}
	return at
}
