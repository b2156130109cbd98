package bpe

import (
	"encoding/binary"
	"math/bits"

	"github.com/penstock-gateway/penstock/internal/tokens/vocab"
)

// short is the longest piece, in bytes, that is merged in the textbook's way: for
// a word that is faster than laying down tokens.
const short = 16

// parts is a piece being merged. Its parts are known by the byte where they begin,
// counted from 1; before them and behind them stands one that merges with nothing,
// so that no part is without a neighbour. There is no branch on what is found:
// nobody could predict it.
type parts struct {
	ids    [32]uint32
	pairs  [32]uint32 // the part and its right neighbour: the rank of what they merge to, and where
	starts uint32     // a bit for each part
}

// A pair is a rank above its place: of two alike the left one is less.
const (
	placeBits = 5
	places    = 1 << placeBits
	noPair    = uint32(1) << (18 + placeBits) // this and above: the two do not merge
)

func pair(rank uint32, place int) uint32 { return rank<<placeBits | uint32(place) }

// least is the pair to merge next.
func (p *parts) least() uint32 {
	q := &p.pairs
	a := min(q[1], q[2], q[3], q[4])
	b := min(q[5], q[6], q[7], q[8])
	c := min(q[9], q[10], q[11], q[12])
	d := min(q[13], q[14], q[15], q[16])
	return min(min(a, b), min(c, d))
}

func (p *parts) start(t *vocab.Table, word Word) {
	for i := range p.pairs {
		p.pairs[i] = noPair
	}
	n := word.len()
	p.ids[0], p.ids[(n+1)%places] = vocab.Outside, vocab.Outside
	bytes := word.bytes()
	for i := range n {
		p.ids[(i+1)%places] = t.One(bytes[i%short])
	}
	for i := range n - 1 {
		p.pairs[(i+1)%places] = pair(t.Two(uint16(bytes[i%short])|uint16(bytes[(i+1)%short])<<8), i+1)
	}
	p.starts = 1<<(n+2) - 1
}

// merge makes a part of the pair at place.
func (p *parts) merge(t *vocab.Table, id uint32, place int) {
	behind := p.starts >> 1 >> place << place << 1
	taken := behind & -behind
	p.starts ^= taken
	p.pairs[bits.TrailingZeros32(taken)%places] = noPair
	p.ids[place] = id
	right := bits.TrailingZeros32(behind^taken) % places
	left := (bits.Len32(p.starts&(1<<place-1)) - 1) & (places - 1)
	p.pairs[place] = pair(t.Merge(id, p.ids[right]), place)
	p.pairs[left] = pair(t.Merge(p.ids[left], id), left)
}

// step merges the next pair and tells whether there was one.
func (p *parts) step(t *vocab.Table) bool {
	least := p.least()
	if least >= noPair {
		return false
	}
	p.merge(t, least>>placeBits, int(least%places))
	return true
}

func (p *parts) count() int { return bits.OnesCount32(p.starts) - 2 }

// Lanes is how many words are best counted together.
const Lanes = 4

// CountWords counts the tokens of up to Lanes words. They are merged in step: while
// one waits for memory, the others go on.
func (e *Encoder) CountWords(words []Word) (counts [Lanes]int) {
	lanes := e.lanes[:len(words)]
	for i := range lanes {
		lanes[i].start(e.table, words[i])
	}
	for busy := true; busy; {
		busy = false
		for i := range lanes {
			if lanes[i].step(e.table) {
				busy = true
			}
		}
	}
	for i := range lanes {
		counts[i] = lanes[i].count()
	}
	return counts
}

// Word is a text of 1 to 16 bytes, zero padded, that does not end in NUL.
type Word [2]uint64

func (w Word) len() int {
	if w[1] == 0 {
		return 8 - bits.LeadingZeros64(w[0])/8
	}
	return 16 - bits.LeadingZeros64(w[1])/8
}

func (w Word) bytes() (b [short]byte) {
	binary.LittleEndian.PutUint64(b[:], w[0])
	binary.LittleEndian.PutUint64(b[8:], w[1])
	return b
}

// wordOf is the word of a piece.
func wordOf(piece []byte) Word {
	var b [short]byte
	copy(b[:], piece)
	return Word{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
}
