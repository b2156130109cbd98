package openai

import (
	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/tokens"
)

// Prompt is the size of a request in tokens before anybody has seen it.
type Prompt struct {
	Tokens int64
	// Exact is true where the prompt holds texts only, so that the count is what
	// the provider will find. Tools, schemas, images, audio and files are counted
	// by an allowance.
	Exact bool
	Items int64 // the part of Tokens that stands for images, audio and files
}

// CountPrompt counts a request for an upstream's model: each role, name,
// content, call name and call arguments as a text of its own, plus 3 for each
// message, 1 for each name and 3 for the answer's start. Tool definitions and
// JSON schemas are counted as the JSON text that the client sent, which is more
// than providers count for them: an allowance, so that they are never free.
// Base64 is never counted as text. count counts one text; buf is scratch memory
// for unescaping.
func CountPrompt(body []byte, c *jsonscan.Chat, model string, count func(text []byte) int, buf *[]byte) Prompt {
	n := int64(tokens.PerMessage*len(c.Messages) + tokens.PerName*c.Names + tokens.Reply)
	for _, span := range c.Texts {
		n += int64(count(jsonscan.Unescaped(body, span, buf)))
	}
	for _, span := range c.Schemas {
		n += int64(count(span.Of(body)))
	}
	items := int64(0)
	rule := imageRuleOf(model)
	for _, item := range c.Items {
		items += allowance(body, item, rule, buf)
	}
	return Prompt{
		Tokens: n + items,
		Exact:  len(c.Items) == 0 && len(c.Schemas) == 0,
		Items:  items,
	}
}

const (
	// audioBytes is how many bytes of audio make a token: ten tokens a second, at
	// the 32 kbit/s of thin compressed speech. Uncompressed audio is far bigger
	// than its tokens, so that the allowance is on the safe side.
	audioBytes = 400
	// fileBytes is the same for documents, whose text is compressed.
	fileBytes = 4
	// fileFloor is what a file costs at least: it may be given by a reference
	// whose size is not known here.
	fileFloor = 4096
)

// allowance is what an item is taken to cost. Nothing is fetched to find out.
func allowance(body []byte, item jsonscan.Item, rule imageRule, buf *[]byte) int64 {
	decoded := int64(item.Data.Len()) * 3 / 4
	switch item.Kind {
	case jsonscan.Image:
		return rule.tokens(body, item, buf)
	case jsonscan.Audio:
		return max(1, decoded/audioBytes)
	case jsonscan.File:
		return max(fileFloor, decoded/fileBytes)
	}
	return min(int64(item.Span.Len()), rule.most())
}
