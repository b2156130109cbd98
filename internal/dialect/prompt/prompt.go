// Package prompt holds the arithmetic of a prompt's size that all dialects
// share: texts with the overhead of their messages, and allowances for what is
// not text. What an image costs each dialect says itself.
package prompt

import (
	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/tokens"
)

// Size is the size of a request in tokens before anybody has seen it.
type Size struct {
	Tokens int64
	// Exact is true where the prompt holds texts only, so that the count is what
	// the provider will find. Tools, schemas, images, audio and files are counted
	// by an allowance.
	Exact bool
	Items int64 // the part of Tokens that stands for images, audio and files
}

// Counter counts texts of one body.
type Counter struct {
	Body  []byte
	Count func(text []byte) int // one text, unescaped
	Buf   *[]byte               // scratch memory for unescaping
}

// Unescaped is the text of a string of the body, until the next call.
func (c Counter) Unescaped(s jsonscan.Span) []byte { return jsonscan.Unescaped(c.Body, s, c.Buf) }

// Words counts everything but the items: each text on its own, token ids by
// their number, schemas and other JSON as the client wrote them, which is more
// than providers count for them: an allowance, so that they are never free.
// Where there are messages it adds 3 for each, 1 for each name and 3 for the
// start of the answer. A message without a role, such as a system prompt that
// stands outside of the messages, has one implied, which is one token in every
// encoding.
func (c Counter) Words(r *jsonscan.Request) int64 {
	n := r.TokenIDs
	if len(r.Messages) > 0 {
		n += int64(tokens.PerMessage*len(r.Messages) + tokens.PerName*r.Names + tokens.Reply)
	}
	for i := range r.Messages {
		if r.Messages[i].Role.IsZero() {
			n++
		}
	}
	for _, span := range r.Texts {
		n += int64(c.Count(c.Unescaped(span)))
	}
	for _, span := range r.Schemas {
		n += int64(c.Count(span.Of(c.Body)))
	}
	return n
}

const (
	// audioBytes is how many bytes of audio make a token: ten tokens a second, at
	// the 32 kbit/s of thin compressed speech. Uncompressed audio is far bigger
	// than its tokens, so that the allowance is on the safe side.
	audioBytes = 400
	// fileBytes is the same for documents, whose text is compressed, and for
	// encrypted text, which is not.
	fileBytes = 4
	// fileFloor is what a file costs at least: it may be given by a reference
	// whose size is not known here.
	fileFloor = 4096
)

// Items counts the items. Nothing is fetched to find out. What an image costs
// image says, and most is the largest of its answers: a part that is not known
// here costs its length, but no more than that.
func (c Counter) Items(items []jsonscan.Item, most int64, image func(jsonscan.Item) int64) int64 {
	n := int64(0)
	for _, item := range items {
		decoded := int64(item.Data.Len()) * 3 / 4
		switch item.Kind {
		case jsonscan.Image:
			n += image(item)
		case jsonscan.Audio:
			n += max(1, decoded/audioBytes)
		case jsonscan.File:
			n += max(fileFloor, decoded/fileBytes)
		case jsonscan.Encrypted:
			n += max(1, decoded/fileBytes)
		default:
			n += min(int64(item.Span.Len()), most)
		}
	}
	return n
}
