package corpus

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// oddKinds are the texts that patterns and tables get wrong.
func oddKinds() []kind {
	return []kind{
		{"ascii", func(s *source) string { return string(rune(0x20 + s.IntN(0x5f))) }},
		{"spaces", func(s *source) string {
			return s.space() + s.pick([]string{"", "", "", "x", "Word", "7", "!", "é", "'s"})
		}},
		{"newlines", func(s *source) string {
			return s.pick([]string{"\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\n\n    ", "\t\n", "\n/", "?\n", "/\n//", ";\r\n\r\n", "\u0085\n", "\n\u2028"}) + s.pick([]string{"", "", "a", " b", "C", "1", "."})
		}},
		{"digits", func(s *source) string {
			return s.digits() + s.pick([]string{"", " ", ".", ",", "²", "a", "A", "é", "\n", "½", "'s", "٣", "Ⅷ", "一", "-"})
		}},
		{"contractions", func(s *source) string {
			before := s.pick([]string{"", " ", "a", "It", "WE", "é", "ß", "漢", "ª", "\u0301", "e\u0301", "1", "!", "я", "Я", "ǅ", "'", "\n"})
			return before + s.contraction() + s.pick([]string{"", "", " ", "x", "X", "store", "ſ", "é", "1", "'", "\n"})
		}},
		{"emoji", func(s *source) string { return s.pick(emoji) + s.pick([]string{"", "", " ", "a", "!", "\n"}) }},
		{"specials", func(s *source) string {
			return s.pick([]string{"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|endofprompt|>", "<|im_sep|>", "<|", "|>", "<|endoftext", "endoftext|>", "<|ENDOFTEXT|>"}) +
				s.pick([]string{"", "", " ", "\n", "user", "system\n", "x"})
		}},
		{"marks", func(s *source) string {
			return s.pick([]string{"", "a", "E", "1", " ", "!", "漢", "ʰ", "\n", "ﷺ"}) + strings.Repeat(string(s.runeOf(unicode.M)), 1+s.IntN(3))
		}},
		{"run", func(s *source) string {
			return strings.Repeat(s.pick([]string{" ", "a", "A", "=", "-", "\n", "0", ".", "_", "é", "漢", "\t", "ab", "\u0301", "/", "'", "😀", " \n", "#", "*", "\u00a0", "ʰ", "\r\n", "|"}), 1+s.IntN(90))
		}},
		{"controls", func(s *source) string {
			return s.pick([]string{"\x00", "\x00\x00", "\x01", "\x07", "\x1b[0m", "\x7f", "\u0080", "\u009f", "\x0b", "\x0c", "\x1c", "\x1f", "-\x00", "a\x00", "\x00b", "the\x00"}) + s.pick([]string{"", "", " ", "word", "1", "\n"})
		}},
		{"punctuation", func(s *source) string {
			return s.pick([]string{".", ",", "();", "{}", "=>", "!=", "//", "/*", "'", "\"", "``", "--", "...", "_", "$", "%", "\\", "~", "^", "@", "#", "+=", "«", "—", "…", "€", "™", "©", "→", "】", "¿", "\u200b", "\ufeff", "\u00ad", "\ue000", "\U000f0000"}) + s.pick([]string{"", "", "", " ", "\n", "/", "a"})
		}},
		{"classes", (*source).oneOfAClass},
		{"any", func(s *source) string { return string(s.anyRune()) }},
		{"edge", func(s *source) string {
			// Something else right after a word of about the width of a load.
			return s.pick([]string{"", " "}) + s.letters("abcdefghijklmnopqrstuvwxyz", 1+s.IntN(18)) + string(s.anyRune())
		}},
	}
}

var spaces = []string{" ", "  ", "   ", "    ", "        ", "\t", "\t\t", "\n", "\r\n", "\r", "\v", "\f", "\u0085", "\u00a0", "\u1680", "\u2002", "\u2009", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff", "\u200b", "\u180e", "\u2060"}

// space is white space, and what only looks like it.
func (s *source) space() string {
	var b strings.Builder
	for range 1 + s.IntN(4) {
		b.WriteString(s.pick(spaces))
	}
	return b.String()
}

func (s *source) digits() string {
	if s.oneIn(8) {
		var b strings.Builder
		for range 1 + s.IntN(5) {
			b.WriteRune(s.runeOf(unicode.N))
		}
		return b.String()
	}
	return s.letters("0123456789", 1+s.IntN(1+s.IntN(12)))
}

func (s *source) contraction() string {
	return s.pick([]string{"'", "'", "'", "'", "’", "''"}) +
		s.pick([]string{"s", "t", "re", "ve", "m", "ll", "d", "S", "T", "RE", "VE", "M", "LL", "D", "Re", "rE", "vE", "Ve", "lL", "Ll", "ſ", "l", "r", "v", "st", "K"})
}

var emoji = []string{
	"😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇯🇵🇺🇸", "1️⃣", "#️⃣", "❤️", "☕", "👩🏿‍💻", "🧑‍🚀", "✈️", "🫠", "🪿", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "⌚️", "🇦", "🏻", "\u200d", "\ufe0f", "©️", "🤷‍♀️", "🥹🥹🥹",
}

func classTables() []*unicode.RangeTable {
	return []*unicode.RangeTable{
		unicode.Lu, unicode.Lt, unicode.Ll, unicode.Lm, unicode.Lo, unicode.Mn, unicode.Mc, unicode.Me, unicode.Nd, unicode.Nl, unicode.No,
		unicode.P, unicode.S, unicode.White_Space, unicode.Cc, unicode.Cf, unicode.Co,
	}
}

// oneOfAClass is one character: each class as often as the others, and ASCII as often
// as all the rest.
func (s *source) oneOfAClass() string {
	if s.oneIn(2) {
		return s.pick([]string{"a", "z", "A", "Z", "0", "9", " ", "\n", "\r", "\t", "'", "/", ".", "_", "s", "ll", "\x00"})
	}
	tables := classTables()
	return string(s.runeOf(tables[s.IntN(len(tables))]))
}

// runeOf is a character of a table, each range as often as the others, so that the
// large blocks do not drown the rest.
func (s *source) runeOf(t *unicode.RangeTable) rune {
	at := s.IntN(len(t.R16) + len(t.R32))
	var low, high, stride uint32
	if at < len(t.R16) {
		r := t.R16[at]
		low, high, stride = uint32(r.Lo), uint32(r.Hi), uint32(r.Stride)
	} else {
		r := t.R32[at-len(t.R16)]
		low, high, stride = r.Lo, r.Hi, r.Stride
	}
	return rune(low + stride*uint32(s.IntN(int((high-low)/stride)+1)))
}

// anyRune is any character at all, the first planes more often.
func (s *source) anyRune() rune {
	for {
		r := rune(s.IntN([...]int{0x80, 0x80, 0x250, 0x3100, 0x10000, 0x20000, utf8.MaxRune + 1}[s.IntN(7)]))
		if utf8.ValidRune(r) {
			return r
		}
	}
}
