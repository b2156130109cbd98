// Package tokens counts the tokens of a text exactly as OpenAI's encodings do.
//
// "Exactly" is the length of tiktoken's encode_ordinary: a special token such
// as <|endoftext|> that somebody typed is plain text. See DESIGN.md for what is
// inside and where its limits are.
package tokens

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/tiktoken-go/tokenizer/codec"
)

// What a chat request costs beside its texts, in tokens. The texts are each
// message's role, name and content, counted one by one.
const (
	PerMessage = 3 // each message
	PerName    = 1 // each message that has a name
	Reply      = 3 // once a request: the start of the answer
)

// Counter counts tokens. It is safe for concurrent use and holds the tables of
// an encoding from its first use on (tens of megabytes each), so a process
// needs one.
type Counter struct {
	codecs [encodings]func() *codec.Codec
}

// NewCounter makes a Counter. It loads no table and never fails with the
// encodings that are built in; the error is for those that are not.
func NewCounter() (*Counter, error) {
	c := new(Counter)
	for e := range c.codecs {
		build, err := builder(Encoding(e))
		if err != nil {
			return nil, err
		}
		c.codecs[e] = sync.OnceValue(build)
	}
	return c, nil
}

func builder(e Encoding) (func() *codec.Codec, error) {
	switch e {
	case O200kBase:
		return codec.NewO200kBase, nil
	case CL100kBase:
		return codec.NewCl100kBase, nil
	case P50kBase:
		return codec.NewP50kBase, nil
	case R50kBase:
		return codec.NewR50kBase, nil
	}
	return nil, fmt.Errorf("cannot count with encoding %d: unknown", e)
}

// Warm loads the tables of e, so that the first request does not wait for them.
func (c *Counter) Warm(e Encoding) { c.codecs[e]() }

// Count returns the number of tokens of text in e. Each byte that is not UTF-8
// counts as one U+FFFD. The text is not kept and must not change meanwhile. The
// time grows with the square of the longest piece without a break, see
// DESIGN.md.
func (c *Counter) Count(e Encoding, text []byte) int {
	if len(text) == 0 {
		return 0
	}
	// The library only reads its input, and a prompt is too large to copy.
	n, err := c.codecs[e]().Count(unsafe.String(unsafe.SliceData(text), len(text)))
	if err != nil {
		// The regular expressions have no time limit, which is the only error
		// there is. A byte per token can never be too little.
		return len(text)
	}
	return n
}
