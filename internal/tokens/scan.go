package tokens

import (
	"runtime"
	"sync/atomic"

	"github.com/penstock-gateway/penstock/internal/tokens/bpe"
	"github.com/penstock-gateway/penstock/internal/tokens/split"
	"github.com/penstock-gateway/penstock/internal/tokens/vocab"
)

const (
	// queue is how many missed words are gathered before they are looked up among
	// the learned ones: their loads from memory then overlap.
	queue = 64
	// stride is how much text is counted, some 0.3 ms, before other goroutines may
	// run: a prompt of a million tokens must not hold up a health check.
	stride = 64 << 10
)

// scan is what counting one text works with.
type scan struct {
	table   *vocab.Table
	pattern split.Pattern
	rules   *asciiRules
	memory  *memory
	merge   *bpe.Encoder

	learned *learned
	n       int // pieces so far, and the tokens beyond one for each that was resolved
	misses  int
	missed  [queue]bpe.Word // words of at most 16 bytes that are no token
	touched uint64
	bytes   []byte // a word, spelled out
	end     [2 * ahead]byte
}

func (s *scan) count(text []byte) int {
	s.learned = s.memory.table()
	s.n, s.misses = 0, 0
	p, next := 0, stride
	if s.rules == nil {
		for p < len(text) {
			p = s.slow(text, p)
			if p >= next {
				runtime.Gosched()
				next = p + stride
			}
		}
		return s.n
	}
	for p < len(text)-ahead {
		p = s.ascii(text, p, min(p+stride, len(text)-ahead), len(text))
		if p < len(text)-ahead {
			runtime.Gosched()
		}
	}
	if p < len(text) {
		n := copy(s.end[:], text[p:])
		for i := range s.end[n:] {
			s.end[n+i] = ' '
		}
		s.ascii(s.end[:], 0, n, n)
	}
	s.resolve()
	return s.n
}

// slow counts the piece at p by the pattern itself.
func (s *scan) slow(text []byte, p int) int {
	end := s.pattern.Next(text, p)
	s.piece(text[p:end])
	return end
}

// piece counts a piece of any kind.
func (s *scan) piece(piece []byte) {
	s.n++
	if s.table.Find(piece) != vocab.None {
		return
	}
	n := len(piece)
	switch {
	case n > maxLong || piece[n-1] == 0:
		s.n += s.merge.Count(piece) - 1
	case n > maxShort:
		s.n += s.phrase(longKeyOf(piece), n) - 1
	default:
		k := longKeyOf(piece)
		s.n += s.word(bpe.Word{k[0], k[1]}) - 1
	}
}

// word is the count of a word of at most 15 bytes that is no token and does not
// end in NUL.
func (s *scan) word(w bpe.Word) int {
	count := s.learned.findShort(w[0], w[1])
	if count == 0 {
		count = s.merge.CountWords([]bpe.Word{w})[0]
		s.learned.learnShort(w[0], w[1], count)
	}
	return count
}

// phrase is the count of size bytes, 16 to 31, that are no token and do not end
// in NUL.
func (s *scan) phrase(k longKey, size int) int {
	if count := s.learned.findLong(&k); count != 0 {
		return count
	}
	s.bytes = k.appendTo(s.bytes[:0], size)
	count := s.merge.Count(s.bytes)
	s.learned.learnLong(&k, count)
	return count
}

// resolve counts the words that were missed.
func (s *scan) resolve() {
	missed := s.missed[:s.misses]
	for _, w := range missed {
		// Brings it near while the others are computed.
		s.touched += atomic.LoadUint64(&s.learned.short[s.learned.shortBucket(w[0], w[1])][0][1])
	}
	unknown := missed[:0]
	for _, w := range missed {
		switch {
		case w[1]>>countBits != 0: // 16 bytes
			s.n += s.phrase(longKey{w[0], w[1]}, 16) - 1
		default:
			count := s.learned.findShort(w[0], w[1])
			if count == 0 {
				unknown = append(unknown, w)
				count = 1
			}
			s.n += count - 1
		}
	}
	for len(unknown) > 0 {
		lanes := unknown[:min(bpe.Lanes, len(unknown))]
		unknown = unknown[len(lanes):]
		counts := s.merge.CountWords(lanes)
		for i, w := range lanes {
			s.n += counts[i] - 1
			s.learned.learnShort(w[0], w[1], counts[i])
		}
	}
	s.misses = 0
}
