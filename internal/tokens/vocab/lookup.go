package vocab

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Miss1 is 0 where a text of at most 8 bytes, zero padded, is a token, and 1 where
// it is none: a number, so that the caller needs no branch. The text must not end
// in NUL, which padding hides.
func (t *Table) Miss1(key uint64) int {
	d := t.short[t.slot1(key)] ^ key
	return int((d | -d) >> 63)
}

// Miss2 is Miss1 for a text of 9 to 16 bytes.
func (t *Table) Miss2(low, high uint64) int {
	slot := &t.long[t.slot2(low, high)]
	d := (slot[0] ^ low) | (slot[1] ^ high)
	return int((d | -d) >> 63)
}

func (t *Table) slot1(key uint64) int {
	h := Hash1(key)
	return Slot(h, t.shortPilots[Bucket(h, len(t.shortPilots))], len(t.short))
}

func (t *Table) slot2(low, high uint64) int {
	h := Hash2(low, high)
	return Slot(h, t.longPilots[Bucket(h, len(t.longPilots))], len(t.long))
}

// Merge returns the token that two neighbours merge to, or None. Either may be
// Outside. It has no branch: whether two merge is hard to predict.
func (t *Table) Merge(left, right uint32) uint32 {
	key := uint64(left)<<18 | uint64(right)
	h := Hash1(key)
	found := t.pairs[Slot(h, t.pairPilots[Bucket(h, len(t.pairPilots))], len(t.pairs))]
	d := found>>18 ^ key
	return uint32(found&(1<<18-1)) | uint32(-int64((d|-d)>>63))
}

// One is the token of a single byte.
func (t *Table) One(b byte) uint32 { return t.byteIDs[b] }

// Two is the token of two bytes, little-endian, or None.
func (t *Table) Two(bytes uint16) uint32 { return t.twoBytes[bytes] }

// Len is a token's length in bytes.
func (t *Table) Len(id uint32) int { return int(t.tokens[id].length) }

// Shorter is the longest token that id starts with, or None for a single byte.
func (t *Table) Shorter(id uint32) uint32 { return t.tokens[id].shorter }

// Find returns the token that text is, or None.
func (t *Table) Find(text []byte) uint32 {
	n := len(text)
	switch {
	case n == 1:
		return t.byteIDs[text[0]]
	case n == 2:
		return t.twoBytes[binary.LittleEndian.Uint16(text)]
	case n == 0 || n > MaxToken || text[n-1] == 0: // no longer token ends in NUL
		return None
	case n <= 16:
		low, high := load(text)
		return t.find(low, high, n)
	}
	from, to := t.group(text)
	for i := from; i < to; i++ {
		if bytes.Equal(t.farText[t.farStarts[i]:t.farStarts[i+1]], text) {
			return t.farIDs[i]
		}
	}
	return None
}

// find looks up a text of 2 to 16 bytes that does not end in NUL.
func (t *Table) find(low, high uint64, n int) uint32 {
	if n <= 8 {
		if s := t.slot1(low); t.short[s] == low {
			return t.shortIDs[s]
		}
		return None
	}
	if s := t.slot2(low, high); t.long[s] == [2]uint64{low, high} {
		return t.longIDs[s]
	}
	return None
}

// Longest returns the longest token that text, which is not empty, starts with.
func (t *Table) Longest(text []byte) uint32 {
	if len(text) >= 3 {
		low, high := load(text)
		set := t.lengths[StartHash(low)]
		if set>>17 != 0 && len(text) > 16 {
			if id := t.longestFar(text); id != None {
				return id
			}
		}
		set &= 1<<(min(len(text), 16)+1) - 1
		for set != 0 {
			n := bits.Len32(set) - 1
			set &^= 1 << n
			if text[n-1] == 0 {
				continue
			}
			l, h := cut(low, high, n)
			if id := t.find(l, h, n); id != None {
				return id
			}
		}
	}
	if len(text) >= 2 {
		if id := t.twoBytes[binary.LittleEndian.Uint16(text)]; id != None {
			return id
		}
	}
	return t.byteIDs[text[0]]
}

// load reads up to 16 bytes, zero padded.
func load(text []byte) (low, high uint64) {
	if len(text) >= 16 {
		return binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
	}
	var b [16]byte
	copy(b[:], text)
	return binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
}

// cut keeps the first n bytes, 1 to 16.
func cut(low, high uint64, n int) (l, h uint64) {
	if n <= 8 {
		return low & (^uint64(0) >> (64 - 8*n)), 0
	}
	return low, high & (^uint64(0) >> (128 - 8*n))
}

// longestFar is Longest among the tokens of more than 16 bytes.
func (t *Table) longestFar(text []byte) uint32 {
	from, to := t.group(text)
	for i := from; i < to; i++ {
		if bytes.HasPrefix(text, t.farText[t.farStarts[i]:t.farStarts[i+1]]) {
			return t.farIDs[i]
		}
	}
	return None
}

// group returns where in farIDs the tokens of more than 16 bytes stand that
// begin as text does, the longest first.
func (t *Table) group(text []byte) (from, to uint32) {
	low, high := load(text)
	h := Hash2(low, high)
	s := Slot(h, t.farPilots[Bucket(h, len(t.farPilots))], len(t.far))
	if t.far[s] != [2]uint64{low, high} {
		return 0, 0
	}
	return t.farGroups[s], t.farGroups[s] + t.farCounts[s]
}

// Compatible tells whether two tokens may stand side by side in the encoding of
// a text: whether merging their bytes leaves exactly these two. It goes back in
// time. As long as both were whole, a merge of the two would have come before
// either was taken from a larger token's view, so none may exist; then the later
// of the two is undone, and its half that touches the border takes its place.
func (t *Table) Compatible(left, right uint32) bool {
	before := None // what merges earlier than this would have come first
	for {
		if t.Merge(left, right) < before {
			return false
		}
		switch {
		case left > right && left >= Bytes:
			before = left
			left = t.tokens[left].right
		case right >= Bytes: // of two alike the left one was made first
			before = right + 1
			right = t.tokens[right].left
		default:
			return true
		}
	}
}
