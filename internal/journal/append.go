package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// MaxPayload is the longest payload that Open and Attempt take, in bytes.
func (j *Journal) MaxPayload() int {
	return maxEntry(j.cfg.SegmentBytes) - entryHeader - CloseExtra
}

// Open journals a request before it is dispatched; the payload is what is booked
// when the process dies before Close. It fails with ErrTooLarge beyond MaxPayload,
// and without room with what Config.Full says.
func (j *Journal) Open(payload []byte) (Entry, error) {
	if len(payload) > j.MaxPayload() {
		return Entry{}, j.tooLarge(payload, j.MaxPayload())
	}
	sum := crc32.Checksum(payload, castagnoli)
	j.mu.Lock()
	defer j.mu.Unlock()
	e := openEntry{at: place{length: int32(len(payload))}, longest: len(payload)}
	if err := j.waitForRoom(entrySize(len(payload)) + e.reserve()); err != nil {
		if errors.Is(err, ErrFull) && j.cfg.Full == Drop {
			return Entry{}, nil
		}
		return Entry{}, err
	}
	j.lastID++
	e.at = j.ring.put(typeOpen, j.lastID, 0, j.nextSeq, payload, sum)
	j.ring.pinOpen(e.at)
	j.reserved += e.reserve()
	j.open[j.lastID] = e
	j.keepMoving()
	return Entry{id: j.lastID}, nil
}

// Attempt replaces the payload of an open entry, before a further dispatch that
// may be billed. Without room it fails with ErrFull whatever the policy, and the
// attempt must not be made. An entry that was dropped takes any attempt.
func (j *Journal) Attempt(e Entry, payload []byte) error {
	if e.id == 0 {
		return nil
	}
	if len(payload) > j.MaxPayload() {
		return j.tooLarge(payload, j.MaxPayload())
	}
	sum := crc32.Checksum(payload, castagnoli)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ring == nil {
		return ErrStopped
	}
	if _, ok := j.open[e.id]; !ok {
		return ErrNotOpen
	}
	next := openEntry{at: place{length: int32(len(payload))}, longest: max(j.open[e.id].longest, len(payload))}
	if !j.makeRoom(entrySize(len(payload)) + next.reserve() - j.open[e.id].reserve()) {
		j.stats.FullTotal++
		return ErrFull
	}
	old := j.open[e.id] // where it lies now: making room may have moved it
	next.at = j.ring.put(typeAttempt, e.id, 0, j.nextSeq, payload, sum)
	j.move(e.id, old, next)
	j.keepMoving()
	return nil
}

// Close makes the entry's record final and gives it the next number, in one step
// with writing it. It never fails for space up to CloseRoom, and refuses a longer
// payload with ErrTooLarge, the entry staying open.
func (j *Journal) Close(e Entry, payload []byte) (seq uint64, err error) {
	sum := crc32.Checksum(payload, castagnoli)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ring == nil {
		return 0, ErrStopped
	}
	if e.id == 0 {
		return j.closeDropped(payload, sum)
	}
	open, ok := j.open[e.id]
	if !ok {
		return 0, ErrNotOpen
	}
	if len(payload) > open.longest+CloseExtra {
		return 0, j.tooLarge(payload, open.longest+CloseExtra)
	}
	delete(j.open, e.id)
	j.reserved -= open.reserve()
	j.ring.unpinOpen(open.at)
	j.ring.segments[open.at.segment].closed++
	return j.finish(e.id, open.at.segment, payload, sum), nil
}

// CloseRoom is the longest payload that Close takes for the entry: CloseExtra
// more than the longest payload it was opened or attempted with.
func (j *Journal) CloseRoom(e Entry) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.id == 0 {
		return j.MaxPayload() + CloseExtra
	}
	if open, ok := j.open[e.id]; ok {
		return open.longest + CloseExtra
	}
	return 0
}

// closeDropped closes what was never opened, if there is room by now.
func (j *Journal) closeDropped(payload []byte, sum uint32) (uint64, error) {
	if len(payload) > j.MaxPayload()+CloseExtra {
		return 0, j.tooLarge(payload, j.MaxPayload()+CloseExtra)
	}
	if !j.makeRoom(entrySize(len(payload))) {
		j.stats.DroppedTotal++
		return 0, ErrDropped
	}
	return j.finish(0, -1, payload, sum), nil
}

// finish writes a close and queues it for the sender. opened is the segment that
// keeps the open until the ack, -1 for none.
func (j *Journal) finish(id uint64, opened int32, payload []byte, sum uint32) uint64 {
	seq := j.nextSeq
	at := j.ring.put(typeClose, id, seq, seq, payload, sum)
	j.nextSeq++
	j.ring.segments[at.segment].closed++
	j.closed.push(closedEntry{at: at, opened: opened, since: time.Since(j.began)})
	j.keepMoving()
	j.wake() // a close takes less than was set aside for it
	select {
	case j.notify <- struct{}{}:
	default:
	}
	return seq
}

// waitForRoom makes room as Config.Full says. It gives the lock up while it waits.
func (j *Journal) waitForRoom(need int) error {
	var deadline *time.Timer
	for j.ring != nil {
		if j.makeRoom(need) {
			return nil
		}
		if deadline == nil {
			j.stats.FullTotal++
			if j.cfg.Full != Block {
				return ErrFull
			}
			deadline = time.NewTimer(j.cfg.BlockFor)
			defer deadline.Stop()
		}
		if !j.sleep(deadline.C) {
			return ErrFull
		}
	}
	return ErrStopped
}

// sleep gives the lock up until room was made. It returns false at the deadline.
func (j *Journal) sleep(deadline <-chan time.Time) (woken bool) {
	made := j.roomMade
	j.waiting++
	j.mu.Unlock()
	select {
	case <-made:
		woken = true
	case <-deadline:
	}
	j.mu.Lock()
	j.waiting--
	return woken
}

// wake lets every waiting open look for room again.
func (j *Journal) wake() {
	if j.waiting > 0 {
		close(j.roomMade)
		j.roomMade = make(chan struct{})
	}
}

// makeRoom says whether need bytes fit beside what is set aside. Where they do
// not, it copies open entries out of the oldest segment, so that one long stream
// does not keep everything behind it.
func (j *Journal) makeRoom(need int) bool {
	for j.ring.room() < j.reserved+need {
		if !j.ring.worthCopying() {
			return false
		}
		j.copyForward(int32(j.ring.tail))
		j.ring.trim()
	}
	return true
}

// keepMoving looks at the oldest segment once for each segment that is begun, from
// half of the ring on. The open entries in it are copied forward in good time:
// were that left until there is no room, one request in the same segment that was
// closed a moment ago, and waits for its ack, would make the journal full.
func (j *Journal) keepMoving() {
	r := j.ring
	if r.generation == j.lookedAt {
		return
	}
	j.lookedAt = r.generation
	if 2*r.used > len(r.segments) && r.room() >= j.reserved+r.segments[r.tail].openBytes {
		j.copyForward(int32(r.tail))
		r.trim()
	}
}

// copyForward moves the open entries of a segment to the head. Their copies were
// provided for when they were opened, so there is room.
func (j *Journal) copyForward(segment int32) {
	for id, e := range j.open {
		if e.at.segment != segment {
			continue
		}
		payload := j.ring.payload(e.at)
		next := e
		next.at = j.ring.put(typeAttempt, id, 0, j.nextSeq, payload, crc32.Checksum(payload, castagnoli))
		j.move(id, e, next)
		j.stats.CopiedTotal++
	}
}

// move puts an open entry's new place and reserve in the stead of the old.
func (j *Journal) move(id uint64, old, next openEntry) {
	j.ring.unpinOpen(old.at)
	j.ring.pinOpen(next.at)
	j.reserved += next.reserve() - old.reserve()
	j.open[id] = next
}

func (j *Journal) tooLarge(payload []byte, limit int) error {
	return fmt.Errorf("cannot journal %d bytes, at most %d fit: %w", len(payload), limit, ErrTooLarge)
}
