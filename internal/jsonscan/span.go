package jsonscan

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Span is a range of byte offsets of a body, End not included. It covers a
// value as it is written: a string with its quotes. The zero Span means that
// the value is absent.
type Span struct{ Start, End int }

// IsZero tells whether the value is absent.
func (s Span) IsZero() bool { return s.End == 0 }

// Of returns the bytes of the span, not copied.
func (s Span) Of(body []byte) []byte { return body[s.Start:s.End] }

// Len is the number of bytes as written.
func (s Span) Len() int { return s.End - s.Start }

// Error says which member of a body is wrong, where, and why. Field is a path
// such as "messages[2].content[0].text", or empty where the JSON itself is
// broken. Offset counts bytes from the start of the body.
type Error struct {
	Field  string
	Offset int
	Msg    string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("cannot read JSON at byte %d: %s", e.Offset, e.Msg)
	}
	return fmt.Sprintf("cannot read the body: %s at byte %d %s", e.Field, e.Offset, e.Msg)
}

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
// have been accepted by this package. A lone surrogate becomes U+FFFD.
func AppendUnescaped(dst, body []byte, s Span) []byte {
	raw := body[s.Start+1 : s.End-1]
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		raw = raw[i:]
		if raw[1] != 'u' {
			dst = append(dst, unescapedByte(raw[1]))
			raw = raw[2:]
			continue
		}
		r, n := unescapedRune(raw)
		dst = utf8.AppendRune(dst, r)
		raw = raw[n:]
	}
}

func unescapedByte(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
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

// hex4 reads four hexadecimal digits; -1 when they are not.
func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// AppendString appends s as a JSON string with its quotes. Bytes that are not
// UTF-8 become U+FFFD. Nothing is escaped that need not be.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, s[from:i]...)
		switch {
		case c >= utf8.RuneSelf:
			dst = append(dst, "\uFFFD"...)
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i += size
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}
