package proxy

import (
	"bytes"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/upstream"
)

// answer passes on what the upstream said: an error status and a JSON answer as a
// whole, an event stream as it comes.
func (r *request) answer(resp *upstream.Response) {
	r.relayHeaders(resp.Header())
	if resp.Status == fasthttp.StatusOK && isEventStream(resp.Header().ContentType()) {
		r.answerStream(resp)
		return
	}
	r.answerWhole(resp)
}

func isEventStream(contentType []byte) bool {
	return bytes.HasPrefix(bytes.ToLower(contentType), []byte("text/event-stream"))
}

// answerWhole reads the whole answer, books it and passes it on, byte for byte.
func (r *request) answerWhole(resp *upstream.Response) {
	defer resp.Close()
	waiting := time.Now()
	payload, err := resp.ReadAll(nil)
	r.upstream += time.Since(waiting)
	if err != nil {
		r.failWhole(err)
		return
	}
	if resp.Status != fasthttp.StatusOK {
		r.passError(resp.Status, payload)
		return
	}
	r.firstToken = time.Now()
	o := r.readAnswer(payload)
	r.countAttempt("ok")
	r.settle(o)
	r.p.cfg.Metrics.DeliveredOutputTokens.Add(o.usage.Output)
	r.commonHeaders()
	r.costHeaders()
	r.ctx.SetStatusCode(resp.Status)
	r.ctx.Response.SetBodyRaw(payload)
	r.end()
}

// failWhole ends a request whose answer broke off. The upstream has worked, so the
// prompt is booked.
func (r *request) failWhole(err error) {
	if r.clientGone() || errors.Is(err, upstream.ErrCanceled) {
		r.countAttempt("client_closed")
		r.settleGone(err)
		r.end()
		return
	}
	refusal := upstreamRefusal(err)
	r.countAttempt(refusal.Code)
	r.settle(outcome{
		status: ledgerv1.SpendRecord_STATUS_UPSTREAM_ABORTED, httpStatus: refusal.Status, errorCode: refusal.Code,
		usage: money.Usage{Input: r.input}, estimated: true,
	})
	r.refuseSettled(refusal)
}

// passError passes an upstream's error status on with its own body. Its 401 and
// 403 speak of our credential, not of the client's, and become 502.
func (r *request) passError(status int, payload []byte) {
	r.countAttempt("error_status")
	code := "upstream_status"
	if parsed, ok := openai.ReadError(payload); ok && parsed.Code != "" {
		code = parsed.Code
	}
	shown := status
	if status == fasthttp.StatusUnauthorized || status == fasthttp.StatusForbidden {
		shown = fasthttp.StatusBadGateway
	}
	r.settle(outcome{status: ledgerv1.SpendRecord_STATUS_FAILURE, httpStatus: shown, errorCode: code})
	if shown != status {
		r.p.cfg.Logger.Error("the upstream refuses our credential", "model_id", r.deployment.ID, "status", status)
		r.refuseSettled(&Refusal{Status: shown, Type: typeServer, Code: "upstream_credential",
			Message: "the model's provider refused the gateway's credential; the operator has to look at api_key"})
		return
	}
	r.commonHeaders()
	r.ctx.SetStatusCode(status)
	r.ctx.Response.SetBodyRaw(payload)
	r.end()
}

// readAnswer takes the usage from an answer, or counts what the model wrote.
func (r *request) readAnswer(payload []byte) outcome {
	o := outcome{status: ledgerv1.SpendRecord_STATUS_SUCCESS, httpStatus: fasthttp.StatusOK}
	a, err := openai.ReadAnswer(payload)
	if err != nil {
		r.p.cfg.Logger.Warn("an upstream's answer is not JSON", "request_id", r.id, "model_id", r.deployment.ID)
	}
	o.upstreamID = a.ID
	if a.Report == openai.Reported {
		o.usage = a.Usage
		return o
	}
	if a.Report == openai.Rejected {
		r.p.cfg.Metrics.UsageRejected.With(r.group.Name).Inc()
	}
	o.estimated = true
	o.usage = money.Usage{Input: r.input, Output: a.CountOutput(payload, r.counter())}
	return o
}
