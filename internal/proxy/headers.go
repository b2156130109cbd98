package proxy

import (
	"bytes"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/money"
)

// commonHeaders go on every answer, under our names and under LiteLLM's, which
// existing clients and dashboards read.
func (r *request) commonHeaders() {
	h := &r.ctx.Response.Header
	h.Set("x-penstock-request-id", r.id)
	h.Set("x-request-id", r.id) // where OpenAI's clients look for it
	h.Set("x-litellm-call-id", r.id)
	overhead := formatMillis(time.Since(r.start) - r.upstream)
	h.Set("x-penstock-overhead-duration-ms", overhead)
	h.Set("x-litellm-overhead-duration-ms", overhead)
	if r.counted {
		h.Set("x-penstock-count", r.exactness())
	}
	r.limitHeaders()
	if r.deployment == nil {
		return
	}
	h.Set("x-litellm-model-id", asciiHeader(r.deployment.ID))
	h.Set("x-litellm-attempted-retries", strconv.Itoa(max(0, r.attempts-1)))
	if r.injectsCap() {
		h.Set("x-penstock-output-cap", strconv.FormatInt(r.outputCap, 10))
	}
	if r.key.ID != "" {
		h.Set("x-litellm-key-spend", money.FormatNano(r.keySpend()))
	}
}

// keySpend is the key's spend as the ledger last told it, and this request's cost
// once that is known: a lower bound while other requests are in flight.
func (r *request) keySpend() int64 {
	spend := r.key.Spend
	if r.settled && r.record != nil {
		spend += r.record.CostNano
	}
	return spend
}

// costHeaders go on answers whose cost is known before the headers leave. A model
// without a price has no cost, which is not the same as a cost of 0.
func (r *request) costHeaders() {
	if r.deployment.Price == nil {
		return
	}
	cost := money.FormatNano(r.record.CostNano)
	r.ctx.Response.Header.Set("x-penstock-response-cost", cost)
	r.ctx.Response.Header.Set("x-litellm-response-cost", cost)
}

func formatMillis(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 3, 64)
}

// asciiHeader keeps a configured text fit for a header value.
func asciiHeader(s string) string {
	return strings.Map(func(c rune) rune {
		if c < 0x20 || c > 0x7e {
			return '?'
		}
		return c
	}, s)
}

// relayHeaders passes on what a client may act on. The provider's other headers
// get a prefix, so that they are never mistaken for ours.
func (r *request) relayHeaders(from *fasthttp.ResponseHeader) {
	to := &r.ctx.Response.Header
	for key, value := range from.All() {
		name := strings.ToLower(string(key))
		switch {
		case hopByHop(name):
		case name == "content-type" || name == "retry-after" || name == "x-should-retry":
			to.SetBytesV(name, bytes.Clone(value))
		case strings.HasPrefix(name, "x-ratelimit-"), strings.HasPrefix(name, "openai-"), name == "x-request-id":
			to.SetBytesV("llm_provider-"+name, bytes.Clone(value))
		}
	}
}

func hopByHop(name string) bool {
	switch name {
	case "connection", "keep-alive", "transfer-encoding", "content-length", "te", "trailer", "upgrade", "proxy-authenticate", "set-cookie", "server", "date":
		return true
	}
	return false
}

// maxEndUser bounds the client's own name for its user.
const maxEndUser = 256

// endUser is the client's name for its own user: header first, then the body.
func (r *request) endUser() string {
	for _, name := range [...]string{"x-litellm-customer-id", "x-litellm-end-user-id"} {
		if v := r.ctx.Request.Header.Peek(name); len(v) > 0 {
			return truncate(strings.ToValidUTF8(string(v), "\uFFFD"), maxEndUser)
		}
	}
	return truncate(r.text(r.chat.User), maxEndUser)
}

func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

func (r *request) clientIP() string {
	if addr, ok := r.ctx.RemoteAddr().(*net.TCPAddr); ok {
		return addr.IP.String()
	}
	return ""
}
