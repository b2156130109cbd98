package limit

import (
	"container/heap"
	"time"
)

// subject is an entity with limits, as this worker knows it. It exists while it has
// something or was used lately.
type subject struct {
	name     string
	requests permits
	tokens   permits
	slots    slots
	passes   int // not released
	waiters  int
	lastUse  time.Duration

	due   time.Duration // when the ledger has to hear of it
	place int           // in book.due
	soon  bool          // in book.soon
}

// times are the ledger's: how long permits and slots last.
type times struct {
	window, short, calm, cell time.Duration
	fast                      time.Duration // the stretch that short leases are sized by
}

// timesOf fills in what follows from the ledger's times.
func timesOf(window, short, calm, cell time.Duration) times {
	return times{window: window, short: short, calm: calm, cell: cell, fast: max(window/60, time.Millisecond)}
}

// usual are the times that hold until the ledger has told its own.
func usual() times {
	const window = time.Minute
	return timesOf(window, window/40, window/2, window/120)
}

// relimit takes over limits that have changed. What was granted under a higher one goes
// back at once.
func (b *book) relimit(s *subject, to *Subject, now time.Duration) {
	lower := to.RPM < s.requests.limit || to.TPM < s.tokens.limit || to.Parallel < s.slots.limit
	s.requests.limit, s.tokens.limit, s.slots.limit = to.RPM, to.TPM, to.Parallel
	s.requests.refused, s.tokens.refused = refusal{}, refusal{}
	if lower {
		b.recall(s, now)
	}
}

// recall gives back what is not in use.
func (b *book) recall(s *subject, now time.Duration) {
	s.requests.recall(now)
	s.tokens.recall(now)
	s.requests.refused, s.tokens.refused = refusal{}, refusal{}
	s.slots.peak, s.slots.shelf, s.slots.giveAt = s.slots.inUse, 0, now
	b.flag(s)
}

// subject finds or makes a subject.
func (b *book) subject(name string) *subject {
	s := b.subjects[name]
	if s == nil {
		s = &subject{name: name, place: -1, due: never}
		s.requests.kind, s.tokens.kind = RPM, TPM
		s.slots.giveAt = never
		b.subjects[name] = s
	}
	return s
}

// active says that s was used lately, so that having permits ready for it is worth while.
func (b *book) active(s *subject, now time.Duration) bool {
	return !b.stopping && now-s.lastUse < b.times.window
}

// flag has the ledger hear of s soon.
func (b *book) flag(s *subject) {
	if !s.soon {
		s.soon = true
		b.soon = append(b.soon, s)
		b.wake = true
	}
}

// schedule finds out when the ledger has to hear of s next, or forgets it.
func (b *book) schedule(s *subject, now time.Duration) {
	s.due = min(s.requests.next(&b.times, b.active(s, now), now), s.tokens.next(&b.times, b.active(s, now), now), s.slots.next(&b.times))
	if s.due == never {
		s.due = s.lastUse + b.times.window
		if s.due <= now && s.passes == 0 && s.waiters == 0 && !s.soon && s.isEmpty() {
			b.forget(s)
			return
		}
		s.due = max(s.due, now+b.times.cell)
	}
	b.place(s)
}

// hear has the ledger hear of s at a time, or before.
func (b *book) hear(s *subject, at time.Duration) {
	if at >= s.due || s.soon {
		return
	}
	s.due = at
	b.place(s)
	b.wake = true
}

// place puts s where its due time belongs.
func (b *book) place(s *subject) {
	if s.place < 0 {
		heap.Push(&b.due, s)
	} else {
		heap.Fix(&b.due, s.place)
	}
}

func (b *book) forget(s *subject) {
	if s.place >= 0 {
		heap.Remove(&b.due, s.place)
	}
	delete(b.subjects, s.name)
}

func (s *subject) isEmpty() bool {
	return s.requests.isEmpty() && s.tokens.isEmpty() && s.slots.have == 0
}

// dueHeap orders subjects by when they are due.
type dueHeap []*subject

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) {
	s := x.(*subject)
	s.place = len(*h)
	*h = append(*h, s)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	s.place = -1
	return s
}
