package upstream

import (
	"bufio"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// writeSlice bounds what one write deadline covers, so that a slow link
	// with a large body makes progress that counts.
	writeSlice = 256 << 10
	writeBuf   = 8 << 10
)

// conn is one connection to an upstream. It is used by one call at a time;
// only abort may come from another goroutine.
type conn struct {
	target *Target
	raw    net.Conn        // the socket: closing it ends every read and write
	rw     net.Conn        // raw, or TLS over it
	sys    syscall.RawConn // raw's
	reused bool            // an earlier call ran on it
	// Set when the connection goes to the pool.
	idleSince, idleUntil time.Time

	call  *Call
	br    *bufio.Reader // borrowed while a call runs
	wrote int           // bytes of the request that the kernel has taken
	// idle is the limit for each read; zero in the header phase, where one
	// deadline stands for the whole header.
	idle    time.Duration
	readErr error // the last error of the socket, as the codec wraps its own
}

func newConn(t *Target, raw, rw net.Conn) (*conn, error) {
	sys, err := raw.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	return &conn{target: t, raw: raw, rw: rw, sys: sys}, nil
}

// begin lends the connection to a call.
func (c *conn) begin(call *Call) {
	c.target.stats.inUse.Add(1)
	c.call, c.wrote, c.idle, c.readErr = call, 0, 0, nil
	c.br = c.target.readers.Get().(*bufio.Reader)
	c.br.Reset(c)
}

// end takes the connection back from its call.
func (c *conn) end() {
	c.target.stats.inUse.Add(-1)
	c.br.Reset(nil)
	c.target.readers.Put(c.br)
	c.call, c.br = nil, nil
}

// discard ends the call and closes the connection. Closing the socket and not
// the TLS session is meant: a close alert could block on a peer that is stuck.
func (c *conn) discard() {
	c.end()
	c.raw.Close()
}

// abort closes the socket with a reset, which throws away what the kernel has
// still to send: the upstream is to see the end now, not after a large body.
func (c *conn) abort() {
	if tcp, ok := c.raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.raw.Close()
}

// Read reads for br, under the limit of the phase.
func (c *conn) Read(p []byte) (int, error) {
	if c.idle > 0 {
		if err := c.rw.SetReadDeadline(c.call.until(c.idle)); err != nil {
			return 0, err
		}
	}
	n, err := c.rw.Read(p)
	c.readErr = err
	return n, err
}

// Write sends under a limit that is renewed with each slice, and counts.
func (c *conn) Write(p []byte) (int, error) {
	total := 0
	for total < len(p) {
		if err := c.rw.SetWriteDeadline(c.call.until(c.target.cfg.IdleTimeout)); err != nil {
			return total, err
		}
		n, err := c.rw.Write(p[total:min(len(p), total+writeSlice)])
		total += n
		c.wrote += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// quiet reports whether a kept connection looks open: nothing must have come
// on it, neither an end nor bytes that no request asked for.
func (c *conn) quiet() bool {
	quiet := false
	err := c.sys.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		quiet = err == unix.EAGAIN
	})
	return err == nil && quiet
}

// unacked reports whether the peer's kernel had not accepted all that was sent
// by the time it closed. Whatever a peer sends after having read the whole
// request, an end included, acknowledges the request; so an end that came
// while bytes are unacknowledged shows that the request was not read whole. A
// reset shows nothing of the kind: its acknowledgement is ignored by TCP.
func (c *conn) unacked() bool {
	if _, ok := c.raw.(*net.TCPConn); !ok {
		return false
	}
	queued := 0
	err := c.sys.Control(func(fd uintptr) {
		queued, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
	})
	return err == nil && queued > 0
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuf) }}
