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

func (p *parts) start(t *vocab.Table, piece []byte) {
	n := len(piece)
	for i := range p.pairs {
		p.pairs[i] = noPair
	}
	p.ids[0], p.ids[(n+1)%places] = vocab.Outside, vocab.Outside
	for i, b := range piece {
		p.ids[(i+1)%places] = t.One(b)
	}
	for i := range n - 1 {
		p.pairs[(i+1)%places] = pair(t.Two(binary.LittleEndian.Uint16(piece[i:])), i+1)
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

// countShort is Count for a piece of at most 16 bytes.
func (e *Encoder) countShort(piece []byte) int {
	p := &e.parts
	p.start(e.table, piece)
	for {
		least := p.least()
		if least >= noPair {
			return bits.OnesCount32(p.starts) - 2
		}
		p.merge(e.table, least>>placeBits, int(least%places))
	}
}
