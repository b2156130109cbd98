package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLost bounds how many unreadable numbers an adoption stands in for. More than
// a journal of the largest size can hold means that a header is not to be trusted.
const maxLost = 1 << 24

// maxRecover bounds the search for the generations of segments without a header.
const maxRecover = 4

// OpenEntry is an entry that its process opened and never closed, with the
// latest payload. The request may have been billed.
type OpenEntry struct {
	Payload []byte
}

// Adoption is a dead process's journal, held under its flock until Remove or
// Release. It is not safe for concurrent use; payloads stay valid after both.
type Adoption struct {
	Identity Identity
	// Closed has every number from the lowest that is still in the journal to
	// NextSeq-1, ascending, without gaps. Some may have been acked before.
	Closed []Closed
	// Open is in order of opening. They are to be sent as interrupted, under
	// NextSeq, NextSeq+1 and so on, never under numbers taken from a cursor.
	Open    []OpenEntry
	NextSeq uint64
	// Damaged counts segments and runs of entries that could not be read.
	Damaged int

	lock *folderLock
}

// Dead lists the journal folders under root that no process holds, in order of
// their names. A root that does not exist has none.
func Dead(root string) ([]string, error) {
	names, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look for dead journals: %w", err)
	}
	var dead []string
	for _, n := range names {
		if _, err := ParseFolder(n.Name()); err != nil || !n.IsDir() {
			continue
		}
		dir := filepath.Join(root, n.Name())
		lock, err := lockFolder(dir)
		if errors.Is(err, ErrLocked) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lock.release()
		dead = append(dead, dir)
	}
	return dead, nil
}

// Adopt takes a dead process's folder and reads it. It fails with ErrLocked when
// the process lives or another adopter has the folder, with fs.ErrNotExist when
// the folder is gone, and with ErrNewerFormat when a later release wrote it; the
// folder is left as it is then. Damaged parts are no error, they are counted.
func Adopt(dir string) (*Adoption, error) {
	identity, err := ParseFolder(filepath.Base(dir))
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	a := &Adoption{Identity: identity, lock: lock}
	if err := a.read(); err != nil {
		lock.release()
		return nil, fmt.Errorf("cannot adopt journal %s: %w", filepath.Base(dir), err)
	}
	return a, nil
}

// Remove deletes the folder and then unlocks it. Call it when every record is
// acked and the holder is closed in the database.
func (a *Adoption) Remove() error { return a.lock.remove() }

// Release unlocks the folder and leaves it for another adopter.
func (a *Adoption) Release() { a.lock.release() }

func (a *Adoption) read() error {
	logs, lost, err := a.readSegments()
	if err != nil {
		return err
	}
	logs = append(logs, a.recover(logs, lost)...)
	// A log is the segments in the order in which they were begun.
	slices.SortFunc(logs, func(x, y segmentLog) int { return cmp.Compare(x.header.generation, y.header.generation) })
	for _, l := range logs {
		a.Damaged += l.damaged
	}
	r := newReplay(logs)
	a.NextSeq, a.Open = r.nextSeq, r.opened()
	a.Closed, err = r.closedWithoutGaps()
	return err
}

// readSegments returns the segments that were used, and those without a header.
func (a *Adoption) readSegments() (logs []segmentLog, lost [][]byte, err error) {
	files, err := os.ReadDir(a.lock.dir)
	if err != nil {
		return nil, nil, err
	}
	present := 0
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), segmentPrefix) {
			continue
		}
		present++
		mem, err := readFile(filepath.Join(a.lock.dir, f.Name()))
		if err != nil {
			return nil, nil, err
		}
		l, err := parseSegment(mem)
		switch {
		case errors.Is(err, errUnused):
		case errors.Is(err, errNoHeader):
			a.Damaged++
			if len(mem) >= minSegment && len(lost) < maxRecover {
				lost = append(lost, mem)
			}
		case err != nil:
			return nil, nil, err
		case l.header.identity != a.Identity:
			// Of another process life: its records are not this holder's to number.
			a.Damaged++
		default:
			logs = append(logs, l)
		}
	}
	if len(logs) > 0 {
		a.Damaged += max(0, logs[0].header.segments-present)
	}
	return logs, lost, nil
}

// recover reads segments that lost both headers. All that is missing to check
// their entries is the generation, and that is beside or between the others.
func (a *Adoption) recover(logs []segmentLog, lost [][]byte) []segmentLog {
	lowest, highest := uint64(1), uint64(0)
	known := make(map[uint64]bool)
	for i, l := range logs {
		g := l.header.generation
		if i == 0 {
			lowest = g
		}
		lowest, highest = min(lowest, g), max(highest, g)
		known[g] = true
	}
	var found []segmentLog
	reach := uint64(len(lost))
	for _, mem := range lost {
		for g := max(lowest, reach+1) - reach; g <= highest+reach; g++ {
			if known[g] {
				continue
			}
			l := segmentLog{header: header{identity: a.Identity, generation: g, segBytes: len(mem)}}
			if l.readEntries(mem[:entriesEnd(mem)]); len(l.entries) > 0 {
				known[g] = true
				found = append(found, l)
				break
			}
		}
	}
	return found
}

// readFile reads at most what a segment can be.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSegment))
}
