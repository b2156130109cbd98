package supervise

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// slot is what one worker says about one listener in memory that all workers
// share. It fills a cache line, so that workers do not slow one another down.
type slot struct {
	// serving is 1 from the first Accept to Close. The supervisor clears it when
	// the worker ends: nobody must wait for a process that is not there.
	serving atomic.Uint32
	_       uint32
	// open is the number of connections accepted and not yet closed.
	open atomic.Int64
	// looks counts how often the worker has looked for a connection. It is never
	// set back: a sibling that waited in vain knows by it whether the worker has
	// come to itself since.
	looks atomic.Uint64
	_     [40]byte
}

const slotSize = int(unsafe.Sizeof(slot{}))

// tally is the supervisor's end of the shared memory: a slot for each worker and
// listener.
type tally struct {
	file    *os.File // passed to every worker behind the listeners
	slots   []slot   // for each listener in turn, one for each worker
	workers int
}

func newTally(listeners, workers int) (*tally, error) {
	fd, err := unix.MemfdCreate("connections", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create the workers' shared memory: %w", err)
	}
	t := &tally{file: os.NewFile(uintptr(fd), "connections"), workers: workers}
	n := max(listeners*workers, 1) // no memory of size 0 can be mapped
	if err = t.file.Truncate(int64(n * slotSize)); err == nil {
		t.slots, err = mapSlots(fd, n)
	}
	if err != nil {
		t.file.Close()
		return nil, fmt.Errorf("cannot prepare the workers' shared memory: %w", err)
	}
	return t, nil
}

// forget takes a worker that has ended out of every listener's comparison.
func (t *tally) forget(index int) {
	for i := index; i < len(t.slots); i += t.workers {
		t.slots[i].serving.Store(0)
	}
}

// close gives up this process's end. It must not be used any more.
func (t *tally) close() {
	t.file.Close()
	_ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(t.slots)), uintptr(len(t.slots)*slotSize))
}

// mapSlots maps a tally's memory.
func mapSlots(fd, n int) ([]slot, error) {
	mem, err := unix.MmapPtr(fd, 0, nil, uintptr(n*slotSize), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*slot)(mem), n), nil
}
