package jsonscan

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, by their high bits, the bytes of w that end a plain run of a
// string: quote, backslash, control characters. Only the lowest mark is
// reliable (a borrow may set marks above it), which is the one that is used.
func special(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// stringEnd finds the end of the string whose opening quote is at open, eight
// bytes at a time, and validates it. On a flaw, end is where it is.
func stringEnd(b []byte, open int) (end int, flaw string) {
	i := open + 1
	var high uint64 // gathers the high bits: UTF-8 is checked only where there is some
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			if m := special(w); m != 0 {
				n := bits.TrailingZeros64(m) &^ 7
				high |= w & (1<<n - 1)
				i += n / 8
				break
			}
			high |= w
			i += 8
		}
		if i >= len(b) {
			return len(b), "string without an end"
		}
		switch c := b[i]; {
		case c == '"':
			if high&highs != 0 && !utf8.Valid(b[open+1:i]) {
				return invalidUTF8(b, open+1), "invalid UTF-8"
			}
			return i + 1, ""
		case c == '\\':
			n := escapeLen(b[i:])
			if n == 0 {
				return i, "invalid escape"
			}
			i += n
		case c < 0x20:
			return i, "control character in a string"
		default:
			high |= uint64(c)
			i++
		}
	}
}

func invalidUTF8(b []byte, i int) int {
	for i < len(b) {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		i += size
	}
	return i
}

// escapeLen is the length of the escape at the start of b, 0 where it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && hex4(b[2:6]) >= 0 {
			return 6
		}
	}
	return 0
}

// numberEnd finds the end of the number at i by the grammar of RFC 8259. Where
// it is not one, end is the offending byte.
func numberEnd(b []byte, i int) (end int, ok bool) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	zero := i < len(b) && b[i] == '0'
	n := digits(b, i)
	if n == i {
		return i, false
	}
	if zero && n > i+1 {
		return i + 1, false
	}
	i = n
	if i < len(b) && b[i] == '.' {
		if n = digits(b, i+1); n == i+1 {
			return n, false
		}
		i = n
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if n = digits(b, i); n == i {
			return i, false
		}
		i = n
	}
	return i, true
}

func digits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// parseInt reads a number that numberEnd accepted; ok is false where it has a
// fraction or an exponent, or leaves int64 (the lowest value included).
func parseInt(b []byte) (n int64, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := int64(c - '0')
		if n > (math.MaxInt64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if negative {
		n = -n
	}
	return n, true
}
