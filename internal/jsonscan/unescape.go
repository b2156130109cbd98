package jsonscan

import (
	"bytes"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Unescaped returns the text of the string at s. Where nothing is escaped that
// is a view of body; otherwise the text is written into *buf, which is grown as
// needed and overwritten by the next call.
func Unescaped(body []byte, s Span, buf *[]byte) []byte {
	raw := body[s.Start+1 : s.End-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	*buf = AppendUnescaped((*buf)[:0], body, s)
	return *buf
}

// AppendUnescaped appends the text of the string at s to dst. The string must
// have been accepted by this package. A lone surrogate becomes U+FFFD. What is
// behind the text, within the capacity of dst, may be overwritten.
func AppendUnescaped(dst, body []byte, s Span) []byte {
	raw := body[s.Start+1 : s.End-1]
	plain := bytes.IndexByte(raw, '\\')
	if plain < 0 {
		return append(dst, raw...)
	}
	dst = append(slices.Grow(dst, len(raw)), raw[:plain]...)
	if raw = raw[plain:]; len(raw) >= 2*block {
		dst, raw = unescapeBlocks(dst, raw, body[s.Start+1+plain:])
	}
	for len(raw) > 0 {
		switch {
		case raw[0] != '\\':
			dst = append(dst, raw[0])
			raw = raw[1:]
		case raw[1] != 'u':
			dst = append(dst, unescaped[raw[1]])
			raw = raw[2:]
		default:
			r, n := unescapedRune(raw)
			dst = utf8.AppendRune(dst, r)
			raw = raw[n:]
		}
	}
	return dst
}

// room is what a step of unescapeBlocks reads and writes at most, from the start
// of its block and of its output.
const room = 192

// unescapeBlocks unescapes raw as far as p, which begins with raw, goes on
// behind it. Each run up to an escape, and the last one, is copied as a whole
// block, which needs no branch on its length; the next step overwrites what is
// too much.
func unescapeBlocks(dst, raw, p []byte) (text, rest []byte) {
	dst = slices.Grow(dst, len(raw)+room)
	done := len(dst)
	dst = dst[:cap(dst)]
	for len(raw) > 0 && len(p) >= room && len(dst)-done >= room {
		in, out := (*[room]byte)(p), (*[room]byte)(dst[done:])
		size := min(block, len(raw))
		mask := backslashes(in) & upTo(size)
		if mask == 0 { // escapes are rare here: go to the next one at once
			n := bytes.IndexByte(raw, '\\')
			if n < 0 {
				n = len(raw)
			}
			copy(dst[done:], raw[:n])
			raw, p, done = raw[n:], p[n:], done+n
			continue
		}
		from, to := 0, 0
		for mask != 0 {
			k := bits.TrailingZeros64(mask) & 63
			copyBlock(out, to, in, from)
			to += k - from
			if c := unescaped[in[k+1]]; c != 0 {
				out[to&127] = c
				from, to = k+2, to+1
				mask &^= 3 << k
				continue
			}
			// Where every character is escaped, nothing stands between them.
			for from = k; from < size && in[from] == '\\' && in[from+1] == 'u'; {
				r, n := unescapedRune(raw[from:])
				from, to = from+n, to+utf8.EncodeRune(out[to&127:], r)
			}
			mask &^= upTo(from)
		}
		if from < size {
			copyBlock(out, to, in, from)
			from, to = size, to+size-from
		}
		raw, p, done = raw[from:], p[from:], done+to
	}
	return dst[:done], raw
}

// copyBlock copies 64 bytes. Offsets are at most a block and an escape: the
// masks only tell the compiler so.
func copyBlock(out *[room]byte, to int, in *[room]byte, from int) {
	*(*[block]byte)(out[to&127:]) = *(*[block]byte)(in[from&127:])
}

// unescapedRune reads \uXXXX, or a pair of them, at the start of raw and tells
// how many bytes it took. A surrogate without its partner is U+FFFD, and what
// follows it is read on its own.
func unescapedRune(raw []byte) (r rune, size int) {
	r = hex4(raw[2:6])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(raw[8:12])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}
