// Package hangup knows when a client has gone, without reading its connection:
// bytes that a client has pipelined stay where they are.
//
// A client that shuts down only its sending side counts as gone. HTTP clients
// that wait for an answer do not do that, and TCP gives no way to tell it from
// a close.
package hangup

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Config of a Watcher.
type Config struct {
	// WriteIdle is how long a write may stand still because the client does
	// not read; then the write fails with a timeout. Every 64 KiB that the
	// client takes start it anew, so that it never limits a whole response.
	// Zero means 60 s.
	WriteIdle time.Duration
	// Logger is told of connections that had to be refused. Nil means
	// slog.Default.
	Logger *slog.Logger
}

// Watcher holds the one epoll set of a process and the goroutine that waits on
// it. All methods may be called from any goroutine.
type Watcher struct {
	writeIdle time.Duration
	logger    *slog.Logger
	file      *os.File        // the epoll descriptor, itself polled by the runtime
	epoll     syscall.RawConn // file's
	stopped   chan struct{}

	mu    sync.Mutex
	gen   int32
	conns []*Conn // by descriptor
}

// NewWatcher starts a watcher; Close ends it.
func NewWatcher(cfg Config) (*Watcher, error) {
	if cfg.WriteIdle < 0 {
		return nil, fmt.Errorf("cannot use WriteIdle %s: it is negative", cfg.WriteIdle)
	}
	if cfg.WriteIdle == 0 {
		cfg.WriteIdle = time.Minute
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create an epoll set: %w", err)
	}
	// A non-blocking descriptor is taken into the runtime's own poller, so that
	// waiting costs no thread and Close can end it.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot prepare the epoll set: %w", err)
	}
	w := &Watcher{writeIdle: cfg.WriteIdle, logger: cfg.Logger, file: os.NewFile(uintptr(fd), "epoll"), stopped: make(chan struct{})}
	if w.epoll, err = w.file.SyscallConn(); err != nil {
		w.file.Close()
		return nil, fmt.Errorf("cannot prepare the epoll set: %w", err)
	}
	go w.run()
	return w, nil
}

// Close ends the watching: no callback starts after it returns. Connections
// stay open and must be closed by their owner.
func (w *Watcher) Close() error {
	err := w.file.Close()
	<-w.stopped
	return err
}

func (w *Watcher) run() {
	defer close(w.stopped)
	events := make([]unix.EpollEvent, 128)
	for {
		n := 0
		var waitErr error
		// The zero timeout makes the call return at once; the runtime's poller
		// parks the goroutine until the set has something.
		err := w.epoll.Read(func(fd uintptr) bool {
			n, waitErr = unix.EpollWait(int(fd), events, 0)
			return n > 0 || waitErr != nil
		})
		if err != nil {
			return // Close
		}
		if waitErr != nil && waitErr != unix.EINTR {
			w.logger.Error("cannot wait for clients that leave", "error", waitErr)
			return
		}
		for _, ev := range events[:max(n, 0)] {
			if c := w.lookup(ev); c != nil {
				c.fire()
			}
		}
	}
}

// lookup gives the connection that an event is about, or nil when that one has
// been closed and its descriptor perhaps given to another.
func (w *Watcher) lookup(ev unix.EpollEvent) *Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	if int(ev.Fd) >= len(w.conns) {
		return nil
	}
	if c := w.conns[ev.Fd]; c != nil && c.gen == ev.Pad {
		return c
	}
	return nil
}

// add registers a connection for its whole life.
func (w *Watcher) add(c *Conn) error {
	var addErr error
	err := c.sys.Control(func(fd uintptr) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.gen++
		c.fd, c.gen = int(fd), w.gen
		for len(w.conns) <= c.fd {
			w.conns = append(w.conns, nil)
		}
		w.conns[c.fd] = c
		addErr = w.control(unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{
			// Errors and full hang-ups are reported without being asked for.
			// Edge-triggered: one report per connection is all we need.
			Events: unix.EPOLLRDHUP | unix.EPOLLET,
			Fd:     int32(c.fd),
			Pad:    c.gen,
		})
		if addErr != nil {
			w.conns[c.fd] = nil
		}
	})
	return errors.Join(err, addErr)
}

// remove forgets a connection before its descriptor is closed and given away.
func (w *Watcher) remove(c *Conn) {
	w.mu.Lock()
	if w.conns[c.fd] == c {
		w.conns[c.fd] = nil
	}
	w.mu.Unlock()
	// It fails when the socket was closed behind our back or the watcher is
	// closed; the kernel has then left the set already.
	_ = c.sys.Control(func(fd uintptr) { _ = w.control(unix.EPOLL_CTL_DEL, int(fd), nil) })
}

func (w *Watcher) control(op, fd int, ev *unix.EpollEvent) error {
	var opErr error
	err := w.epoll.Control(func(epfd uintptr) { opErr = unix.EpollCtl(int(epfd), op, fd, ev) })
	return errors.Join(err, opErr)
}

// Listener wraps ln so that every connection it accepts is a *Conn.
func (w *Watcher) Listener(ln net.Listener) net.Listener { return &listener{Listener: ln, w: w} }

type listener struct {
	net.Listener
	w *Watcher
}

// Accept registers what it accepts. A connection that cannot be registered is
// closed: a server must not see an error of one client as its own.
func (l *listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, err := l.w.wrap(nc)
		if err == nil {
			return c, nil
		}
		nc.Close()
		select {
		case <-l.w.stopped:
			return nil, fmt.Errorf("cannot accept without a watcher: %w", net.ErrClosed)
		default:
			l.w.logger.Warn("refused a connection", "error", err)
		}
	}
}
