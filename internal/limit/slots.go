package limit

import "time"

// slots is what this worker has of one parallel limit.
type slots struct {
	limit  int64 // as the last request had it; 0: none
	have   int64
	told   int64 // have as the ledger knows it
	inUse  int64
	peak   int64         // most in use since the last look
	valid  time.Duration // no new use from then on; the requests in them run on
	shelf  int64         // so many may rest while the key is in use
	keep   time.Duration // how long others may
	last   time.Duration // last use
	giveAt time.Duration // when resting ones are looked at; never: none rests
	free   int64         // what nobody had when the ledger was last asked
}

// room says whether a slot is at hand.
func (s *slots) room(now time.Duration) bool { return s.inUse < s.have && now < s.valid }

func (s *slots) take(now time.Duration) {
	s.inUse++
	s.last = now
	s.peak = max(s.peak, s.inUse)
}

// put gives a slot up and says whether a look at them became due.
func (s *slots) put(calm, now time.Duration) bool {
	s.inUse--
	if s.keep == 0 && s.have > s.shelf {
		s.peak, s.giveAt = s.inUse, now
		return true
	}
	if s.giveAt != never {
		return false
	}
	s.giveAt = now + s.pause(calm)
	return true
}

// pause is how long those that rest may do so before they are looked at.
func (s *slots) pause(calm time.Duration) time.Duration {
	if s.have <= s.shelf {
		return calm
	}
	return max(s.keep, minRest)
}

// rest gives back what was not in use for a while, but for those that are about to be.
func (s *slots) rest(reserved int64, calm, now time.Duration) {
	if now < s.giveAt {
		return
	}
	keep := max(s.inUse+reserved, s.peak)
	if now-s.last < 2*calm {
		keep = max(keep, s.shelf)
	}
	s.have = min(s.have, keep)
	s.peak, s.giveAt = s.inUse, never
	if s.have > s.inUse {
		s.giveAt = now + s.pause(calm)
	}
}

// minRest is how long a slot that a waiting request was about to take may rest at least.
const minRest = 20 * time.Millisecond

// news says that the ledger has to hear of them: of fewer, or to renew them.
func (s *slots) news(t *times, now time.Duration) bool {
	return s.have != s.told || s.have > 0 && now >= s.valid-t.calm/2
}

// next is when to look at them.
func (s *slots) next(t *times) time.Duration {
	if s.have == 0 {
		return never
	}
	return min(s.giveAt, s.valid-t.calm/2)
}
