package supervise

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// patience is how long a worker holds back in all before it takes a connection
	// that was another's turn.
	patience = 5 * time.Millisecond
	// pause is between two looks at whether the other has taken it. The runtime's
	// timer makes about a millisecond of it when the process is idle.
	pause = 500 * time.Microsecond
)

// balanced is one worker's view of a listening socket that workers share.
//
// The kernel wakes every worker for a connection and the first to accept gets
// it, which can be the same one for ever. So a worker that has more connections
// than another holds back for a moment, and the other takes it. That is decided
// between the wake and the accept: a net.TCPListener would be waiting inside its
// Accept already and could not hold back.
type balanced struct {
	file  *os.File
	raw   syscall.RawConn // file's
	addr  net.Addr
	slots []slot // one for each worker
	own   *slot  // this one's

	// What follows is for Accept alone.
	heldSince time.Time // zero when nothing is held back from
	looks     []uint64  // every worker's looks at that time
	doubts    []doubt   // about every worker
}

// doubt is what one worker thinks of another that it has waited for in vain. It
// takes one connection, waits again, takes two without waiting, three and so on,
// until the other looks. So one that is only slow still finds connections to even
// things out with, and one that is stuck costs 14 waits with 100 connections and
// 141 with 10,000.
type doubt struct {
	looks uint64 // the other's at that time
	grant int    // connections to take after it without waiting
	left  int    // of grant
}

func (d *doubt) confirm(looks uint64) {
	if d.looks != looks {
		d.grant = 0
	}
	d.grant++
	d.looks, d.left = looks, d.grant
}

// newBalanced takes file, a non-blocking socket, over when there is no error.
func newBalanced(file *os.File, addr net.Addr, slots []slot, index int) (*balanced, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	slots[index].open.Store(0) // those of the process before went with it
	return &balanced{
		file: file, raw: raw, addr: addr, slots: slots, own: &slots[index],
		looks: make([]uint64, len(slots)), doubts: make([]doubt, len(slots)),
	}, nil
}

// Accept waits for a connection that this worker should take. It is for one
// goroutine at a time.
func (l *balanced) Accept() (net.Conn, error) {
	for {
		fd, err := l.look()
		switch {
		case errors.Is(err, unix.EAGAIN):
			time.Sleep(pause)
		case errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.EINTR):
			// The client left while it was queued, or a signal came.
		case err != nil:
			return nil, l.failed(err)
		default:
			return l.wrap(fd)
		}
	}
}

// look waits until there is a connection and gives its descriptor, or EAGAIN
// when it is another worker's turn.
func (l *balanced) look() (fd int, err error) {
	closed := l.raw.Read(func(listening uintptr) bool {
		l.own.looks.Add(1)
		l.own.serving.Store(1)
		if l.holdsBack() {
			fd, err = -1, unix.EAGAIN
			if queued(int(listening)) {
				return true
			}
		} else {
			// Blocking until net.FileConn has copied it, so that os.NewFile does
			// not register it with the poller for nothing.
			fd, _, err = unix.Accept4(int(listening), unix.SOCK_CLOEXEC)
		}
		l.heldSince = time.Time{}
		return !errors.Is(err, unix.EAGAIN)
	})
	if closed != nil {
		return -1, net.ErrClosed
	}
	return fd, err
}

// holdsBack says whether the next connection is another worker's turn.
func (l *balanced) holdsBack() bool {
	if !l.othersTurn() {
		return false
	}
	if l.heldSince.IsZero() {
		l.heldSince = time.Now()
		for i := range l.slots {
			l.looks[i] = l.slots[i].looks.Load()
		}
	}
	if time.Since(l.heldSince) < patience {
		return true
	}
	for i := range l.slots {
		if l.slots[i].looks.Load() == l.looks[i] {
			l.doubts[i].confirm(l.looks[i])
		}
	}
	return false
}

// othersTurn says whether a worker that can be waited for has fewer connections.
// A difference of one is no reason: two would hold back in turn for ever.
func (l *balanced) othersTurn() bool {
	mine := l.own.open.Load()
	for i := range l.slots {
		s, d := &l.slots[i], &l.doubts[i]
		doubted := d.left > 0 && s.looks.Load() == d.looks
		if s.open.Load()+1 < mine && s.serving.Load() == 1 && !doubted {
			return true
		}
	}
	return false
}

// queued says whether a connection waits to be accepted.
func queued(listening int) bool {
	fds := []unix.PollFd{{Fd: int32(listening), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return n > 0 || err != nil // a needless look is better than a missed one
}

// wrap makes a connection of a descriptor and counts it.
func (l *balanced) wrap(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "")
	defer file.Close() // the connection has a copy
	nc, err := net.FileConn(file)
	if err != nil {
		return nil, l.failed(err)
	}
	l.own.open.Add(1)
	for i := range l.doubts {
		l.doubts[i].left = max(0, l.doubts[i].left-1)
	}
	return &countedConn{TCPConn: nc.(*net.TCPConn), own: l.own}, nil
}

func (l *balanced) failed(err error) error {
	return &net.OpError{Op: "accept", Net: l.addr.Network(), Addr: l.addr, Err: err}
}

// Close ends Accept. What is queued stays for the other workers, which do not
// wait for this one any more.
func (l *balanced) Close() error {
	err := l.file.Close() // when it returns, look's function does not run any more
	l.own.serving.Store(0)
	return err
}

func (l *balanced) Addr() net.Addr { return l.addr }

// countedConn is a connection that counts until it is closed.
type countedConn struct {
	*net.TCPConn
	own    *slot
	closed atomic.Bool
}

func (c *countedConn) Close() error {
	if !c.closed.Swap(true) {
		c.own.open.Add(-1)
	}
	return c.TCPConn.Close()
}
