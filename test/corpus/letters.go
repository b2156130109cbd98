package corpus

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// letterKinds have pieces that are in no vocabulary, up to the whole text.
func letterKinds() []kind {
	return []kind{
		{"letters", func(s *source) string { return s.letters("abcdefghijklmnopqrstuvwxyz", 1+s.IntN(40)) }},
		{"words", func(s *source) string { return " " + s.letters("etaoinshrdlucmfwyp", 1+s.IntN(14)) }},
		{"capitals", func(s *source) string {
			return s.letters("ABCDEFGHIJKLMNOPQRSTUVWXYZ", s.IntN(6)) + s.letters("abcdefghijklmnopqrstuvwxyz", s.IntN(6)) + s.pick([]string{"", "", " ", "'s", "ǅ", "ª", "ʰ", "\u0301", "É", "é", "漢"})
		}},
		{"genome", func(s *source) string { return s.letters("ACGT", 1+s.IntN(80)) }},
		{"case", func(s *source) string {
			// What decides where a word of o200k ends.
			tables := []*unicode.RangeTable{unicode.Lu, unicode.Ll, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M}
			return s.word(tables[s.IntN(len(tables))], 1+s.IntN(3)) + s.pick([]string{"", "", "", " ", "'", "a", "B"})
		}},
	}
}

func (s *source) letters(from string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[s.IntN(len(from))]
	}
	return string(b)
}

func (s *source) word(from *unicode.RangeTable, n int) string {
	var b strings.Builder
	for range n {
		b.WriteRune(s.runeOf(from))
	}
	return b.String()
}

func vocabularyKinds() []kind {
	return []kind{
		{"tokens", func(s *source) string { return s.completed(s.pick(s.tokens)) }},
		{"glued", func(s *source) string {
			// Two tokens without the blank that would part them.
			return strings.TrimLeft(s.completed(s.pick(s.tokens)), " ") + strings.TrimLeft(s.completed(s.pick(s.tokens)), " ")
		}},
		{"broken", func(s *source) string {
			for range 64 {
				if t := s.pick(s.tokens); !utf8.ValidString(t) {
					return s.completed(t)
				}
			}
			return s.completed(s.pick(s.tokens))
		}},
	}
}

// completed returns token where it is valid UTF-8. Else it puts bytes before and after
// it that make characters of its broken ends, or returns U+FFFD where none do.
func (s *source) completed(token string) string {
	if utf8.ValidString(token) {
		return token
	}
	inner := 0
	for inner < len(token) && !utf8.RuneStart(token[inner]) {
		inner++
	}
	for range 8 {
		text := s.before(inner) + token
		for range 3 {
			if utf8.ValidString(text) {
				return text
			}
			text += s.continuation()
		}
		if utf8.ValidString(text) {
			return text
		}
	}
	return string(utf8.RuneError)
}

// before is the start of a character that ends in n continuation bytes.
func (s *source) before(n int) string {
	if n == 0 {
		return ""
	}
	length := min(3, n+s.IntN(3))
	var lead byte
	switch length {
	case 1:
		lead = byte(0xc2 + s.IntN(0x1e))
	case 2:
		lead = byte(0xe0 + s.IntN(0x10))
	default:
		lead = byte(0xf0 + s.IntN(5))
	}
	text := string([]byte{lead})
	for range length - n {
		text += s.continuation()
	}
	return text
}

func (s *source) continuation() string { return string([]byte{byte(0x80 + s.IntN(0x40))}) }
