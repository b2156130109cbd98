package collector

import "sync"

// ackBox carries acks from the lanes, which must not block, to the goroutine that
// may send on the stream. Only the latest ack counts: it is the cursor's value.
type ackBox struct {
	wake chan struct{} // signals that something changed; capacity 1

	mu      sync.Mutex
	waiting int // batches in the lanes
	ack     uint64
	fresh   bool // ack was not sent yet
	ended   bool // no more batches come
	err     error
	failed  bool // a batch was given up: err counts at once
}

func newAckBox() *ackBox { return &ackBox{wake: make(chan struct{}, 1)} }

// expect announces a batch. It returns false when no more are taken.
func (b *ackBox) expect() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return false
	}
	b.waiting++
	return true
}

// withdraw takes an announced batch back.
func (b *ackBox) withdraw() {
	b.mu.Lock()
	b.waiting--
	b.mu.Unlock()
	b.signal()
}

// done settles one batch; see item.
func (b *ackBox) done(cursor uint64, err error) {
	b.mu.Lock()
	b.waiting--
	switch {
	case err == nil:
		b.ack, b.fresh = cursor, true
	case !b.failed:
		b.failed, b.err = true, err
	}
	b.mu.Unlock()
	b.signal()
}

// end says that no more batches come, and with which verdict the stream ends once
// those on their way are settled. The first verdict counts.
func (b *ackBox) end(err error) {
	b.mu.Lock()
	if !b.ended && !b.failed {
		b.err = err
	}
	b.ended = true
	b.mu.Unlock()
	b.signal()
}

// take returns the ack to send, if there is a new one.
func (b *ackBox) take() (ack uint64, fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ack, fresh = b.ack, b.fresh
	b.fresh = false
	return ack, fresh
}

// verdict says whether the stream is over, and how.
func (b *ackBox) verdict() (done bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	done = (b.failed || b.ended && b.waiting == 0) && !b.fresh
	if !done {
		return false, nil
	}
	return true, b.err
}

func (b *ackBox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
