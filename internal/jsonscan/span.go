package jsonscan

import (
	"fmt"
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
