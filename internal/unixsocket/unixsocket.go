// Package unixsocket opens a unix socket that nobody else serves.
package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// mode lets the pod's group in: the processes of a pod run as different users.
const mode = 0o660

// Listen serves path with a fresh socket. A socket left by a killed process is
// replaced; one that still answers is not, because two servers of one socket are a
// mistake that must be seen. The new socket is bound aside and renamed into place,
// so that path never names a socket with a wrong mode or without a listener.
func Listen(path string) (net.Listener, error) {
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("cannot listen on %s: another process serves it", path)
	}
	aside := path + ".new"
	if err := os.Remove(aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot replace socket %s: %w", aside, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: aside, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(aside, mode), os.Rename(aside, path)); err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot put socket %s in place: %w", path, err)
	}
	return &listener{Listener: l, path: path}, nil
}

// listener removes its socket on its first close, before it stops listening: a
// successor that finds no socket puts its own there, and must not lose it to us.
type listener struct {
	net.Listener
	path   string
	remove sync.Once
}

// Close removes the socket and stops listening. It may be called again.
func (l *listener) Close() error {
	var err error
	l.remove.Do(func() { err = os.Remove(l.path) })
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.Listener.Close())
}
