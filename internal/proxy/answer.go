package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/upstream"
)

// answer passes on what the upstream said: an error status and a JSON answer as a
// whole, an event stream as it comes. A stream that nobody asked for, and a coding that
// nobody can undo, are not read at all: the upstream is told to stop.
func (r *request) answer(resp *upstream.Response) {
	streamed := resp.Status == fasthttp.StatusOK && isEventStream(resp.Header().ContentType())
	if streamed && !r.chat.Stream || coded(resp.Header()) {
		defer resp.Close()
		r.failForm(outcome{usage: money.Usage{Input: r.input}, estimated: true}, "an event stream that nobody asked for, or a coding")
		return
	}
	r.relayHeaders(resp.Header())
	if streamed {
		r.answerStream(resp)
		return
	}
	r.answerWhole(resp)
}

// coded says that the body is not what it stands for: gzip has been undone already.
func coded(h *fasthttp.ResponseHeader) bool {
	coding := h.Peek("Content-Encoding")
	return len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity"))
}

// failForm ends a request whose upstream answered in a form that its client cannot use.
func (r *request) failForm(o outcome, form string) {
	r.p.cfg.Logger.Warn("an upstream answers in the wrong form", "request_id", r.id, "model_id", r.deployment.ID, "form", form)
	r.countAttempt("wrong_form")
	refusal := refuseUpstream(fasthttp.StatusBadGateway, "the model's provider answered in a form that cannot be used")
	o.status, o.httpStatus, o.errorCode = ledgerv1.SpendRecord_STATUS_FAILURE, refusal.Status, refusal.Code
	r.settle(o)
	r.refuseSettled(refusal)
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
	payload = bytes.TrimPrefix(payload, []byte("\ufeff")) // JSON has none; some write it
	if resp.Status != fasthttp.StatusOK {
		r.passError(resp.Status, payload)
		return
	}
	a, err := openai.ReadAnswer(payload)
	switch {
	case a.Err != nil && len(a.Output) == 0:
		r.passError(a.Err.Status, payload)
		return
	case err != nil || !isObject(payload) || r.chat.Stream:
		// What it cost is known only as far as it says so.
		r.failForm(outcome{usage: a.Usage, estimated: a.Report != openai.Reported, upstreamID: a.ID}, "a whole answer that is no JSON object, or to a client that waits for a stream")
		return
	}
	r.firstToken = time.Now()
	o := r.bookAnswer(&a, payload)
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

func isObject(payload []byte) bool {
	payload = bytes.TrimLeft(payload, " \t\r\n")
	return len(payload) > 0 && payload[0] == '{'
}

// passError passes an upstream's error status on with its own body, where that is JSON.
// Its 401 and 403 speak of our credential, not of the client's, and become 502; a page of
// some middle box is nobody's business.
func (r *request) passError(status int, payload []byte) {
	r.countAttempt("error_status")
	code := "upstream_status"
	if parsed, ok := openai.ReadError(payload); ok && parsed.Code != "" {
		code = parsed.Code
	}
	refusal := r.hideError(status)
	if refusal == nil && (!isObject(payload) || !json.Valid(payload)) {
		refusal = refuseUpstream(status, "the model's provider failed and did not say why")
	}
	shown := status
	if refusal != nil {
		shown = refusal.Status
	}
	r.settle(outcome{status: ledgerv1.SpendRecord_STATUS_FAILURE, httpStatus: shown, errorCode: code})
	if refusal != nil {
		r.refuseSettled(refusal)
		return
	}
	r.commonHeaders()
	r.ctx.SetStatusCode(status)
	r.ctx.Response.SetBodyRaw(payload)
	r.end()
}

// hideError is the refusal in place of an upstream's status that would tell a client
// something wrong; nil where the status can be passed on.
func (r *request) hideError(status int) *Refusal {
	switch {
	case status == fasthttp.StatusUnauthorized || status == fasthttp.StatusForbidden:
		r.p.cfg.Logger.Error("the upstream refuses our credential", "model_id", r.deployment.ID, "status", status)
		return &Refusal{Status: fasthttp.StatusBadGateway, Type: typeServer, Code: "upstream_credential",
			Message: "the model's provider refused the gateway's credential; the operator has to look at api_key"}
	case status < fasthttp.StatusBadRequest:
		return refuseUpstream(fasthttp.StatusBadGateway, "the model's provider answered without an answer")
	}
	return nil
}

// bookAnswer takes the usage from an answer, or counts what the model wrote.
func (r *request) bookAnswer(a *openai.Answer, payload []byte) outcome {
	o := outcome{status: ledgerv1.SpendRecord_STATUS_SUCCESS, httpStatus: fasthttp.StatusOK}
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
