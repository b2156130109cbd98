package openai

import (
	"strconv"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/money"
)

// DoneEvent ends a stream.
const DoneEvent = "data: [DONE]\n\n"

// Head is what all chunks of one answer repeat.
type Head struct {
	ID      string
	Model   string
	Created int64 // Unix seconds
}

// AppendUsageEvent appends the closing usage event: no choices, the whole usage.
func AppendUsageEvent(dst []byte, h Head, u money.Usage) []byte {
	dst = append(dst, "data: "...)
	dst = AppendHead(dst, "chat.completion.chunk", h)
	dst = append(dst, `,"choices":[],`...)
	dst = AppendUsage(dst, u)
	return append(dst, "}\n\n"...)
}

// AppendHead appends the opening of an answer or a chunk, without a comma at the
// end.
func AppendHead(dst []byte, object string, h Head) []byte {
	dst = append(dst, `{"id":`...)
	dst = jsonscan.AppendString(dst, h.ID)
	dst = append(dst, `,"object":"`...)
	dst = append(dst, object...)
	dst = append(dst, `","created":`...)
	dst = strconv.AppendInt(dst, h.Created, 10)
	dst = append(dst, `,"model":`...)
	return jsonscan.AppendString(dst, h.Model)
}

// AppendUsage appends the usage member. The details are written where there is
// something to tell.
func AppendUsage(dst []byte, u money.Usage) []byte {
	dst = append(dst, `"usage":{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, u.Input, 10)
	dst = append(dst, `,"completion_tokens":`...)
	dst = strconv.AppendInt(dst, u.Output, 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, u.Input+u.Output, 10)
	if u.Cached > 0 {
		dst = append(dst, `,"prompt_tokens_details":{"cached_tokens":`...)
		dst = append(strconv.AppendInt(dst, u.Cached, 10), '}')
	}
	if u.Reasoning > 0 {
		dst = append(dst, `,"completion_tokens_details":{"reasoning_tokens":`...)
		dst = append(strconv.AppendInt(dst, u.Reasoning, 10), '}')
	}
	return append(dst, '}')
}
