// Package unicode16 tells the general categories of Unicode 16.0.0, which are those
// that the original tokenizer splits by (npm's tiktoken 1.0.22, whose
// regex-syntax is 0.8.5, as comparing every code point with it shows). Go's
// standard library has the tables of 15.0.0; what lies between the two are the
// characters below. None that 15.0.0 knew changed its category, nor did white
// space.
//
// It is for compiling tables and for tests: it knows nothing else than what Go's
// tables and its own lists say, so with a Go of another version it is wrong.
package unicode16

import (
	"fmt"
	"unicode"
)

// Version is the Unicode version, and Base the one that Go's tables must be of.
const (
	Version = "16.0.0"
	Base    = "15.0.0"
)

// Check refuses a Go whose tables the lists here do not complete.
func Check() error {
	if unicode.Version != Base {
		return fmt.Errorf("cannot tell the categories of Unicode %s: Go's tables are of %s, the lists in this package complete those of %s; bring the lists up to date",
			Version, unicode.Version, Base)
	}
	return nil
}

// block is the characters from the first to the second.
type block [2]rune

// in tells whether r is in Go's table or one of the blocks that it lacks.
func in(r rune, t *unicode.RangeTable, added ...block) bool {
	for _, b := range added {
		if b[0] <= r && r <= b[1] {
			return true
		}
	}
	return unicode.Is(t, r)
}

// Upper is \p{Lu}.
func Upper(r rune) bool {
	return in(r, unicode.Lu, block{0x1c89, 0x1c89}, block{0xa7cb, 0xa7cc}, block{0xa7da, 0xa7da}, block{0xa7dc, 0xa7dc}, block{0x10d50, 0x10d65})
}

// Title is \p{Lt}.
func Title(r rune) bool { return in(r, unicode.Lt) }

// Lower is \p{Ll}.
func Lower(r rune) bool {
	return in(r, unicode.Ll, block{0x1c8a, 0x1c8a}, block{0xa7cd, 0xa7cd}, block{0xa7db, 0xa7db}, block{0x10d70, 0x10d85})
}

// Modifier is \p{Lm}.
func Modifier(r rune) bool {
	return in(r, unicode.Lm, block{0x10d4e, 0x10d4e}, block{0x10d6f, 0x10d6f}, block{0x16d40, 0x16d42}, block{0x16d6b, 0x16d6c})
}

// OtherLetter is \p{Lo}.
func OtherLetter(r rune) bool {
	return in(r, unicode.Lo,
		block{0x105c0, 0x105f3}, block{0x10d4a, 0x10d4d}, block{0x10d4f, 0x10d4f}, block{0x10ec2, 0x10ec4}, block{0x11380, 0x11389},
		block{0x1138b, 0x1138b}, block{0x1138e, 0x1138e}, block{0x11390, 0x113b5}, block{0x113b7, 0x113b7}, block{0x113d1, 0x113d1},
		block{0x113d3, 0x113d3}, block{0x11bc0, 0x11be0}, block{0x13460, 0x143fa}, block{0x16100, 0x1611d}, block{0x16d43, 0x16d6a},
		block{0x18cff, 0x18cff}, block{0x1e5d0, 0x1e5ed}, block{0x1e5f0, 0x1e5f0}, block{0x2ebf0, 0x2ee5d})
}

// Mark is \p{M}.
func Mark(r rune) bool {
	return in(r, unicode.M,
		block{0x0897, 0x0897}, block{0x10d69, 0x10d6d}, block{0x10efc, 0x10efc}, block{0x113b8, 0x113c0}, block{0x113c2, 0x113c2},
		block{0x113c5, 0x113c5}, block{0x113c7, 0x113ca}, block{0x113cc, 0x113d0}, block{0x113d2, 0x113d2}, block{0x113e1, 0x113e2},
		block{0x11f5a, 0x11f5a}, block{0x1611e, 0x1612f}, block{0x1e5ee, 0x1e5ef})
}

// Number is \p{N}.
func Number(r rune) bool {
	return in(r, unicode.N,
		block{0x10d40, 0x10d49}, block{0x116d0, 0x116e3}, block{0x11bf0, 0x11bf9}, block{0x16130, 0x16139}, block{0x16d70, 0x16d79},
		block{0x1ccf0, 0x1ccf9}, block{0x1e5f1, 0x1e5fa})
}

// Space is \s.
func Space(r rune) bool { return in(r, unicode.White_Space) }
