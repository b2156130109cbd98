package limit

import "time"

// pace is how much of something was used lately: in the current stretch of time, and in
// the one before.
type pace struct {
	from       time.Duration
	cur, older int64
}

func (p *pace) add(n int64, stretch, now time.Duration) {
	p.turn(stretch, now)
	p.cur += n
}

// recent is the use of about the last stretch, rounded up.
func (p *pace) recent(stretch, now time.Duration) int64 {
	p.turn(stretch, now)
	if p.older == 0 {
		return p.cur
	}
	left := float64(p.from+stretch-now) / float64(stretch)
	return p.cur + int64(float64(p.older)*left+0.999)
}

func (p *pace) turn(stretch, now time.Duration) {
	switch passed := now - p.from; {
	case passed < stretch:
	case passed < 2*stretch:
		p.from, p.older, p.cur = p.from+stretch, p.cur, 0
	default:
		p.from, p.older, p.cur = now, 0, 0
	}
}
