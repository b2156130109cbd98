package proxy

import (
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/upstream"
)

// serve sends the request and answers. A further attempt is made only while no
// byte of an answer went to the client and nothing can have been billed: nothing
// was sent, or the upstream answered with an error status.
func (r *request) serve() {
	if r.deployment.Mock() || r.p.cfg.Config.NetworkMock {
		r.serveMock()
		return
	}
	t := r.p.targets[r.deployment.ID]
	r.buildCall(t)
	for {
		r.attempts++
		r.dispatched = time.Now()
		resp, err := t.pool.Do(&r.call)
		r.upstream += time.Since(r.dispatched)
		if err == nil && !r.repeats(resp) {
			r.answer(resp)
			return
		}
		if err != nil && !r.repeatsUnsent(err) {
			r.failUpstream(err)
			return
		}
	}
}

// repeats gives an error status up for a further attempt, after a pause.
func (r *request) repeats(resp *upstream.Response) bool {
	if !retryableStatus(resp.Status) || !r.mayRepeat() {
		return false
	}
	d, ok := r.pauseFor(resp.Header().Peek("Retry-After"))
	if !ok || !r.pause(d) {
		return false
	}
	r.countAttempt("error_status")
	resp.Close()
	return true
}

// repeatsUnsent allows a further attempt where the upstream cannot have acted on this one.
func (r *request) repeatsUnsent(err error) bool {
	if !r.mayRepeat() || upstream.RequestSent(err) {
		return false
	}
	if d, _ := r.pauseFor(nil); !r.pause(d) {
		return false
	}
	r.countAttempt("not_sent")
	return true
}

func (r *request) countAttempt(result string) {
	r.p.cfg.Metrics.Attempts.With(r.deployment.Provider, result).Inc()
}

func (r *request) buildCall(t *target) {
	plan := openai.Plan{IncludeUsage: r.chat.Stream, CapField: t.capField}
	plan.Model = r.deployment.Model
	if r.injectsCap() {
		plan.OutputCap = r.outputCap
	}
	r.call.Method, r.call.Path = fasthttp.MethodPost, chatPath
	r.call.Headers = append(append(r.call.Headers[:0], t.headers...), [2]string{"X-Client-Request-Id", r.id})
	r.call.Body, _ = openai.Rewrite(r.call.Body[:0], r.body.bytes(), &r.chat, plan)
	timeout := r.deployment.Timeout
	if r.chat.Stream {
		timeout = r.deployment.StreamTimeout
	}
	r.call.Deadline = r.start.Add(timeout)
}

// injectsCap says that the output cap is ours: the client gave none.
func (r *request) injectsCap() bool {
	_, given := r.chat.OutputCap()
	return r.outputCap > 0 && !given
}

// failUpstream ends a request whose upstream gave no answer.
func (r *request) failUpstream(err error) {
	if r.clientGone() || errors.Is(err, upstream.ErrCanceled) {
		r.countAttempt("client_closed")
		r.settleGone(err)
		r.end()
		return
	}
	refusal := upstreamRefusal(err)
	r.countAttempt(refusal.Code)
	r.p.cfg.Logger.Warn("upstream failed", "request_id", r.id, "model_id", r.deployment.ID, "error", err)
	o := outcome{status: ledgerv1.SpendRecord_STATUS_FAILURE, httpStatus: refusal.Status, errorCode: refusal.Code}
	if upstream.RequestSent(err) {
		// It may have been read, worked on and billed: the prompt is booked.
		o.usage, o.estimated = money.Usage{Input: r.input}, true
	}
	r.settle(o)
	r.refuseSettled(refusal)
}

// settleGone books a request whose client left before an answer was there.
func (r *request) settleGone(err error) {
	o := outcome{status: ledgerv1.SpendRecord_STATUS_CLIENT_CLOSED, httpStatus: statusClientClosed, errorCode: "client_closed"}
	if upstream.RequestSent(err) {
		o.usage, o.estimated = money.Usage{Input: r.input}, true
	}
	r.settle(o)
}

// statusClientClosed is the field's number for a client that left; nobody sees it
// but logs and records.
const statusClientClosed = 499

func upstreamRefusal(err error) *Refusal {
	if upstream.TimedOut(err) {
		return &Refusal{Status: fasthttp.StatusGatewayTimeout, Type: typeServer, Code: "upstream_timeout",
			Message: "the model's provider did not answer in time"}
	}
	return refuseUpstream(fasthttp.StatusBadGateway, "the model's provider could not be reached or broke off")
}

func refuseUpstream(status int, message string) *Refusal {
	return &Refusal{Status: status, Type: typeServer, Code: "upstream_error", Message: message}
}

// refuseSettled answers with an error after the request was booked.
func (r *request) refuseSettled(refusal *Refusal) {
	r.commonHeaders()
	writeRefusal(r.ctx, refusal)
	r.end()
}
