package jsonscan

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"
)

// stringEnd finds the end of the string whose opening quote is at open and
// validates it. On a flaw, end is where it is.
func stringEnd(b []byte, open int) (end int, flaw string) {
	p := b[open+1:]
	if n := shortLen(p); n >= 0 {
		return open + 1 + n + 1, ""
	}
	p, high := skipPlain(p)
	for len(p) > 0 {
		switch c := p[0]; {
		case c == '"':
			end = len(b) - len(p)
			if high&highs != 0 && !utf8.Valid(b[open+1:end]) {
				return invalidUTF8(b, open+1), "invalid UTF-8"
			}
			return end + 1, ""
		case c == '\\':
			n := escapeLen(p)
			if n == 0 {
				return len(b) - len(p), "invalid escape"
			}
			p = p[n:]
		case c < 0x20:
			return len(b) - len(p), "control character in a string"
		default:
			high |= uint64(c)
			p = p[1:]
		}
	}
	return len(b), "string without an end"
}

// shortLen is for keys and words: the length of a string of ASCII without
// escapes that ends within two words, otherwise -1.
func shortLen(p []byte) int {
	for i := 0; i < 16 && i+8 <= len(p); i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		if m := isSpecial(w); m != 0 {
			n := i + bits.TrailingZeros64(m)/8
			if p[n] != '"' || w&highs != 0 {
				return -1
			}
			return n
		}
		if w&highs != 0 {
			return -1
		}
	}
	return -1
}

// skipPlain goes over plain bytes and sound escapes, block by block, and stops
// at anything else or where the input is about to end. The high bits of what it
// has seen, and perhaps of a few bytes behind it, are gathered in high.
func skipPlain(p []byte) (rest []byte, high uint64) {
	for len(p) >= ahead {
		b := (*[ahead]byte)(p)
		mask, all := specials(b)
		high |= all
		next := block
		for mask != 0 {
			k := bits.TrailingZeros64(mask) & 63
			if b[k] != '\\' {
				return p[k:], high
			}
			if unescaped[b[k+1]] != 0 {
				mask &^= 3 << k
				next = max(block, k+2)
				continue
			}
			n := escapeLen(p[k:])
			if n == 0 {
				return p[k:], high
			}
			mask &^= upTo(k + n)
			next = max(block, k+n)
		}
		p = p[next:]
	}
	return p, high
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

// unescaped is what the letter behind a backslash stands for; 0 where it stands
// for nothing, or begins a longer escape.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escapeLen is the length of the escape at the start of b, 0 where it is none.
func escapeLen(b []byte) int {
	switch {
	case len(b) >= 6 && b[1] == 'u' && hex4(b[2:6]) >= 0:
		return 6
	case len(b) >= 2 && unescaped[b[1]] != 0:
		return 2
	}
	return 0
}

// notHex marks the digits of hexDigits that are none.
const notHex = 0x10

// hexDigits is what hexadecimal digits stand for.
var hexDigits = func() (digits [256]byte) {
	for i := range digits {
		digits[i] = notHex
	}
	for i := range byte(16) {
		digits["0123456789abcdef"[i]], digits["0123456789ABCDEF"[i]] = i, i
	}
	return digits
}()

// hex4 reads four hexadecimal digits; -1 when they are not.
func hex4(b []byte) rune {
	_ = b[3]
	w, x, y, z := hexDigits[b[0]], hexDigits[b[1]], hexDigits[b[2]], hexDigits[b[3]]
	if (w|x|y|z)&notHex != 0 {
		return -1
	}
	return rune(w)<<12 | rune(x)<<8 | rune(y)<<4 | rune(z)
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
