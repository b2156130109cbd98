package jsonscan

import (
	"bytes"
	"fmt"
)

// Kind is what a value turns out to be by its first byte.
type Kind uint8

// Invalid is what stands at the end of the input, after an error, or where no
// value begins.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// DefaultMaxDepth is how deep arrays and objects may be nested unless a caller
// says otherwise.
const DefaultMaxDepth = 64

// Scanner walks over one JSON text. The first error stays: from then on there
// are no more members, elements or values, so that loops end by themselves and
// Err is looked at once, at the end.
//
// An object is read by Object, then Key until it returns false, and after each
// key exactly one value; an array by Array, then More before each value.
type Scanner struct {
	body     []byte
	pos      int
	depth    int
	maxDepth int
	open     bool // the last token was '{' or '[': no comma comes before what follows
	err      *Error
}

// NewScanner starts at the beginning of body, which must not change while it
// is read. A maxDepth of 0 is DefaultMaxDepth.
func NewScanner(body []byte, maxDepth int) Scanner {
	if maxDepth == 0 {
		maxDepth = DefaultMaxDepth
	}
	return Scanner{body: body, maxDepth: maxDepth}
}

// Err is the first error, of type *Error, or nil.
func (s *Scanner) Err() error {
	if s.err == nil {
		return nil
	}
	return s.err
}

func (s *Scanner) fail(field string, offset int, format string, args ...any) {
	if s.err == nil {
		s.err = &Error{Field: field, Offset: offset, Msg: fmt.Sprintf(format, args...)}
	}
	s.pos = len(s.body)
}

func (s *Scanner) space() {
	for s.pos < len(s.body) {
		switch s.body[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}

// Peek tells what the next value is, without taking it.
func (s *Scanner) Peek() Kind {
	s.space()
	if s.pos >= len(s.body) {
		return Invalid
	}
	switch c := s.body[s.pos]; c {
	case '"':
		return String
	case '{':
		return Object
	case '[':
		return Array
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return Number
		}
	}
	return Invalid
}

// Object takes '{'.
func (s *Scanner) Object() { s.enter('{', "an object") }

// Array takes '['.
func (s *Scanner) Array() { s.enter('[', "an array") }

func (s *Scanner) enter(bracket byte, what string) {
	s.space()
	if s.pos >= len(s.body) || s.body[s.pos] != bracket {
		s.unexpected(what)
		return
	}
	if s.depth++; s.depth > s.maxDepth {
		s.fail("", s.pos, "nested deeper than %d levels", s.maxDepth)
		return
	}
	s.pos++
	s.open = true
}

// Key takes the next member's key and its colon and returns the key unescaped;
// it is a view of the body unless something in it was escaped. At the end of
// the object, or after an error, ok is false.
func (s *Scanner) Key() (key []byte, ok bool) {
	span := s.keySpan()
	if span.IsZero() {
		return nil, false
	}
	raw := s.body[span.Start+1 : span.End-1]
	if bytes.IndexByte(raw, '\\') >= 0 {
		return AppendUnescaped(nil, s.body, span), true
	}
	return raw, true
}

func (s *Scanner) keySpan() Span {
	if !s.next('}', "a comma or '}'") {
		return Span{}
	}
	if s.pos >= len(s.body) || s.body[s.pos] != '"' {
		s.unexpected("a key")
		return Span{}
	}
	span := s.String()
	s.space()
	if s.pos >= len(s.body) || s.body[s.pos] != ':' {
		s.unexpected("a colon")
		return Span{}
	}
	s.pos++
	return span
}

// More tells whether the array has another element, which is then next.
func (s *Scanner) More() bool { return s.next(']', "a comma or ']'") }

// next takes the comma before a further member or element, or the closing
// bracket.
func (s *Scanner) next(closing byte, what string) bool {
	if s.err != nil {
		return false
	}
	s.space()
	switch {
	case s.pos >= len(s.body):
		s.unexpected(what)
		return false
	case s.open:
		s.open = false
		if s.body[s.pos] != closing {
			return true
		}
	case s.body[s.pos] == ',':
		s.pos++
		s.space()
		return true
	case s.body[s.pos] != closing:
		s.unexpected(what)
		return false
	}
	s.pos++
	s.depth--
	return false
}

// String takes a string.
func (s *Scanner) String() Span {
	s.space()
	start := s.pos
	if start >= len(s.body) || s.body[start] != '"' {
		s.unexpected("a string")
		return Span{}
	}
	end, flaw := stringEnd(s.body, start)
	if flaw != "" {
		s.fail("", end, "%s", flaw)
		return Span{}
	}
	s.pos, s.open = end, false
	return Span{start, end}
}

// Int takes a number; ok is false where it is not written as an integer or
// does not fit.
func (s *Scanner) Int() (n int64, ok bool) {
	s.space()
	span := s.number()
	if s.err != nil {
		return 0, false
	}
	return parseInt(span.Of(s.body))
}

// True takes true or false.
func (s *Scanner) True() bool {
	span := s.Skip()
	return span.Len() == len("true")
}

// Skip takes the next value, whatever it is, and validates all of it.
func (s *Scanner) Skip() Span {
	kind := s.Peek()
	start := s.pos
	switch kind {
	case String:
		return s.String()
	case Number:
		return s.number()
	case Bool, Null:
		s.literal()
	case Object:
		s.Object()
		for !s.keySpan().IsZero() {
			s.Skip()
		}
	case Array:
		s.Array()
		for s.More() {
			s.Skip()
		}
	default:
		s.unexpected("a value")
	}
	if s.err != nil {
		return Span{}
	}
	return Span{start, s.pos}
}

// End checks that nothing but white space is left.
func (s *Scanner) End() {
	s.space()
	if s.err == nil && s.pos < len(s.body) {
		s.fail("", s.pos, "unexpected data after the value")
	}
}

func (s *Scanner) literal() {
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.body[s.pos:], []byte(word)) {
			s.pos += len(word)
			s.open = false
			return
		}
	}
	s.unexpected("a value")
}

func (s *Scanner) number() Span {
	end, ok := numberEnd(s.body, s.pos)
	if !ok {
		s.fail("", end, "invalid number")
		return Span{}
	}
	span := Span{s.pos, end}
	s.pos, s.open = end, false
	return span
}

func (s *Scanner) unexpected(wanted string) {
	if s.pos >= len(s.body) {
		s.fail("", s.pos, "unexpected end, wanted %s", wanted)
		return
	}
	s.fail("", s.pos, "unexpected character %q, wanted %s", s.body[s.pos], wanted)
}

// Seek goes to the start of a value that was skipped before, to read it after
// all. What follows the value must not be read.
func (s *Scanner) Seek(start int) { s.pos, s.open = start, false }
