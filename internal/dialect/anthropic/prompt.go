// Package anthropic knows of Anthropic's Messages wire format what is needed to
// count a request.
package anthropic

import (
	"github.com/penstock-gateway/penstock/internal/dialect/prompt"
	"github.com/penstock-gateway/penstock/internal/jsonscan"
)

// CountMessages estimates a request of the Messages shape for an upstream's
// model; Exact is always false, because the provider's tokenizer is not public.
// Texts are counted with the caller's encoding and the overhead of a chat;
// system is a message like the others; tool definitions and the input of tool
// calls are counted as the client wrote them; images by the provider's published
// formula. Base64 is never counted as text. count counts one text; buf is
// scratch memory for unescaping.
func CountMessages(body []byte, r *jsonscan.Request, model string, count func(text []byte) int, buf *[]byte) prompt.Size {
	c := prompt.Counter{Body: body, Count: count, Buf: buf}
	rule := imageRuleOf(model)
	items := c.Items(r.Items, rule.most, func(item jsonscan.Item) int64 {
		if item.Data.IsZero() {
			return rule.most
		}
		return rule.tokens(prompt.PNGSize(item.Data.Of(body)))
	})
	return prompt.Size{Tokens: c.Words(r) + items, Items: items}
}
