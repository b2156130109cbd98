package main

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"unicode/utf8"
)

// input makes text that is hard on a tokenizer: n bytes, or a few less where the next
// character would not fit.
type input struct {
	name string
	make func(n int) []byte
}

// hostile inputs, each the same in every run.
func hostile() []input {
	return []input{
		{"letters, all `a`", repeated("a")},
		{"random letters", drawn("abcdefghijklmnopqrstuvwxyz")},
		{"spaces", repeated(" ")},
		{"newlines", repeated("\n")},
		{"`=`", repeated("=")},
		{"`\" \\n\"`", repeated(" \n")},
		{"CJK", runes(0x4e00, 0x9fa5)},
		{"random bytes as text", func(n int) []byte {
			return fit(bytes.ToValidUTF8(random(n), []byte("\uFFFD")), n)
		}},
		{"base64", func(n int) []byte { return []byte(base64.StdEncoding.EncodeToString(random(n)))[:n] }},
		{"digits", drawn("0123456789")},
		{"random punctuation", drawn("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")},
		{"emoji", runes(0x1f300, 0x1f6ff)},
	}
}

func source() *rand.Rand { return rand.New(rand.NewPCG(3, 3)) }

func repeated(unit string) func(int) []byte {
	return func(n int) []byte { return bytes.Repeat([]byte(unit), n/len(unit)) }
}

func drawn(alphabet string) func(int) []byte {
	return func(n int) []byte {
		r, text := source(), make([]byte, n)
		for i := range text {
			text[i] = alphabet[r.IntN(len(alphabet))]
		}
		return text
	}
}

func runes(from, to rune) func(int) []byte {
	return func(n int) []byte {
		r, text := source(), make([]byte, 0, n+utf8.UTFMax)
		for len(text) < n {
			text = utf8.AppendRune(text, from+r.Int32N(to-from+1))
		}
		return fit(text, n)
	}
}

func random(n int) []byte {
	r, text := source(), make([]byte, n)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	return text
}

// fit cuts text to at most n bytes, between characters.
func fit(text []byte, n int) []byte { return text[:whole(text, min(n, len(text)))] }
