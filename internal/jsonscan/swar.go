package jsonscan

import "encoding/binary"

// Strings are read in blocks of 64 bytes: a word has a bit for each byte of the
// block that is not plain, and one goes from bit to bit. What costs in text with
// many escapes is that the processor cannot foresee where the next one stands;
// so there is one branch on that for each block, and not one for each escape.

const (
	block = 64
	// ahead is how far behind its start a block is read: past an escape that
	// begins in its last byte.
	ahead = 72

	ones  = 0x0101010101010101
	highs = 0x80 * ones
	lows  = 0x7f * ones
)

// isBackslash has the high bit of each byte of w that is a backslash.
func isBackslash(w uint64) uint64 {
	return ^(((w^ones*'\\')&lows + lows) | w) & highs
}

// isSpecial is isBackslash for the bytes that end a plain run of a string:
// backslash, quote and control characters. Flipping bit 1 puts the quote just
// behind the control characters, so that one addition finds them all.
func isSpecial(w uint64) uint64 {
	const plain = ('"' ^ 2) + 1 // the lowest that is not found
	slash := (w^ones*'\\')&lows + lows
	other := (w^ones*2)&lows + ones*(0x80-plain)
	return ^(slash&other | w) & highs
}

// gather puts the high bits of eight bytes side by side.
func gather(m uint64) uint64 { return m >> 7 * 0x0102040810204080 >> 56 }

// word is the i-th word of a block.
func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i : 8*i+8]) }

// specials has a bit for each special byte of a block; high has the high bits of
// its bytes somewhere.
func specials(b *[ahead]byte) (mask, high uint64) {
	p := b[:]
	w0, w1, w2, w3 := word(p, 0), word(p, 1), word(p, 2), word(p, 3)
	w4, w5, w6, w7 := word(p, 4), word(p, 5), word(p, 6), word(p, 7)
	mask = gather(isSpecial(w0)) | gather(isSpecial(w1))<<8 | gather(isSpecial(w2))<<16 | gather(isSpecial(w3))<<24 |
		gather(isSpecial(w4))<<32 | gather(isSpecial(w5))<<40 | gather(isSpecial(w6))<<48 | gather(isSpecial(w7))<<56
	return mask, w0 | w1 | w2 | w3 | w4 | w5 | w6 | w7
}

// backslashes has a bit for each backslash of a block.
func backslashes(b *[room]byte) (mask uint64) {
	p := b[:]
	return gather(isBackslash(word(p, 0))) | gather(isBackslash(word(p, 1)))<<8 |
		gather(isBackslash(word(p, 2)))<<16 | gather(isBackslash(word(p, 3)))<<24 |
		gather(isBackslash(word(p, 4)))<<32 | gather(isBackslash(word(p, 5)))<<40 |
		gather(isBackslash(word(p, 6)))<<48 | gather(isBackslash(word(p, 7)))<<56
}

// upTo has the bits below n, all of them from 64 on.
func upTo(n int) uint64 { return 1<<uint(n) - 1 }
