package collector

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// socketMode lets the pod's group in: worker and collector run as different users.
const socketMode = 0o660

// listenUnix serves path with a fresh socket. A socket left by a killed process is
// replaced; one that still answers is not, because two collectors of one pod are a
// mistake that must be seen. The new socket is bound aside and renamed into place,
// so that path never names a socket with a wrong mode or without a listener.
func listenUnix(path string) (net.Listener, error) {
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
	if err := errors.Join(os.Chmod(aside, socketMode), os.Rename(aside, path)); err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot put socket %s in place: %w", path, err)
	}
	return &unixListener{Listener: l, path: path}, nil
}

// unixListener removes its socket on its first close, before it stops listening: a
// successor that finds no socket puts its own there, and must not lose it to us.
type unixListener struct {
	net.Listener
	path   string
	remove sync.Once
}

func (l *unixListener) Close() error {
	var err error
	l.remove.Do(func() { err = os.Remove(l.path) })
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.Listener.Close())
}
