package limit

// Pass is an admitted request. Its methods are called from one goroutine at a time.
type Pass struct {
	m      *Manager
	parts  []part
	inline [6]part
	tokens int64 // charged so far
	leased int64 // the part of it that stands on each part's lease
}

// part is what a Pass has of one subject.
type part struct {
	s        *subject
	requests *lease
	tokens   *lease
	slot     bool
}

// Settle corrects the charge to what the request really took, once the answer has told
// it. What is beyond the charge counts even when it passes the limit: it is missing in
// the next window. It may be called again with a better figure; what was an overshoot
// stays counted.
func (p *Pass) Settle(actual int64) {
	if actual = max(actual, 0); actual == p.tokens {
		return
	}
	m := p.m
	m.mu.Lock()
	m.book.settle(p, actual, m.now())
	wake := m.book.takeWake()
	m.mu.Unlock()
	if wake {
		m.kick()
	}
}

// Release ends the request: its slots are free again.
func (p *Pass) Release() {
	m := p.m
	m.mu.Lock()
	m.book.release(p, m.now())
	m.checkEmpty()
	wake := m.book.takeWake()
	m.mu.Unlock()
	if wake {
		m.kick()
	}
}

// Cancel is Release for a request that was refused for another reason, and never sent:
// it consumed nothing.
func (p *Pass) Cancel() {
	p.m.mu.Lock()
	p.m.book.unuse(p, p.m.now())
	p.m.mu.Unlock()
	p.Release()
}
