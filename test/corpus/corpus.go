// Package corpus makes texts of every kind that a counter of tokens may meet: the same
// seed always gives the same text, and every text is valid UTF-8.
package corpus

import (
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

// Corpus makes texts. It is safe for concurrent use.
type Corpus struct {
	tokens    []string
	languages []language
	kinds     []kind
}

// kind is a sort of text, made of units in a row.
type kind struct {
	name string
	unit func(*source) string
}

// source is what a unit is made from.
type source struct {
	*rand.Rand
	tokens    []string
	languages []language
}

// New makes a Corpus. The vocabulary (the bytes of the tokens, some of which are not
// valid UTF-8 on their own) is for the kinds of text that put tokens in a row; without
// one there are no such kinds.
func New(vocabulary []string) *Corpus {
	c := &Corpus{
		tokens:    slices.DeleteFunc(slices.Clone(vocabulary), func(t string) bool { return t == "" }),
		languages: languages(),
	}
	c.kinds = slices.Concat(proseKinds(c.languages), codeKinds(), formatKinds(), oddKinds(), letterKinds())
	if len(c.tokens) > 0 {
		c.kinds = append(c.kinds, vocabularyKinds()...)
	}
	pure := c.kinds
	c.kinds = append(c.kinds, kind{"mix", func(s *source) string {
		k := pure[s.IntN(len(pure))]
		var b strings.Builder
		for range 1 + s.IntN(3) {
			b.WriteString(k.unit(s))
		}
		return b.String()
	}})
	return c
}

// Kinds is the number of kinds: as many consecutive seeds give one text of each.
func (c *Corpus) Kinds() int { return len(c.kinds) }

// Kind names the kind of the text of a seed.
func (c *Corpus) Kind(seed uint64) string { return c.kinds[seed%uint64(len(c.kinds))].name }

// Text makes the text of a seed: from nothing to some kilobytes, mostly below 200
// bytes. One text in four is damaged after it was made, still valid UTF-8.
func (c *Corpus) Text(seed uint64) []byte {
	s := &source{Rand: rand.New(rand.NewPCG(seed, mix(seed))), tokens: c.tokens, languages: c.languages}
	size := s.size()
	text := make([]byte, 0, size+64)
	k := c.kinds[seed%uint64(len(c.kinds))]
	for len(text) < size {
		text = append(text, k.unit(s)...)
	}
	text = cut(text, size)
	if s.oneIn(4) {
		text = s.damage(text)
	}
	return text
}

// mix makes the random numbers of neighbouring seeds unlike.
func mix(seed uint64) uint64 {
	seed = (seed ^ seed>>31) * 0x9e3779b97f4a7c15
	return seed ^ seed>>29
}

// size is a length in bytes. A fast path has margins at the widths of its loads and
// before the end of a text, so half the lengths are just around those.
func (s *source) size() int {
	switch n := s.IntN(200); {
	case n == 0:
		return 1000 + s.IntN(5000)
	case n < 100:
		return [...]int{8, 16, 32, 40, 48, 64, 72, 80, 128}[s.IntN(9)] - 3 + s.IntN(7)
	case n < 130:
		return s.IntN(24)
	}
	return s.IntN(200)
}

// cut shortens text to size bytes, or a few less where that would split a character.
func cut(text []byte, size int) []byte {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

// damage changes a few characters: what a pattern makes of a text depends on single
// ones, and the generators know only some neighbours.
func (s *source) damage(text []byte) []byte {
	runes := []rune(string(text))
	for range 1 + s.IntN(4) {
		at := s.IntN(len(runes) + 1)
		end := min(len(runes), at+s.IntN(4))
		switch s.IntN(5) {
		case 0: // leave out
			runes = slices.Delete(runes, at, end)
		case 1: // put in
			runes = slices.Insert(runes, at, s.anyRune())
		case 2: // replace
			runes = slices.Replace(runes, at, end, s.anyRune())
		case 3: // repeat
			runes = slices.Insert(runes, at, slices.Clone(runes[at:end])...)
		case 4: // the other case
			copy(runes[at:end], []rune(strings.ToUpper(string(runes[at:end]))))
		}
	}
	return []byte(string(runes))
}

func (s *source) oneIn(n int) bool { return s.IntN(n) == 0 }

func (s *source) pick(from []string) string { return from[s.IntN(len(from))] }
