package journal

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// replay rebuilds from the log what was open and what was closed.
type replay struct {
	firstSeq uint64 // lowest number that can still be in the log
	nextSeq  uint64
	open     map[uint64][]byte // by entry id, which is the order of opening
	closed   map[uint64][]byte // by number
	done     map[uint64]bool   // ids that were closed
}

// newReplay replays logs, which are in order of their generations.
func newReplay(logs []segmentLog) *replay {
	r := &replay{
		firstSeq: math.MaxUint64, nextSeq: 1,
		open:   make(map[uint64][]byte),
		closed: make(map[uint64][]byte),
		done:   make(map[uint64]bool),
	}
	for _, l := range logs {
		r.apply(l)
	}
	r.firstSeq = min(r.firstSeq, r.nextSeq)
	return r
}

func (r *replay) apply(l segmentLog) {
	if l.header.nextSeq > 0 {
		r.nextSeq = max(r.nextSeq, l.header.nextSeq)
		r.firstSeq = min(r.firstSeq, l.header.nextSeq)
	}
	for _, e := range l.entries {
		if e.kind != typeClose {
			r.open[e.id] = e.payload
			continue
		}
		r.closed[e.seq] = e.payload
		r.done[e.id] = true
		r.nextSeq = max(r.nextSeq, e.seq+1)
		r.firstSeq = min(r.firstSeq, e.seq)
	}
	// What could not be read behind the last close may be closes. Their numbers
	// must not be given to other requests: they may be committed.
	r.nextSeq += uint64(l.unread)
}

// opened returns the entries without a close, in order of opening.
func (r *replay) opened() []OpenEntry {
	var out []OpenEntry
	for _, id := range slices.Sorted(maps.Keys(r.open)) {
		if !r.done[id] {
			out = append(out, OpenEntry{Payload: r.open[id]})
		}
	}
	return out
}

// closedWithoutGaps returns one Closed per number; the cursor does not pass a gap.
func (r *replay) closedWithoutGaps() ([]Closed, error) {
	span := r.nextSeq - r.firstSeq
	if span > maxLost+uint64(len(r.closed)) {
		return nil, fmt.Errorf("cannot number %d records with %d readable ones", span, len(r.closed))
	}
	out := make([]Closed, 0, span)
	for seq := r.firstSeq; seq < r.nextSeq; seq++ {
		payload, ok := r.closed[seq]
		out = append(out, Closed{Seq: seq, Payload: payload, Damaged: !ok})
	}
	return out, nil
}
