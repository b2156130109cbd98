// Package tokens counts the tokens of a text exactly as OpenAI's encodings do,
// at the speed of memory rather than of regular expressions.
//
// "Exactly" is the length of tiktoken's encode_ordinary: a special token such
// as <|endoftext|> that somebody typed is plain text. See DESIGN.md for how it
// works and what it rests on.
package tokens

import (
	"fmt"
	"runtime"
	"unicode/utf8"

	"github.com/penstock-gateway/penstock/internal/tokens/bpe"
	"github.com/penstock-gateway/penstock/internal/tokens/split"
	"github.com/penstock-gateway/penstock/internal/tokens/vocab"
)

// What a chat request costs beside its texts, in tokens. The texts are each
// message's role, name and content, counted one by one.
const (
	PerMessage = 3 // each message
	PerName    = 1 // each message that has a name
	Reply      = 3 // once a request: the start of the answer
)

// Counter counts tokens. It is safe for concurrent use. Its vocabularies are
// used in place from the binary; what it holds itself is a bounded memory of
// rare words, 5 MB for each encoding that is used, so a process needs one.
type Counter struct {
	encodings [encodings]encoding
}

// encoding is all that counting in one encoding needs.
type encoding struct {
	table  *vocab.Table
	memory memory
	free   chan *scan // scratch memory that nobody uses; a sync.Pool would be emptied by each garbage collection
	fresh  func() *scan
}

// NewCounter makes a Counter. It fails only where the binary was built with
// vocabularies of another format.
func NewCounter() (*Counter, error) {
	c := new(Counter)
	for e := range c.encodings {
		table, err := vocab.Open(Encoding(e).String())
		if err != nil {
			return nil, fmt.Errorf("cannot count tokens: %w", err)
		}
		enc := &c.encodings[e]
		enc.table = table
		enc.memory.renew()
		pattern, rules := split.R50k, (*asciiRules)(nil)
		switch Encoding(e) {
		case O200kBase:
			pattern, rules = split.O200k, o200kRules()
		case CL100kBase:
			pattern, rules = split.CL100k, cl100kRules()
		}
		enc.free = make(chan *scan, 2*runtime.GOMAXPROCS(0))
		enc.fresh = func() *scan {
			return &scan{table: table, pattern: pattern, rules: rules, memory: &enc.memory, merge: bpe.New(table)}
		}
	}
	return c, nil
}

// Count returns the number of tokens of text in e, in linear time. Each byte that
// is not UTF-8 counts as one U+FFFD. The text is not kept and must not change
// meanwhile. Nothing is allocated, but for text that is not UTF-8. A long text
// yields to other goroutines now and then.
func (c *Counter) Count(e Encoding, text []byte) int {
	if len(text) == 0 {
		return 0
	}
	if !utf8.Valid(text) {
		text = valid(text)
	}
	enc := &c.encodings[e]
	s := enc.take()
	n := s.count(text)
	enc.give(s)
	return n
}

func (e *encoding) take() *scan {
	select {
	case s := <-e.free:
		return s
	default:
		return e.fresh()
	}
}

func (e *encoding) give(s *scan) {
	select {
	case e.free <- s:
	default: // more at a time than there are cores
	}
}

// Warm brings into memory what counting in e uses, 14 MB for o200k, so that the
// first request does not wait for it.
func (c *Counter) Warm(e Encoding) {
	enc := &c.encodings[e]
	enc.table.Warm()
	enc.memory.warm()
}

// valid replaces each byte that is not UTF-8 by U+FFFD.
func valid(text []byte) []byte {
	out := make([]byte, 0, len(text)+len(text)/2)
	for _, r := range string(text) {
		out = utf8.AppendRune(out, r)
	}
	return out
}
