package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// probe asks for GET /health/liveness on one connection. It is a thread of its own with
// blocking calls, before all others where it may be: a goroutine would wait for its turn
// behind the flood's, and the figures would be this program's.
type probe struct {
	fd      int
	request []byte
	answer  [4096]byte
}

// probeLiveness asks at fixed times; an answer's time counts from when it was due. late
// is how late this client itself asked, at p99, of the times when it did not wait for the
// answer before: where that is much, the figures are not the gateway's.
func probeLiveness(ctx context.Context, address string, d, every time.Duration) (l latency, late time.Duration) {
	runtime.LockOSThread() // the thread ends with its goroutine: its priority is its own
	l.faults = map[string]int64{}
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20) // allowed to root only
	p, err := dialProbe(address)
	if err != nil {
		l.faults[err.Error()]++
		return l, 0
	}
	defer unix.Close(p.fd)
	var all, own []time.Duration
	start := time.Now()
	for at := start; at.Sub(start) < d && ctx.Err() == nil; at = at.Add(every) {
		if wait := time.Until(at); wait > 0 {
			pause := unix.NsecToTimespec(int64(wait))
			_ = unix.Nanosleep(&pause, nil) // cut short by a signal: it asks a little early
			own = append(own, max(0, time.Since(at)))
		}
		l.requests++
		if err := p.ask(); err != nil {
			l.faults[err.Error()]++
			return l, 0
		}
		all = append(all, time.Since(at))
	}
	slices.Sort(all)
	slices.Sort(own)
	l.p50, l.p99, l.max = percentile(all, 50), percentile(all, 99), percentile(all, 100)
	return l, percentile(own, 99)
}

func dialProbe(address string) (*probe, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !to.Addr().Is4() {
		return nil, fmt.Errorf("cannot ask %q for liveness: want an IPv4 address with a port", address)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for liveness: %w", err)
	}
	patience := unix.Timeval{Sec: 60}
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
	)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot ask for liveness: %w", err)
	}
	return &probe{fd: fd, request: []byte("GET /health/liveness HTTP/1.1\r\nHost: " + address + "\r\n\r\n")}, nil
}

// ask sends the request and reads an answer, which is small and comes in one piece.
func (p *probe) ask() error {
	if _, err := unix.Write(p.fd, p.request); err != nil {
		return err
	}
	n, err := unix.Read(p.fd, p.answer[:])
	if err != nil {
		return err
	}
	if got := p.answer[:n]; !bytes.HasPrefix(got, []byte("HTTP/1.1 200 ")) || !bytes.HasSuffix(got, []byte(`"I'm alive!"`)) {
		return fmt.Errorf("the answer is %q", got)
	}
	return nil
}

// percentile is what p percent of sorted values stay within; 0 of none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p/100*float64(len(sorted))))]
}
