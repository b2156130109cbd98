package main

import (
	"iter"
	"unicode/utf8"

	"github.com/penstock-gateway/penstock/internal/tokens"
	"github.com/penstock-gateway/penstock/test/corpus"
)

// batch is as many texts as are asked for at a time. It makes them when they are
// needed, so that a queue of batches is small.
type batch struct {
	suite    suite
	encoding tokens.Encoding
	texts    func() [][]byte
	origin   func(i int) string // what text i is, for whoever has to repeat it
}

type suite int

const (
	stringsSuite suite = iota
	codePointsSuite
	combinationsSuite
)

func (s suite) String() string { return [...]string{"strings", "code-points", "combinations"}[s] }

const (
	textsPerBatch      = 1000
	joinedTexts        = 200
	codePointsPerBatch = 256
)

// stringBatches are n texts of the corpus from a seed on, and in each batch some of
// its texts once more as one text of many kilobytes.
func stringBatches(e tokens.Encoding, c *corpus.Corpus, seed uint64, n int) iter.Seq[batch] {
	return func(yield func(batch) bool) {
		for first := 0; first < n; first += textsPerBatch {
			b := stringBatch(e, c, seed+uint64(first), min(textsPerBatch, n-first))
			if !yield(b) {
				return
			}
		}
	}
}

func stringBatch(e tokens.Encoding, c *corpus.Corpus, seed uint64, n int) batch {
	return batch{
		suite:    stringsSuite,
		encoding: e,
		texts: func() [][]byte {
			texts := make([][]byte, 0, n+1)
			var joined []byte
			for i := range uint64(n) {
				text := c.Text(seed + i)
				texts = append(texts, text)
				if i < joinedTexts {
					joined = append(joined, text...)
				}
			}
			return append(texts, joined)
		},
		origin: func(i int) string {
			if i == n {
				return sprintf("texts from -seed %d on, joined", seed)
			}
			return sprintf("%s, -seed %d", c.Kind(seed+uint64(i)), seed+uint64(i))
		},
	}
}

// A context is what a code point stands in: "·" is the code point.
const placeholder = '·'

// contexts has one text for each way that a pattern can look at a code point. They are
// asked for one by one: in a longer text a token too many in one place could make up
// for one too few in another.
func contexts() []string {
	return []string{
		"·", "··a", // alone, twice
		"a·", "A·", "漢·", "·a", "·Ab", "a·a", "A·b", "·\u0301", // beside letters and a mark
		" ·", " ·a", "· a", "\n·", "·\n", "·/\n", // beside white space
		"12·", "1·23", "·123", // beside digits: 23 and 123 are tokens
		"·'s", "!·'s", "x'·", // beside punctuation: 's is a contraction only after a word or number
	}
}

// codePointBatches are all code points, each in each context.
func codePointBatches(e tokens.Encoding) iter.Seq[batch] {
	return func(yield func(batch) bool) {
		for first := rune(0); first <= utf8.MaxRune; first += codePointsPerBatch {
			if !yield(codePointBatch(e, first)) {
				return
			}
		}
	}
}

func codePointBatch(e tokens.Encoding, first rune) batch {
	around := contexts()
	return batch{
		suite:    codePointsSuite,
		encoding: e,
		texts: func() [][]byte {
			texts := make([][]byte, 0, codePointsPerBatch*len(around))
			for c := first; c < first+codePointsPerBatch; c++ {
				if !utf8.ValidRune(c) {
					return texts // surrogates fill whole batches
				}
				for _, context := range around {
					texts = append(texts, inContext(context, c))
				}
			}
			return texts
		},
		origin: func(i int) string {
			return sprintf("U+%04X in %q", first+rune(i/len(around)), around[i%len(around)])
		},
	}
}

func inContext(context string, c rune) []byte {
	text := make([]byte, 0, 16)
	for _, r := range context {
		if r == placeholder {
			r = c
		}
		text = utf8.AppendRune(text, r)
	}
	return text
}
