package proxy

import (
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/hangup"
)

// Refusal is an answer that ends a request early. Code and status are stable for
// ever: clients build on them. Reason is the counter's label.
type Refusal struct {
	Status     int
	Type       string
	Code       string
	Param      string
	Message    string
	RetryAfter time.Duration // 0: no header
	NoRetry    bool          // x-should-retry: false
	Close      bool          // the connection cannot be used further
}

func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Types of the OpenAI error envelope.
const (
	typeInvalidRequest = "invalid_request_error"
	typeAuth           = "authentication_error"
	typePermission     = "permission_error"
	typeRateLimit      = "rate_limit_error"
	typeBudget         = "budget_exceeded"
	typeServer         = "server_error"
)

func refuseBody(code, param, message string) *Refusal {
	return &Refusal{Status: fasthttp.StatusBadRequest, Type: typeInvalidRequest, Code: code, Param: param, Message: message}
}

func refuseAuth(code, message string) *Refusal {
	return &Refusal{Status: fasthttp.StatusUnauthorized, Type: typeAuth, Code: code, Message: message, NoRetry: true}
}

func refuseLedger(message string) *Refusal {
	return &Refusal{Status: fasthttp.StatusServiceUnavailable, Type: typeServer, Code: "ledger_unavailable", Message: message, RetryAfter: time.Second}
}

func encodeError(r *Refusal) []byte { return r.wire().Body() }

// anthropicType is what Anthropic's clients call an error of that status.
func anthropicType(status int) string {
	switch status {
	case fasthttp.StatusUnauthorized:
		return "authentication_error"
	case fasthttp.StatusForbidden:
		return "permission_error"
	case fasthttp.StatusNotFound:
		return "not_found_error"
	case fasthttp.StatusRequestEntityTooLarge:
		return "request_too_large"
	case fasthttp.StatusTooManyRequests:
		return "rate_limit_error"
	case fasthttp.StatusServiceUnavailable:
		return "overloaded_error"
	}
	if status < fasthttp.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "api_error"
}

// writeAnthropic is writeRefusal in the shape that Anthropic's clients read.
func writeAnthropic(ctx *fasthttp.RequestCtx, r *Refusal) {
	writeRefusal(ctx, r)
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	ctx.Response.ResetBody()
	writeJSON(ctx, struct {
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", detail{anthropicType(r.Status), r.Message}})
}

// wire is the refusal in OpenAI's shape.
func (r *Refusal) wire() *openai.Error {
	return &openai.Error{Status: r.Status, Message: r.Message, Type: r.Type, Param: r.Param, Code: r.Code}
}

// writeRefusal answers with the refusal's envelope and headers.
func writeRefusal(ctx *fasthttp.RequestCtx, r *Refusal) {
	ctx.Response.ResetBody()
	ctx.SetStatusCode(r.Status)
	ctx.SetContentType("application/json")
	if r.RetryAfter > 0 {
		seconds := max(1, int64((r.RetryAfter+time.Second-1)/time.Second))
		ctx.Response.Header.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if r.NoRetry {
		ctx.Response.Header.Set("x-should-retry", "false")
	}
	if r.Close {
		closeAfter(ctx)
	}
	ctx.SetBody(encodeError(r))
}

// closeAfter ends the connection with this answer, without taking the answer from a
// client that is still sending its body.
func closeAfter(ctx *fasthttp.RequestCtx) {
	ctx.SetConnectionClose()
	if c, ok := hangup.From(ctx.Conn()); ok {
		c.Linger()
	}
}

// maxSkip is how much of a body that nobody wants is read to keep the connection.
const maxSkip = 64 << 10

// skipBody is for an answer that was given without reading the body: it must never be
// taken for the next request.
func skipBody(ctx *fasthttp.RequestCtx) {
	if n := ctx.Request.Header.ContentLength(); n > maxSkip || n == -1 {
		closeAfter(ctx)
	}
}
