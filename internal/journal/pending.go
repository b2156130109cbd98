package journal

import "time"

// Closed is a closed entry. A live journal's Payload stays valid and unchanged
// until its number is acked or the journal is stopped; it must not be written to.
type Closed struct {
	Seq     uint64
	Payload []byte
	// Damaged marks, in an adoption only, a number whose entry could not be read;
	// Payload is nil. Something has to be sent under the number all the same, or
	// the cursor never passes it. The request itself, unless it was acked long ago,
	// is among the Open entries of the adoption.
	Damaged bool
}

// closedEntry is a record that waits for its ack.
type closedEntry struct {
	at     place
	opened int32         // segment of its open, -1 for none
	since  time.Duration // when it was closed, after Journal.began
}

// closedQueue is a queue in one slice that is reused. Entries are in order of
// their numbers, without gaps.
type closedQueue struct {
	items []closedEntry
	head  int
}

func (q *closedQueue) len() int             { return len(q.items) - q.head }
func (q *closedQueue) at(i int) closedEntry { return q.items[q.head+i] }
func (q *closedQueue) push(e closedEntry)   { q.items = append(q.items, e) }
func (q *closedQueue) pop() (first closedEntry) {
	first = q.items[q.head]
	q.head++
	// Move down when half of the slice is behind the head: each entry is moved at
	// most once per halving, and the slice stays as long as the queue ever was.
	if q.head*2 >= len(q.items) {
		q.items = q.items[:copy(q.items, q.items[q.head:])]
		q.head = 0
	}
	return first
}

// Pending returns closed entries with numbers above after, ascending, at most
// max. Numbers that were acked are not returned.
func (j *Journal) Pending(after uint64, max int) []Closed {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ring == nil || after >= j.nextSeq-1 {
		return nil
	}
	skip := 0
	if after > j.acked {
		skip = int(after - j.acked)
	}
	n := min(max, j.closed.len()-skip)
	if n <= 0 {
		return nil
	}
	out := make([]Closed, n)
	for i := range out {
		out[i] = Closed{Seq: j.acked + uint64(skip+i) + 1, Payload: j.ring.payload(j.closed.at(skip + i).at)}
	}
	return out
}

// Ack says that all numbers up to seq are committed, which gives their room back.
// A number that was acked before changes nothing; one that was never given counts
// as the last that was.
func (j *Journal) Ack(seq uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ring == nil {
		return
	}
	for j.acked < min(seq, j.nextSeq-1) {
		e := j.closed.pop()
		j.ring.segments[e.at.segment].closed--
		if e.opened >= 0 {
			j.ring.segments[e.opened].closed--
		}
		j.acked++
	}
	j.ring.trim()
	j.wake()
}

// Notify returns a channel of one slot that is filled by each Close. It serves
// one reader, who looks at Pending after each value.
func (j *Journal) Notify() <-chan struct{} { return j.notify }

// Stats is a snapshot of a journal. The totals count since Create.
type Stats struct {
	Open       int           // entries opened and not closed
	Unacked    int           // entries closed and not acked
	Oldest     time.Duration // how long ago the oldest of those was closed; 0: there is none
	NextSeq    uint64        // number of the next close
	Acked      uint64        // highest number acked
	Segments   int           // segments in use, of Config.MaxSegments
	FreeBytes  int           // room for new entries, without what is set aside for closes
	TotalBytes int           // room of an empty journal

	FullTotal    uint64 // opens and attempts that met a full journal
	DroppedTotal uint64 // records lost under policy Drop
	CopiedTotal  uint64 // open entries copied forward
}

// Stats returns a snapshot.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.stats
	s.Open, s.Unacked, s.NextSeq, s.Acked = len(j.open), j.closed.len(), j.nextSeq, j.acked
	if j.closed.len() > 0 {
		s.Oldest = time.Since(j.began) - j.closed.at(0).since
	}
	if j.ring != nil {
		s.Segments = j.ring.used
		s.FreeBytes = j.ring.room() - j.reserved
		s.TotalBytes = len(j.ring.segments) * (j.ring.capacity() - j.ring.maxEntry)
	}
	return s
}
