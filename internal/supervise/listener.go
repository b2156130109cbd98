package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// firstFile is the descriptor of the first inherited file, after the three
// standard ones.
const firstFile = 3

// Listener opens a TCP listening socket to be passed to workers in
// Config.Files. It never accepts in this process.
func Listener(addr string) (*os.File, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	defer ln.Close()
	file, err := ln.(*net.TCPListener).File()
	if err != nil {
		return nil, fmt.Errorf("cannot pass the listener on %s down: %w", addr, err)
	}
	return file, nil
}

// plain duplicates files so that starting a process with them leaves their
// flags alone. os/exec asks a socket's os.File for its descriptor, which makes
// the socket blocking, in the workers that share it too: they would hang in
// accept. A file made from a descriptor that is non-blocking already stays so.
func plain(files []*os.File) (copies []*os.File, err error) {
	for _, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			return copies, fmt.Errorf("cannot pass %s down: %w", f.Name(), err)
		}
		fd, dupErr := -1, error(nil)
		err = raw.Control(func(old uintptr) { fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
		if err = errors.Join(err, dupErr); err != nil {
			return copies, fmt.Errorf("cannot pass %s down: %w", f.Name(), err)
		}
		copies = append(copies, os.NewFile(uintptr(fd), f.Name()))
	}
	return copies, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// InheritedListener gives the listening socket that the supervisor passed as
// the n-th of Config.Files. It can be taken once. Workers share its connections
// about evenly: each takes those for which no other has clearly fewer open, or
// for which the others do not come within milliseconds. Its Accept is for one
// goroutine at a time.
func InheritedListener(n int) (net.Listener, error) {
	count, err := strconv.Atoi(os.Getenv(envListeners))
	if err != nil || n < 0 || n >= count {
		return nil, fmt.Errorf("cannot take inherited listener %d: the supervisor passed %d", n, count)
	}
	fd := firstFile + n
	// A program that this one starts must not hold the socket open.
	syscall.CloseOnExec(fd)
	// The sockets are non-blocking for all processes alike, see plain. A file made
	// of one waits for it in the runtime's poller.
	file := os.NewFile(uintptr(fd), "listener-"+strconv.Itoa(n))
	if file == nil {
		return nil, fmt.Errorf("cannot take inherited listener %d: descriptor %d is not open", n, fd)
	}
	ln, err := share(file, n, count)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot take inherited listener %d: %w", n, err)
	}
	return ln, nil
}

// share takes file, the n-th of count sockets, over when there is no error.
func share(file *os.File, n, count int) (net.Listener, error) {
	ln, err := net.FileListener(file) // a copy
	if err != nil {
		return nil, err
	}
	workers, _ := strconv.Atoi(os.Getenv(envWorkers))
	if workers <= 1 {
		file.Close()
		return ln, nil
	}
	defer ln.Close()
	index, ok := WorkerIndex()
	if !ok || index >= workers {
		return nil, fmt.Errorf("worker %d is not one of %d", index, workers)
	}
	tally := firstFile + count
	syscall.CloseOnExec(tally)
	// Mapped for the life of the process: connections outlive their listener.
	slots, err := mapSlots(tally, count*workers)
	if err != nil {
		return nil, fmt.Errorf("cannot map the workers' shared memory: %w", err)
	}
	return newBalanced(file, ln.Addr(), slots[n*workers:][:workers], index)
}
