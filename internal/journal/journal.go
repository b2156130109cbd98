// Package journal keeps what a worker must not forget when it is killed: an entry
// is opened before a request is dispatched and closed, under a sequence number
// without gaps, when its record is final. Entries live in preallocated,
// memory-mapped segments and survive kill -9 of the writer; they do not survive
// the loss of the machine's memory. DESIGN.md has the layout and the reasons.
package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Errors of a journal. Compare with errors.Is.
var (
	// ErrFull means that there is no room for another entry until records are acked.
	ErrFull = errors.New("journal is full (Journal.MaxSegments)")
	// ErrTooLarge means that a payload is larger than an entry may be.
	ErrTooLarge = errors.New("payload is too large for the journal (Journal.SegmentBytes)")
	// ErrNotOpen means that the entry is not open: closed before, or of another journal.
	ErrNotOpen = errors.New("journal entry is not open")
	// ErrDropped means that an entry which was never journaled (policy Drop) found
	// no room at its close either: its record is lost, and counted.
	ErrDropped = errors.New("record dropped: journal is full")
	// ErrStopped means that the journal was stopped.
	ErrStopped = errors.New("journal is stopped")
	// ErrLocked means that a process holds the folder: its writer or an adopter.
	ErrLocked = errors.New("journal folder is locked")
	// ErrNewerFormat means that the journal was written by a later release.
	ErrNewerFormat = errors.New("journal format is newer than this program")
)

// Policy says what Open does when the journal is full.
type Policy int

// Policies. The zero value is Reject.
const (
	// Reject makes Open fail with ErrFull at once.
	Reject Policy = iota
	// Block makes Open wait for room, at most Config.BlockFor.
	Block
	// Drop makes Open succeed without an entry. Its Close writes the record when
	// there is room by then, and otherwise counts it and fails with ErrDropped.
	Drop
)

// CloseExtra is how many bytes a close payload may be longer than the longest
// payload its entry was opened or attempted with. That much room is set aside
// when the entry is opened, so that a close within it never fails for space.
const CloseExtra = 1024

// Config describes a journal. Root and Identity are required.
type Config struct {
	Root         string // folder of all journals of the pod; made when missing
	Identity     Identity
	SegmentBytes int           // multiple of 4,096, 32 KiB to 256 MiB; default 4 MiB
	MaxSegments  int           // 2 to 1,024, all preallocated; default 16
	Full         Policy        // what Open does without room
	BlockFor     time.Duration // bound of policy Block; default 5 s
}

func (cfg Config) withDefaults() (Config, error) {
	if cfg.SegmentBytes == 0 {
		cfg.SegmentBytes = 4 << 20
	}
	if cfg.MaxSegments == 0 {
		cfg.MaxSegments = 16
	}
	if cfg.BlockFor == 0 {
		cfg.BlockFor = 5 * time.Second
	}
	switch {
	case cfg.Root == "":
		return cfg, errors.New("cannot create journal: no folder given (Journal.Root)")
	case cfg.SegmentBytes < minSegment || cfg.SegmentBytes > maxSegment || cfg.SegmentBytes%pageBytes != 0:
		return cfg, fmt.Errorf("cannot create journal: SegmentBytes is %d, want a multiple of %d from %d to %d",
			cfg.SegmentBytes, pageBytes, minSegment, maxSegment)
	case cfg.MaxSegments < 2 || cfg.MaxSegments > 1024:
		return cfg, fmt.Errorf("cannot create journal: MaxSegments is %d, want 2 to 1024", cfg.MaxSegments)
	}
	return cfg, cfg.Identity.validate()
}

// Entry is the handle of an open entry. The zero Entry is one that policy Drop
// did not journal.
type Entry struct {
	id uint64
}

// Journal is the journal of one process life. All methods may be called from
// several goroutines; none of them waits for a disk.
type Journal struct {
	cfg    Config
	lock   *folderLock
	notify chan struct{}
	began  time.Time

	mu       sync.Mutex
	ring     *ring // nil when stopped
	lastID   uint64
	nextSeq  uint64
	acked    uint64
	open     map[uint64]openEntry
	closed   closedQueue   // numbers acked+1 to nextSeq-1
	reserved int           // room set aside for open entries
	lookedAt uint64        // generation at which keepMoving last did its work
	waiting  int           // opens that wait for room under policy Block
	roomMade chan struct{} // closed and replaced when they should look again
	stats    Stats         // the totals only
}

// openEntry is what is known of an entry between its open and its close.
type openEntry struct {
	at      place // its latest payload
	longest int   // of its payloads so far; bounds the close
}

// reserve is the room an open entry keeps: for its close, and for a copy of its
// payload when the segment it lies in has to be given back.
func (e openEntry) reserve() int {
	return entrySize(e.longest+CloseExtra) + entrySize(int(e.at.length))
}

// Create makes the folder of cfg.Identity with all of its segments and locks it
// for the life of the process. The identity must be new: a process life that was
// journaled before is never continued.
func Create(cfg Config) (*Journal, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Root, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create journal root: %w", err)
	}
	sweep(cfg.Root)
	lock, err := newFolder(cfg.Root, cfg.Identity)
	if err != nil {
		return nil, err
	}
	j, err := build(cfg, lock)
	if err != nil {
		_ = lock.remove() // the next start sweeps what is left
		return nil, err
	}
	return j, nil
}

func build(cfg Config, lock *folderLock) (*Journal, error) {
	r, err := newRing(lock.dir, cfg)
	if err != nil {
		return nil, err
	}
	// Only now the folder gets the name under which it is adopted. Rename refuses
	// to take the place of a folder that has files in it.
	if err := lock.rename(filepath.Join(cfg.Root, cfg.Identity.Folder())); err != nil {
		r.unmap()
		return nil, fmt.Errorf("cannot create journal: %w", err)
	}
	return &Journal{
		cfg: cfg, lock: lock, ring: r, began: time.Now(), nextSeq: 1,
		notify:   make(chan struct{}, 1),
		open:     make(map[uint64]openEntry),
		roomMade: make(chan struct{}),
	}, nil
}

// Stop ends the journal: the folder is removed when every record is acked and
// nothing is open, and is otherwise left for adoption. Payloads from Pending are
// not valid any more. Stop is called once, after the sender and all requests.
func (j *Journal) Stop() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ring == nil {
		return ErrStopped
	}
	j.ring.unmap()
	j.ring = nil
	close(j.roomMade)
	if len(j.open) == 0 && j.closed.len() == 0 {
		return j.lock.remove()
	}
	j.lock.release()
	return nil
}
