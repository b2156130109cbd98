// Package tokenstest counts tokens slowly and in the most obvious way, so that the
// tests of the counter have something to be compared with. It knows encodings by the
// names that tiktoken uses and does not import the counter, whose own tests may
// therefore use it.
package tokenstest

import (
	"fmt"
	"math"
	"slices"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Reference counts in one encoding. It is safe for concurrent use.
type Reference struct {
	pattern pattern
	tokens  []string
	ranks   map[string]int
}

// encoding is what tiktoken publishes of one: the vocabulary, whose ids are also the
// ranks of the merges, and the pattern that splits a text.
type encoding struct {
	codec   func() *codec.Codec
	size    int // ids are below it
	hole    int // the one id below size that is a special token, or -1
	pattern pattern
}

func encodings() map[string]encoding {
	return map[string]encoding{
		"o200k_base":  {codec: codec.NewO200kBase, size: 199_998, hole: -1, pattern: o200k()},
		"cl100k_base": {codec: codec.NewCl100kBase, size: 100_256, hole: -1, pattern: cl100k()},
		"p50k_base":   {codec: codec.NewP50kBase, size: 50_281, hole: 50_256, pattern: r50k()},
		"r50k_base":   {codec: codec.NewR50kBase, size: 50_256, hole: -1, pattern: r50k()},
	}
}

// New makes the reference of an encoding, by its name in tiktoken. It takes some
// hundred milliseconds and tens of megabytes: make one for a whole test.
func New(name string) (*Reference, error) {
	e, ok := encodings()[name]
	if !ok {
		return nil, fmt.Errorf("cannot count with encoding %q: unknown", name)
	}
	r := &Reference{pattern: e.pattern, tokens: make([]string, e.size), ranks: make(map[string]int, e.size)}
	c := e.codec()
	for id := range r.tokens {
		if id == e.hole {
			continue
		}
		token, err := c.Decode([]uint{uint(id)})
		if err != nil {
			return nil, fmt.Errorf("cannot read the vocabulary of %s: %w", name, err)
		}
		r.tokens[id] = token
		r.ranks[token] = id
	}
	return r, nil
}

// Vocabulary returns the bytes of each token, by id. A special token's id has none.
// The caller must not change it.
func (r *Reference) Vocabulary() []string { return r.tokens }

// Count returns the number of tokens of text. Each byte that is not UTF-8 counts as
// one U+FFFD.
func (r *Reference) Count(text []byte) int {
	n := 0
	for _, piece := range r.Pieces(text) {
		n += len(r.encodePiece(piece))
	}
	return n
}

// Encode returns the ids of text's tokens.
func (r *Reference) Encode(text []byte) []int {
	var ids []int
	for _, piece := range r.Pieces(text) {
		for _, token := range r.encodePiece(piece) {
			ids = append(ids, r.ranks[token])
		}
	}
	return ids
}

// Pieces returns what the encoding's pattern splits text into.
func (r *Reference) Pieces(text []byte) []string {
	runes := []rune(string(text))
	var pieces []string
	for at := 0; at < len(runes); {
		end := r.pattern.match(runes, at)
		pieces = append(pieces, string(runes[at:end]))
		at = end
	}
	return pieces
}

// encodePiece takes the short way where a piece is a token: each token is what its
// own bytes merge into.
func (r *Reference) encodePiece(piece string) []string {
	if _, ok := r.ranks[piece]; ok {
		return []string{piece}
	}
	return r.merge(piece)
}

const unmergeable = math.MaxInt

// merge is byte-pair encoding: from single bytes, merge the adjacent pair of the
// lowest rank, the leftmost of equals, until no pair is a token.
func (r *Reference) merge(piece string) []string {
	// Part i is piece[starts[i]:starts[i+1]]; pairs[i] is the rank of parts i and i+1
	// merged, kept because only two change in a merge.
	starts := make([]int, len(piece)+1)
	for i := range starts {
		starts[i] = i
	}
	rank := func(i int) int {
		if id, ok := r.ranks[piece[starts[i]:starts[i+2]]]; ok {
			return id
		}
		return unmergeable
	}
	pairs := make([]int, len(piece)-1)
	for i := range pairs {
		pairs[i] = rank(i)
	}
	for len(pairs) > 0 {
		lowest := 0
		for i, p := range pairs {
			if p < pairs[lowest] {
				lowest = i
			}
		}
		if pairs[lowest] == unmergeable {
			break
		}
		starts = slices.Delete(starts, lowest+1, lowest+2)
		pairs = slices.Delete(pairs, lowest, lowest+1)
		if lowest < len(pairs) {
			pairs[lowest] = rank(lowest)
		}
		if lowest > 0 {
			pairs[lowest-1] = rank(lowest - 1)
		}
	}
	tokens := make([]string, len(starts)-1)
	for i := range tokens {
		tokens[i] = piece[starts[i]:starts[i+1]]
	}
	return tokens
}
