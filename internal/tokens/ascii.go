package tokens

import (
	"encoding/binary"
	"math/bits"

	"github.com/penstock-gateway/penstock/internal/tokens/bpe"
	"github.com/penstock-gateway/penstock/internal/tokens/split"
)

// asciiRules is what the fast way needs to know of a pattern. The fast way reads
// eight bytes at a time and is for pieces of ASCII of at most 16 bytes, which is
// nearly all of a text in a western language; the rest goes the way of package
// split, piece by piece.
type asciiRules struct {
	kind   [256]kind
	letter [256]bool
	least  [256]uint8 // how long a word must be that begins with a character
	stop   [256]bool  // what behind a word needs a closer look
	tail   [256]bool  // what may follow punctuation in its piece
	fold   uint64     // cl100k: makes capitals small
	upper  uint64     // o200k: all bytes but the first, where capitals may go on
	single uint64     // cl100k: the second byte, where they may not
}

// never is longer than any word that the fast way finds at once.
const never = 255

// kind is what a piece is that begins with a character and is no word.
type kind uint8

const (
	unusual kind = iota // NUL, which keys cannot tell from padding, and all beyond ASCII
	letter
	digit
	blank // white, other than CR and LF
	lineEnd
	mark       // punctuation, symbols, control characters
	apostrophe // a mark that may begin a contraction
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

func o200kRules() *asciiRules {
	r := commonRules()
	r.upper = ^uint64(0xff)
	r.stop['\''] = true
	r.tail['/'] = true
	return r
}

func cl100kRules() *asciiRules {
	r := commonRules()
	r.fold = ones * 0x20
	r.single = 0x8000
	r.least['\''] = never // it may begin a contraction, which comes before all else
	r.kind['\''] = apostrophe
	return r
}

func commonRules() *asciiRules {
	r := new(asciiRules)
	for c := range r.least {
		r.least[c] = never
	}
	for c := 1; c < 0x80; c++ {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			r.kind[c] = letter
			r.letter[c] = true
			r.least[c] = 1
		case '0' <= c && c <= '9':
			r.kind[c] = digit
		case c == '\r' || c == '\n':
			r.kind[c] = lineEnd
			r.tail[c] = true
		case c == ' ' || '\t' <= c && c <= '\f':
			r.kind[c] = blank
			r.least[c] = 2
		default:
			r.kind[c] = mark
			r.least[c] = 2
		}
	}
	for c := 0x80; c < 0x100; c++ {
		r.stop[c] = true
	}
	return r
}

// notSmall has the high bit set in each byte of w that is not a to z, and no
// other bit.
func notSmall(w uint64) uint64 {
	low := w & ^uint64(highs)
	return ((low + ones*(0x80-'z'-1)) | ^(low + ones*(0x80-'a')) | w) & highs
}

// notCapital is the same for A to Z.
func notCapital(w uint64) uint64 {
	low := w & ^uint64(highs)
	return ((low + ones*(0x80-'Z'-1)) | ^(low + ones*(0x80-'A')) | w) & highs
}

// ahead is how many bytes behind a place the fast way may read.
const ahead = 32

// ascii counts the pieces of buf that begin from p on and before limit, and
// returns where it got to. The text ends at n; all of buf up to limit+ahead can be
// read, and what is there from n on is blank.
func (s *scan) ascii(buf []byte, p, limit, n int) int {
	r, t := s.rules, s.table
	for p < limit {
		// A word: letters, with a blank or a mark before them or none. Its first byte
		// may be any; unless that is a small letter, capitals may follow, then small
		// letters.
		w := binary.LittleEndian.Uint64(buf[p:])
		small := notSmall(w | r.fold)
		upper := notCapital(w)&r.upper | ^small&0x80<<8 | r.single
		end := p + bits.TrailingZeros64(small&(upper|-upper))>>3
		switch {
		case end-p < int(r.least[buf[p]]):
			p = s.other(buf, p, n)
			continue
		case end-p == 8:
			p = s.longWord(buf, p, n, upper)
			continue
		case r.stop[buf[end]]:
			p = s.closer(buf, p, end, n)
			continue
		}
		key := w & (^uint64(0) >> (64 - 8*(end-p)))
		s.missed[s.misses&(queue-1)] = bpe.Word{key}
		s.misses += t.Miss1(key)
		s.n++
		if s.misses == queue {
			s.resolve()
		}
		p = end
	}
	return p
}

// longWord counts a word of eight bytes or more from p on. It is all capitals so
// far where upper is 0.
func (s *scan) longWord(buf []byte, p, n int, upper uint64) int {
	r := s.rules
	more := bits.TrailingZeros64(notSmall(binary.LittleEndian.Uint64(buf[p+8:])|r.fold)) >> 3
	end := p + 8 + more
	switch {
	case upper == 0 || more == 8:
		return s.slow(buf[:n], p)
	case r.stop[buf[end]]:
		return s.closer(buf, p, end, n)
	}
	s.ask(buf, p, end)
	return end
}

// closer counts a word that ends before an apostrophe or a character beyond ASCII.
func (s *scan) closer(buf []byte, p, end, n int) int {
	if buf[end] != '\'' {
		return s.slow(buf[:n], p)
	}
	end += split.Contraction(buf[end:n])
	if end-p > 16 {
		return s.slow(buf[:n], p)
	}
	s.ask(buf, p, end)
	return end
}

// ask counts the piece of at most 16 bytes from p to end, none of them NUL.
func (s *scan) ask(buf []byte, p, end int) {
	low := binary.LittleEndian.Uint64(buf[p:])
	if end-p <= 8 {
		low &= ^uint64(0) >> (64 - 8*(end-p))
		s.missed[s.misses&(queue-1)] = bpe.Word{low}
		s.misses += s.table.Miss1(low)
	} else {
		high := binary.LittleEndian.Uint64(buf[p+8:]) & (^uint64(0) >> (128 - 8*(end-p)))
		s.missed[s.misses&(queue-1)] = bpe.Word{low, high}
		s.misses += s.table.Miss2(low, high)
	}
	s.n++
	if s.misses == queue {
		s.resolve()
	}
}

// other counts a piece from p on that is no word.
func (s *scan) other(buf []byte, p, n int) int {
	r := s.rules
	switch r.kind[buf[p]] {
	case mark:
		return s.marks(buf, p, p, n)
	case blank:
		if buf[p] == ' ' && r.kind[buf[p+1]] >= mark {
			return s.marks(buf, p, p+1, n)
		}
		return s.white(buf, p, n)
	case lineEnd:
		return s.white(buf, p, n)
	case digit:
		return s.digits(buf, p, n)
	case apostrophe:
		if size := split.Contraction(buf[p:n]); size > 0 {
			s.ask(buf, p, p+size)
			return p + size
		}
		if !r.letter[buf[p+1]] {
			return s.marks(buf, p, p, n)
		}
	}
	return s.slow(buf[:n], p)
}

// digits counts up to three digits, which are a token whichever they are.
func (s *scan) digits(buf []byte, p, n int) int {
	end := p + 1
	for end < p+3 && s.rules.kind[buf[end]] == digit {
		end++
	}
	if end < p+3 && buf[end] >= 0x80 { // may be a number, too
		return s.slow(buf[:n], p)
	}
	s.n++
	return end
}

// marks counts a piece whose punctuation begins at q, where p is or behind a blank
// at p.
func (s *scan) marks(buf []byte, p, q, n int) int {
	r := s.rules
	end := q + 1
	for end < n && r.kind[buf[end]] >= mark {
		end++
	}
	if end < n {
		if r.kind[buf[end]] == unusual { // may be punctuation, too
			return s.slow(buf[:n], p)
		}
		for end < n && r.tail[buf[end]] {
			end++
		}
	}
	return s.run(buf, p, end)
}

// white counts a piece of white space.
func (s *scan) white(buf []byte, p, n int) int {
	r := s.rules
	end, line := p, 0
	for end < n {
		k := r.kind[buf[end]]
		if k != blank && k != lineEnd {
			break
		}
		end++
		if k == lineEnd {
			line = end
		}
	}
	switch {
	case end == n || r.kind[buf[end]] == unusual: // the end of the text counts, white space beyond ASCII, NUL
		return s.slow(buf[:n], p)
	case line > 0:
		end = line
	case end > p+1: // the last one belongs to what follows
		end--
	}
	return s.run(buf, p, end)
}

// run counts the piece from p to end, none of it NUL.
func (s *scan) run(buf []byte, p, end int) int {
	switch {
	case end == p+1:
		s.n++ // every byte is a token
	case end-p <= 16:
		s.ask(buf, p, end)
	default:
		s.piece(buf[p:end])
	}
	return end
}
