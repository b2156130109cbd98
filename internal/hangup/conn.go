package hangup

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// writeSlice is what one write deadline covers, in bytes.
const writeSlice = 64 << 10

// Conn is an accepted connection whose client is watched from accept to Close.
type Conn struct {
	net.Conn
	w      *Watcher
	sys    syscall.RawConn
	fd     int
	gen    int32 // tells it from earlier connections on the same descriptor
	closed atomic.Bool
	linger atomic.Bool

	mu     sync.Mutex
	gone   bool
	onGone func()
}

func (w *Watcher) wrap(nc net.Conn) (*Conn, error) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("cannot watch a %T: it is no socket", nc)
	}
	sys, err := sc.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("cannot watch a connection: %w", err)
	}
	c := &Conn{Conn: nc, w: w, sys: sys}
	if err := w.add(c); err != nil {
		return nil, fmt.Errorf("cannot watch a connection: %w", err)
	}
	return c, nil
}

// From finds the Conn in a connection that a server hands out, looking through
// TLS. It does not find it when fasthttp's MaxConnsPerIP is set, which wraps
// connections in a type that cannot be looked through.
func From(nc net.Conn) (*Conn, bool) {
	for {
		switch c := nc.(type) {
		case *Conn:
			return c, true
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return nil, false
		}
	}
}

// Begin marks the start of a request: onGone is called once when the client
// goes before End, on the watcher's goroutine, where it must not block and
// must not call Begin or End. When the client has gone already, Begin itself
// calls it.
func (c *Conn) Begin(onGone func()) {
	c.mu.Lock()
	gone := c.gone
	if !gone {
		c.onGone = onGone
	}
	c.mu.Unlock()
	if gone {
		onGone()
	}
}

// End marks the end of the request. When it returns, onGone has finished or
// will never run, so that what onGone refers to may be reused.
func (c *Conn) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onGone = nil
}

// Gone reports whether the client has gone.
func (c *Conn) Gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// fire runs onGone under the lock: that is what End waits for.
func (c *Conn) fire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if fn := c.onGone; fn != nil {
		c.onGone = nil
		fn()
	}
}

// Write fails with a timeout when the client takes nothing for WriteIdle. It
// overrides any write deadline set before.
func (c *Conn) Write(p []byte) (int, error) {
	total := 0
	for {
		if err := c.SetWriteDeadline(time.Now().Add(c.w.writeIdle)); err != nil {
			return total, err
		}
		n, err := c.Conn.Write(p[total:min(len(p), total+writeSlice)])
		total += n
		if err != nil || total == len(p) {
			return total, err
		}
	}
}

// Linger makes Close wait for a client that is still sending. A socket that is closed
// with unread bytes in it is reset, and the reset takes the answer from a client that
// has not read it yet. Call it only for a connection that is to be closed after its
// answer.
func (c *Conn) Linger() { c.linger.Store(true) }

// lingerTime is how long a client may go on sending what nobody reads.
const lingerTime = 2 * time.Second

// Close stops the watching and closes the connection.
func (c *Conn) Close() error {
	if !c.closed.Swap(true) {
		c.w.remove(c)
		if c.linger.Load() {
			c.drain()
		}
	}
	return c.Conn.Close()
}

// drain ends the sending side, so that the client sees the end of its answer, and
// throws away what still comes.
func (c *Conn) drain() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, onlyReader{c.Conn}) // ends with the client's end or the deadline
}

// onlyReader keeps io.Copy from a TCP connection's own WriteTo.
type onlyReader struct{ io.Reader }
