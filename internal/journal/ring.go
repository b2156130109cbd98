package journal

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ring is the journal's space: segments used one after the other and reused in
// the same order. It knows nothing of records; it counts what pins a segment.
// The journal's lock guards it.
type ring struct {
	identity Identity
	segments []segment
	segBytes int
	maxEntry int

	tail, head int // oldest segment in use; the one that is written
	used       int // segments from tail to head
	generation uint64
	salt       uint64 // of the head
	off        int    // where the next entry goes in the head
	scratch    [32]byte
}

// segment is one mapped file.
type segment struct {
	mem       []byte
	open      int // entries that are not closed and whose latest payload is here
	openBytes int // their room
	closed    int // closes here, and entries opened here, whose close is not acked
}

const segmentPrefix = "segment-"

// place is where an entry's payload lies.
type place struct {
	segment int32
	off     int32
	length  int32
}

func newRing(dir string, cfg Config) (*ring, error) {
	r := &ring{
		identity: cfg.Identity,
		segments: make([]segment, cfg.MaxSegments),
		segBytes: cfg.SegmentBytes,
		maxEntry: maxEntry(cfg.SegmentBytes),
	}
	for i := range r.segments {
		mem, err := mapSegment(filepath.Join(dir, fmt.Sprintf("%s%04d", segmentPrefix, i)), cfg.SegmentBytes)
		if err != nil {
			r.unmap()
			return nil, err
		}
		r.segments[i].mem = mem
	}
	r.begin(0, 1)
	return r, nil
}

// mapSegment makes a segment file with all of its pages. Without fallocate a
// store into a full tmpfs would be a SIGBUS in the middle of a request.
func mapSegment(path string, size int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot create journal segment: %w", err)
	}
	defer f.Close()
	fd := int(f.Fd())
	if err := unix.Fallocate(fd, 0, 0, int64(size)); err != nil {
		return nil, fmt.Errorf("cannot reserve %d bytes for %s (Journal.MaxSegments × SegmentBytes must fit): %w", size, path, err)
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("cannot map %s: %w", path, err)
	}
	return mem, nil
}

func (r *ring) unmap() {
	for i := range r.segments {
		if r.segments[i].mem != nil {
			unix.Munmap(r.segments[i].mem)
			r.segments[i].mem = nil
		}
	}
}

// begin makes segment i the head, with nothing in it.
func (r *ring) begin(i int, nextSeq uint64) {
	r.generation++
	h := header{
		identity: r.identity, generation: r.generation, nextSeq: nextSeq,
		segBytes: r.segBytes, segments: len(r.segments),
	}
	if n := uint64(len(r.segments)); r.generation > n {
		h.previous = r.generation - n
	}
	putHeaders(r.segments[i].mem, h)
	r.head, r.salt, r.off = i, h.salt(), headerBytes
	r.used++
}

func (r *ring) free() int     { return len(r.segments) - r.used }
func (r *ring) capacity() int { return r.segBytes - 2*headerBytes }

// room is how many bytes of entries fit for certain, whatever their sizes and
// order: the end of each segment may stay unused, but never more than maxEntry.
// Placing an entry lowers room by at most the entry's size.
func (r *ring) room() int {
	rest := r.capacity() + headerBytes - r.off
	return max(0, rest-r.maxEntry) + r.free()*(r.capacity()-r.maxEntry)
}

// put writes an entry. The caller has made sure of room.
func (r *ring) put(kind byte, id, seq, nextSeq uint64, payload []byte, payloadSum uint32) place {
	if r.off+entrySize(len(payload)) > entriesEnd(r.segments[r.head].mem) {
		if r.free() == 0 {
			// Writing on would overwrite entries that are still needed.
			panic("journal: an entry was put without room for it")
		}
		r.begin((r.head+1)%len(r.segments), nextSeq)
	}
	at := place{segment: int32(r.head), off: int32(r.off + entryHeader), length: int32(len(payload))}
	word := commitWord(&r.scratch, kind, len(payload), id, seq, r.salt, payloadSum)
	r.off = putEntry(r.segments[r.head].mem, r.off, word, id, seq, payload)
	return at
}

// payload is what lies at p. It is valid while its segment is pinned.
func (r *ring) payload(p place) []byte {
	end := p.off + p.length
	return r.segments[p.segment].mem[p.off:end:end]
}

func (r *ring) pinOpen(p place) {
	s := &r.segments[p.segment]
	s.open++
	s.openBytes += entrySize(int(p.length))
}

func (r *ring) unpinOpen(p place) {
	s := &r.segments[p.segment]
	s.open--
	s.openBytes -= entrySize(int(p.length))
}

// trim gives back the oldest segments that nothing pins, and only in order: an
// open must not outlive its close.
func (r *ring) trim() {
	for r.tail != r.head {
		if s := &r.segments[r.tail]; s.open > 0 || s.closed > 0 {
			break
		}
		r.tail = (r.tail + 1) % len(r.segments)
		r.used--
	}
}

// worthCopying says whether the oldest segment is held by open entries alone,
// and by so few that copying them forward gains room.
func (r *ring) worthCopying() bool {
	s := &r.segments[r.tail]
	return r.tail != r.head && s.closed == 0 && s.openBytes <= r.capacity()-2*r.maxEntry
}
