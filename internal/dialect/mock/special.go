package mock

import (
	"net/http"

	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/money"
)

// ErrorFor is the error that a mock_response asks for by the name of one of
// LiteLLM's exceptions; ok is false for an ordinary text.
func ErrorFor(text string) (e *openai.Error, ok bool) {
	switch text {
	case "litellm.RateLimitError":
		return &openai.Error{
			Status:  http.StatusTooManyRequests,
			Message: "this is a mock rate limit error",
			Type:    "rate_limit_error",
			Code:    "rate_limit_exceeded",
		}, true
	case "litellm.ContextWindowExceededError":
		return &openai.Error{
			Status:  http.StatusBadRequest,
			Message: "this is a mock context window exceeded error",
			Type:    "invalid_request_error",
			Param:   "messages",
			Code:    "context_length_exceeded",
		}, true
	case "litellm.InternalServerError":
		return &openai.Error{
			Status:  http.StatusInternalServerError,
			Message: "this is a mock internal server error",
			Type:    "server_error",
			Code:    "internal_server_error",
		}, true
	}
	return nil, false
}

// AppendNetworkMock appends the answer of network_mock, which stands for a
// provider at the other end of a wire that always says the same: never a
// stream, whatever was asked, usage 1/1/2. The random bits make the id,
// "chatcmpl-mock-" and eight hexadecimal digits.
func AppendNetworkMock(dst []byte, model string, created int64, random uint32) []byte {
	const hex = "0123456789abcdef"
	id := []byte("chatcmpl-mock-")
	for shift := 28; shift >= 0; shift -= 4 {
		id = append(id, hex[random>>shift&15])
	}
	r := Reply{
		Usage:  money.Usage{Input: 1, Output: 1},
		Text:   "Mock response",
		Finish: "stop",
		req:    Request{Head: openai.Head{ID: string(id), Model: model, Created: created}, N: 1},
	}
	return r.AppendCompletion(dst)
}
