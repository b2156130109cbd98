package openai

import (
	"github.com/penstock-gateway/penstock/internal/dialect/prompt"
	"github.com/penstock-gateway/penstock/internal/jsonscan"
)

// Prompt is the size of a request in tokens before anybody has seen it.
type Prompt = prompt.Size

// CountPrompt is Count for a chat completion request.
func CountPrompt(body []byte, c *jsonscan.Chat, model string, count func(text []byte) int, buf *[]byte) Prompt {
	return Count(body, &c.Request, model, count, buf)
}

// Count counts a request of any of OpenAI's shapes, or of the token counter's,
// for an upstream's model. Completions and embeddings are their texts and token
// ids, over all inputs, and nothing else. A chat is each role, name, content,
// call name and call arguments as a text of its own, plus 3 for each message, 1
// for each name and 3 for the answer's start. A Responses request is counted in
// the same way, which is the provider's rule for chats and nearly that for
// these. Base64 is never counted as text. count counts one text; buf is scratch
// memory for unescaping.
func Count(body []byte, r *jsonscan.Request, model string, count func(text []byte) int, buf *[]byte) Prompt {
	c := prompt.Counter{Body: body, Count: count, Buf: buf}
	rule := imageRuleOf(model)
	items := c.Items(r.Items, rule.most(), func(item jsonscan.Item) int64 { return rule.tokens(body, item, buf) })
	return Prompt{
		Tokens: c.Words(r) + items,
		Exact:  len(r.Items) == 0 && len(r.Schemas) == 0 && !r.Inexact,
		Items:  items,
	}
}
