// Package split cuts a text into pieces as the patterns of the encodings do:
// tokens never cross from one piece into the next.
//
// No rule of a pattern looks back, so the end of a piece is a safe place to
// start anew, and each rule passes over a run of characters a few times at most,
// so that all of a text is cut in linear time. The patterns are those of
// openai/tiktoken (tiktoken_ext/openai_public.py).
package split

import (
	"unicode/utf8"

	"github.com/penstock-gateway/penstock/internal/tokens/class"
)

// Pattern is the way an encoding splits text.
type Pattern uint8

// R50k is that of p50k_base, too.
const (
	O200k Pattern = iota
	CL100k
	R50k
)

// set is a set of classes.
type set uint16

const (
	upper   set = 1 << class.Upper
	lower   set = 1 << class.Lower
	uncased set = 1 << class.Uncased
	mark    set = 1 << class.Mark
	number  set = 1 << class.Number
	space   set = 1 << class.Space
	newline set = 1 << class.Newline
	other   set = 1 << class.Other

	letters = upper | lower | uncased
	white   = space | newline
	punct   = other | mark         // [^\s\p{L}\p{N}]
	prefix  = other | mark | space // [^\r\n\p{L}\p{N}]

	upperish = upper | uncased | mark // what o200k takes at the head of a word
	lowerish = lower | uncased | mark // and behind it
)

func (s set) has(c class.Class) bool { return s>>c&1 != 0 }

// Next returns the end of the piece that begins at p, which lies within text.
// The text is valid UTF-8.
func (pattern Pattern) Next(text []byte, p int) int {
	switch pattern {
	case O200k:
		return o200k(text, p)
	case CL100k:
		return cl100k(text, p)
	default:
		return r50k(text, p)
	}
}

// at returns the class of the character at p and its length.
func at(text []byte, p int) (class.Class, int) {
	if b := text[p]; b < utf8.RuneSelf {
		return class.Of(rune(b)), 1
	}
	r, n := utf8.DecodeRune(text[p:])
	return class.Of(r), n
}

// run returns the end of the longest run of s from p on.
func run(text []byte, p int, s set) int {
	for p < len(text) {
		c, n := at(text, p)
		if !s.has(c) {
			break
		}
		p += n
	}
	return p
}

// digits returns the end of up to three numbers from p on.
func digits(text []byte, p int) int {
	for i := 0; i < 3 && p < len(text); i++ {
		c, n := at(text, p)
		if c != class.Number {
			break
		}
		p += n
	}
	return p
}

// whitespace is \s*[\r\n]+ | \s+(?!\S) | \s+ at a white character: up to the last
// newline of the run; without one, all of it at the end of the text and all but
// the last character before something else, for that character belongs to what
// follows.
func whitespace(text []byte, p int) int {
	end := run(text, p, white)
	for i := end; i > p; i-- {
		if text[i-1] == '\n' || text[i-1] == '\r' {
			return i
		}
	}
	return butLast(text, p, end)
}

// butLast is \s+(?!\S) | \s+ over the white run from p to end.
func butLast(text []byte, p, end int) int {
	if end == len(text) {
		return end
	}
	_, n := utf8.DecodeLastRune(text[p:end])
	if end-n == p {
		return end
	}
	return end - n
}

// Contraction returns the length of the contraction that text begins with, 0 for
// none: 's 't 're 've 'm 'll 'd in any case, where U+017F is an s, too.
func Contraction(text []byte) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch text[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) < 3 {
		return 0
	}
	first, second := text[1]|0x20, text[2]|0x20
	switch {
	case (first == 'r' || first == 'v') && second == 'e', first == 'l' && second == 'l':
		return 3
	case text[1] == "ſ"[0] && text[2] == "ſ"[1]:
		return 3
	}
	return 0
}
