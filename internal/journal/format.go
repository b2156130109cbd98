package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"unsafe"
)

// The layout of a segment; DESIGN.md draws it. Numbers are in the machine's byte
// order: a journal is read where it was written.
const (
	magic         = "PSTKJRNL"
	formatVersion = 1

	headerBytes = 256
	maxPodUID   = 128

	entryHeader = 24
	entryAlign  = 8

	minSegment = 32 << 10
	maxSegment = 256 << 20
	pageBytes  = 4096
)

// Entry types. Zero is no type: a commit word of zero ends a log.
const (
	typeOpen    = 1 // id, payload
	typeAttempt = 2 // id, payload; takes the place of the entry's open
	typeClose   = 4 // id, seq, payload. 3 is kept for progress marks.
)

var (
	errNoHeader = errors.New("no readable segment header")
	errUnused   = errors.New("segment was never used")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the start of a segment. It is written twice, at both ends, so that
// one damaged byte does not cost a segment.
type header struct {
	identity   Identity
	generation uint64 // counts the segments a journal has begun; orders them
	nextSeq    uint64 // number of the first close that can be in this segment
	previous   uint64 // generation of the use before; 0: none
	segBytes   int    // the size of a segment of this journal
	segments   int    // how many there are
}

func (h header) encode(b []byte) {
	clear(b[:headerBytes])
	copy(b, magic)
	ne := binary.NativeEndian
	ne.PutUint32(b[8:], formatVersion)
	ne.PutUint32(b[12:], h.identity.Index)
	ne.PutUint64(b[16:], h.generation)
	ne.PutUint64(b[24:], h.nextSeq)
	copy(b[32:], h.identity.Epoch[:])
	ne.PutUint32(b[48:], uint32(len(h.identity.PodUID)))
	copy(b[52:], h.identity.PodUID)
	ne.PutUint32(b[180:], uint32(h.segBytes))
	ne.PutUint32(b[184:], uint32(h.segments))
	ne.PutUint64(b[188:], h.previous)
	ne.PutUint32(b[headerBytes-4:], crc32.Checksum(b[:headerBytes-4], castagnoli))
}

func decodeHeader(b []byte) (header, error) {
	if len(b) < headerBytes || string(b[:8]) != magic {
		return header{}, errNoHeader
	}
	ne := binary.NativeEndian
	// The checksum stands at the same place in every version, so that a damaged
	// version number is not taken for a later release.
	if crc32.Checksum(b[:headerBytes-4], castagnoli) != ne.Uint32(b[headerBytes-4:]) {
		return header{}, errNoHeader
	}
	if v := ne.Uint32(b[8:]); v != formatVersion {
		return header{}, fmt.Errorf("cannot read journal segment of format %d, this program reads %d: %w",
			v, formatVersion, ErrNewerFormat)
	}
	n := ne.Uint32(b[48:])
	if n > maxPodUID {
		return header{}, errNoHeader
	}
	h := header{generation: ne.Uint64(b[16:]), nextSeq: ne.Uint64(b[24:])}
	h.identity.Index = ne.Uint32(b[12:])
	copy(h.identity.Epoch[:], b[32:48])
	h.identity.PodUID = string(b[52 : 52+n])
	h.segBytes, h.segments, h.previous = int(ne.Uint32(b[180:])), int(ne.Uint32(b[184:])), ne.Uint64(b[188:])
	if h.generation == 0 || h.nextSeq == 0 || h.identity.validate() != nil {
		return header{}, errNoHeader
	}
	return h, nil
}

// salt makes an entry's checksum valid in its own journal and generation only:
// what an earlier use of the segment left behind is never taken for an entry.
func (h header) salt() uint64 { return h.saltOf(h.generation) }

func (h header) saltOf(generation uint64) uint64 {
	ne := binary.NativeEndian
	return ne.Uint64(h.identity.Epoch[:]) ^ ne.Uint64(h.identity.Epoch[8:]) ^ generation
}

// entrySize is the room that an entry takes.
func entrySize(payload int) int {
	return (entryHeader + payload + entryAlign - 1) &^ (entryAlign - 1)
}

// maxEntry is the most room that one entry may take in segments of a size. It is
// also the most that is left unused at a segment's end, so it is kept small.
func maxEntry(segmentBytes int) int {
	return (segmentBytes - 2*headerBytes) / 16 &^ (entryAlign - 1)
}

// commitWord packs type, length and checksum into the one word whose store makes
// an entry exist. payloadSum is the payload's own checksum, so that it can be
// made outside the lock. b is scratch space, which would otherwise be allocated
// for every entry.
func commitWord(b *[32]byte, kind byte, length int, id, seq, salt uint64, payloadSum uint32) uint64 {
	low := uint64(kind)<<24 | uint64(length)
	ne := binary.NativeEndian
	ne.PutUint64(b[0:], low)
	ne.PutUint64(b[8:], id)
	ne.PutUint64(b[16:], seq)
	ne.PutUint64(b[24:], salt)
	return uint64(crc32.Update(payloadSum, castagnoli, b[:]))<<32 | low
}

// putEntry writes an entry at off and returns where the next one goes. The
// payload and the end of the log behind it are written before the commit word,
// which is stored last and with release order: a process that dies in between
// leaves a log that ends before this entry.
func putEntry(mem []byte, off int, word, id, seq uint64, payload []byte) int {
	ne := binary.NativeEndian
	ne.PutUint64(mem[off+8:], id)
	ne.PutUint64(mem[off+16:], seq)
	copy(mem[off+entryHeader:], payload)
	next := off + entrySize(len(payload))
	if next < entriesEnd(mem) {
		storeWord(mem, next, 0)
	}
	storeWord(mem, off, word)
	return next
}

func storeWord(mem []byte, off int, word uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&mem[off])), word)
}

// entriesEnd is where entries end and the second header begins.
func entriesEnd(mem []byte) int { return len(mem) - headerBytes }

// putHeaders begins a segment anew. At every moment the segment is wholly of the
// old use or an empty one of the new: the second header does not count while the
// first is whole, and what is left in the place of the first entry is known as the
// previous use's until it is cleared.
func putHeaders(mem []byte, h header) {
	h.encode(mem[entriesEnd(mem):])
	h.encode(mem)
	storeWord(mem, headerBytes, 0)
}

// logEntry is an entry as it is read back. payload points into the segment.
type logEntry struct {
	kind    byte
	id, seq uint64
	payload []byte
}

// segmentLog is what could be read of a segment.
type segmentLog struct {
	header  header
	entries []logEntry
	damaged int // runs of bytes that were entries once and are not readable
	unread  int // of these, the runs behind the last readable close
}

// parseSegment reads a segment. It fails with errUnused, with errNoHeader when both
// headers are damaged, and with ErrNewerFormat. Damaged entries are skipped to
// the next one whose checksum is right.
func parseSegment(mem []byte) (segmentLog, error) {
	if len(mem) < 2*headerBytes {
		return segmentLog{}, errNoHeader
	}
	h, err := decodeHeader(mem)
	if errors.Is(err, errNoHeader) {
		h, err = decodeHeader(mem[entriesEnd(mem):])
	}
	if errors.Is(err, errNoHeader) && allZero(mem[:headerBytes]) && allZero(mem[entriesEnd(mem):]) {
		return segmentLog{}, errUnused
	}
	if err != nil {
		return segmentLog{}, err
	}
	log := segmentLog{header: h}
	if log.readEntries(mem[:entriesEnd(mem)]); len(mem) != h.segBytes {
		log.damaged++
		log.unread++
	}
	return log, nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func (l *segmentLog) readEntries(mem []byte) {
	salt, longest := l.header.salt(), maxEntry(l.header.segBytes)
	var scratch [32]byte
	if _, stale := readEntry(mem, headerBytes, longest, l.header.saltOf(l.header.previous), &scratch); stale > 0 {
		return // the process died before it wrote a first entry
	}
	off, skipped := headerBytes, false
	atEnd := true // the word behind the last good entry says that the log ends there
	for off+entryHeader <= len(mem) {
		e, size := readEntry(mem, off, longest, salt, &scratch)
		if size == 0 {
			if !skipped {
				skipped, atEnd = true, binary.NativeEndian.Uint64(mem[off:]) == 0
			}
			off += entryAlign
			continue
		}
		if skipped {
			l.damaged++
			l.unread++
		}
		if e.kind == typeClose {
			l.unread = 0
		}
		skipped, atEnd = false, true
		l.entries = append(l.entries, e)
		off += size
	}
	if skipped && !atEnd {
		l.damaged++
		l.unread++
	}
}

// readEntry returns the entry at off and its size, or a size of 0.
func readEntry(mem []byte, off, longest int, salt uint64, scratch *[32]byte) (logEntry, int) {
	if off+entryHeader > len(mem) {
		return logEntry{}, 0
	}
	ne := binary.NativeEndian
	word := ne.Uint64(mem[off:])
	kind, length := byte(word>>24), int(word&(1<<24-1))
	// The cheap checks come first: a scan over what an earlier use left behind
	// probes every eighth byte.
	if kind != typeOpen && kind != typeAttempt && kind != typeClose {
		return logEntry{}, 0
	}
	if length > longest || off+entryHeader+length > len(mem) {
		return logEntry{}, 0
	}
	e := logEntry{kind: kind, id: ne.Uint64(mem[off+8:]), seq: ne.Uint64(mem[off+16:])}
	e.payload = mem[off+entryHeader : off+entryHeader+length : off+entryHeader+length]
	if commitWord(scratch, kind, length, e.id, e.seq, salt, crc32.Checksum(e.payload, castagnoli)) != word {
		return logEntry{}, 0
	}
	return e, entrySize(length)
}
