package main

import (
	"fmt"
	"math"

	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/penstock-gateway/penstock/internal/tokens/vocab"
)

// words is a vocabulary as it is published, and how each token came to be.
type words struct {
	byID  map[uint32]string
	ids   map[string]uint32
	last  uint32 // the highest id
	split map[uint32][2]uint32
}

// read takes the ordinary tokens out of c, special ones left out, and checks
// everything that the look-ups and the encoder rest on.
func read(c *codec.Codec) (*words, error) {
	v := &words{byID: map[uint32]string{}, ids: map[string]uint32{}, split: map[uint32][2]uint32{}}
	const beyond = 1 << 18 // ids have 18 bits in the table of pairs
	for id := range uint(beyond) {
		text, err := c.Decode([]uint{id})
		if err != nil {
			continue // not an id, or a special one
		}
		if _, twice := v.ids[text]; twice || text == "" || len(text) > vocab.MaxToken {
			return nil, fmt.Errorf("token %d, %q, is empty, too long or there twice", id, text)
		}
		if n := len(text); n > 2 && text[n-1] == 0 {
			return nil, fmt.Errorf("token %d, %q, ends in NUL", id, text)
		}
		if single := len(text) == 1; single != (id < vocab.Bytes) {
			return nil, fmt.Errorf("token %d, %q: the single bytes are not the first %d", id, text, vocab.Bytes)
		}
		v.byID[uint32(id)], v.ids[text], v.last = text, uint32(id), uint32(id)
	}
	if len(v.byID) < vocab.Bytes {
		return nil, fmt.Errorf("only %d tokens", len(v.byID))
	}
	return v, v.splitAll()
}

// splitAll finds the last merge of each token. Every token must be what merging
// its own bytes arrives at, from two tokens that are older: then a piece that is
// a token needs no merging, and an encoding is right when each pair of
// neighbours is.
func (v *words) splitAll() error {
	for id := uint32(vocab.Bytes); id <= v.last; id++ {
		text, ok := v.byID[id]
		if !ok {
			continue
		}
		parts := v.merge(text, id)
		if len(parts) != 2 {
			return fmt.Errorf("token %d, %q, is not reached by merging its bytes", id, text)
		}
		v.split[id] = [2]uint32{v.ids[parts[0]], v.ids[parts[1]]}
	}
	return nil
}

// merge merges the bytes of text by all tokens below the id.
func (v *words) merge(text string, below uint32) []string {
	parts := make([]string, len(text))
	for i := range parts {
		parts[i] = text[i : i+1]
	}
	for {
		best, at := uint32(math.MaxUint32), 0
		for i := range len(parts) - 1 {
			if id, ok := v.ids[parts[i]+parts[i+1]]; ok && id < best && id < below {
				best, at = id, i
			}
		}
		if best == math.MaxUint32 {
			return parts
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
}

// shorter is the longest token that text starts with, other than itself.
func (v *words) shorter(text string) uint32 {
	for n := len(text) - 1; n > 0; n-- {
		if id, ok := v.ids[text[:n]]; ok {
			return id
		}
	}
	return vocab.None
}
