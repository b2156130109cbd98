// Package bpe merges the bytes of a piece into tokens as byte-pair encoding
// does, in linear time.
//
// A word is merged in the textbook's way. For a longer piece two facts about these
// vocabularies, which vocab/compile checks, allow a faster one: an encoding is
// right exactly when each two neighbours in it are compatible, and the encoding
// of each prefix of a text is unique. So tokens are laid down from the left, the
// longest that fits first; where none fits, the place is marked dead for good and
// the last token is exchanged for a shorter one.
package bpe

import (
	"runtime"

	"github.com/penstock-gateway/penstock/internal/tokens/vocab"
)

const (
	// window is how many bytes are encoded at a time, so that the memory for a
	// piece of any length is small.
	window = 4096
	// margin is what is encoded anew behind a window: what follows a text can
	// change its last tokens.
	margin = vocab.MaxToken
	// 1<<memoBits is the number of pairs of tokens that are remembered as compatible
	// or not: a run of one character has few pairs, each asked for many times.
	memoBits = 11
)

// Encoder counts the tokens of pieces. It is memory to work with and not safe
// for concurrent use.
type Encoder struct {
	table *vocab.Table
	ids   []uint32
	dead  []uint64
	memo  [1 << memoBits]uint64
	lanes [Lanes]parts
	size  int // of the window, for tests
}

// New makes an Encoder for a vocabulary.
func New(table *vocab.Table) *Encoder { return NewWindows(table, window) }

// NewWindows makes an Encoder whose windows are of size bytes, for tests.
func NewWindows(table *vocab.Table, size int) *Encoder { return &Encoder{table: table, size: size} }

// Count returns the number of tokens of a piece, which is not empty.
func (e *Encoder) Count(piece []byte) int {
	if len(piece) <= short && piece[len(piece)-1] != 0 {
		return e.CountWords([]Word{wordOf(piece)})[0]
	}
	for size := e.size; ; size *= 4 {
		if n, ok := e.windows(piece, size); ok {
			return n
		}
		// The tokens that a window had kept were not how the piece goes on. That is
		// rare, and a larger window ends it: one of the whole piece cannot fail.
	}
}

// windows counts with windows of a size. Each window goes on behind the last
// token that was kept, with a token that is compatible with it; as all
// neighbours are, the whole is the encoding.
func (e *Encoder) windows(piece []byte, size int) (n int, ok bool) {
	last := vocab.None
	for {
		runtime.Gosched() // a window may take a quarter of a millisecond
		end := min(size, len(piece))
		if !e.encode(piece[:end], last) {
			return 0, false
		}
		if end == len(piece) {
			return n + len(e.ids), true
		}
		kept, at := 0, 0
		for _, id := range e.ids {
			length := e.table.Len(id)
			if at+length > end-margin {
				break
			}
			at += length
			last = id
			kept++
		}
		if kept == 0 {
			return 0, false
		}
		n += kept
		piece = piece[at:]
	}
}

// encode lays tokens over the whole of text into e.ids, the first of them
// compatible with before unless that is None. It returns false where that cannot
// be done.
func (e *Encoder) encode(text []byte, before uint32) bool {
	t := e.table
	e.ids = e.ids[:0]
	if need := len(text)/64 + 1; need > len(e.dead) {
		e.dead = make([]uint64, need)
	} else {
		clear(e.dead[:need])
	}
	at, last := 0, before
	next := t.Longest(text)
	for {
		for next != vocab.None {
			end := at + t.Len(next)
			if e.dead[end/64]>>(end%64)&1 == 0 && (last == vocab.None || e.compatible(last, next)) {
				break
			}
			next = t.Shorter(next)
		}
		if next != vocab.None {
			e.ids = append(e.ids, next)
			at += t.Len(next)
			if at == len(text) {
				return true
			}
			last, next = next, t.Longest(text[at:])
			continue
		}
		if len(e.ids) == 0 {
			return false
		}
		e.dead[at/64] |= 1 << (at % 64)
		at -= t.Len(last)
		next = t.Shorter(last)
		e.ids = e.ids[:len(e.ids)-1]
		if last = before; len(e.ids) > 0 {
			last = e.ids[len(e.ids)-1]
		}
	}
}

// compatible is vocab.Table.Compatible, remembered.
func (e *Encoder) compatible(left, right uint32) bool {
	const known, yes = 1 << 63, 1 << 62
	key := uint64(left)<<18 | uint64(right) | known
	m := &e.memo[vocab.Hash1(key)>>(64-memoBits)]
	if *m&^yes != key {
		*m = key
		if e.table.Compatible(left, right) {
			*m |= yes
		}
	}
	return *m&yes != 0
}
