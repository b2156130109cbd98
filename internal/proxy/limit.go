package proxy

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/limit"
)

// limits admits the request under the rate limits of its key and of all that the key
// belongs to, all of them in one step. Tokens are charged at the input and the output
// that is likely; settle corrects that.
func (r *request) limits() *Refusal {
	if len(r.key.Limits) == 0 {
		return nil
	}
	output, given := r.chat.OutputCap()
	if !given {
		output = maxOutput(r.deployment)
	}
	output = r.p.outputs.Expect(r.key.ID, output)
	pass, err := r.p.cfg.Limits.Admit(r.cancelled, limit.Want{Subjects: r.key.Limits, Tokens: r.input + r.chat.N*output})
	if err != nil {
		return refuseLimit(err)
	}
	r.pass = pass
	return nil
}

func refuseLimit(err error) *Refusal {
	var refused *limit.Refused
	if !errors.As(err, &refused) {
		return refuseLedger("the rate limits cannot be checked right now; retry shortly")
	}
	refusal := &Refusal{
		Status: fasthttp.StatusTooManyRequests, Type: typeRateLimit, Code: "rate_limit_exceeded",
		Message:    fmt.Sprintf("Rate limit exceeded: %s", limitText(refused)),
		RetryAfter: refused.RetryAfter,
	}
	if refused.Never {
		refusal.NoRetry = true
		refusal.Message += "; this request alone is above it"
	}
	return refusal
}

func limitText(refused *limit.Refused) string {
	switch refused.Kind {
	case limit.RPM:
		return fmt.Sprintf("%d requests per minute", refused.Limit)
	case limit.TPM:
		return fmt.Sprintf("%d tokens per minute", refused.Limit)
	}
	return fmt.Sprintf("%d parallel requests", refused.Limit)
}

// settleLimits corrects what was charged to what the answer took.
func (r *request) settleLimits(input, output int64) {
	if r.pass == nil {
		return
	}
	r.p.outputs.Observe(r.key.ID, output)
	r.pass.Settle(input + output)
}

// leaveLimits gives the slots back; a request that was never sent has used nothing.
func (r *request) leaveLimits() {
	switch {
	case r.pass == nil:
	case r.opened:
		r.pass.Release()
	default:
		r.pass.Cancel()
	}
	r.pass = nil
}

// limitHeaders tell the tightest of the request's limits, under OpenAI's names. What
// remains is a bound: other pods take from it, too.
func (r *request) limitHeaders() {
	if r.key == nil {
		return
	}
	var requests, tokens limit.Level
	for i := range r.key.Limits {
		l := r.p.cfg.Limits.Remaining(r.key.Limits[i].Name)
		requests, tokens = tighter(requests, l.Requests), tighter(tokens, l.Tokens)
	}
	r.limitHeader("requests", requests)
	r.limitHeader("tokens", tokens)
}

func tighter(a, b limit.Level) limit.Level {
	if a.Limit == 0 || b.Limit != 0 && b.Remaining < a.Remaining {
		return b
	}
	return a
}

func (r *request) limitHeader(what string, l limit.Level) {
	if l.Limit == 0 {
		return
	}
	h := &r.ctx.Response.Header
	h.Set("x-ratelimit-limit-"+what, strconv.FormatInt(l.Limit, 10))
	h.Set("x-ratelimit-remaining-"+what, strconv.FormatInt(l.Remaining, 10))
	h.Set("x-ratelimit-reset-"+what, l.Reset.Round(time.Millisecond).String())
}
