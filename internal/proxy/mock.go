package proxy

import (
	"math/rand/v2"
	"time"

	"github.com/valyala/fasthttp"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/dialect/mock"
	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/money"
)

// serveMock answers in the process. It takes every step that a real upstream
// takes but the network: what it says is booked and measured alike.
func (r *request) serveMock() {
	r.attempts = 1
	if r.p.cfg.Config.NetworkMock && !r.deployment.Mock() {
		r.answerMock(outcome{usage: money.Usage{Input: 1, Output: 1}}, "application/json",
			mock.AppendNetworkMock(nil, r.chat.Model, r.start.Unix(), rand.Uint32()))
		return
	}
	text := r.mockText()
	if e, ok := mock.ErrorFor(text); ok {
		r.countAttempt("error_status")
		r.settle(outcome{status: ledgerv1.SpendRecord_STATUS_FAILURE, httpStatus: e.Status, errorCode: e.Code})
		r.refuseSettled(&Refusal{Status: e.Status, Type: e.Type, Code: e.Code, Param: e.Param, Message: e.Message})
		return
	}
	id := "chatcmpl-" + r.id
	limit, _ := r.chat.OutputCap()
	if r.injectsCap() {
		limit = r.outputCap
	}
	reply := mock.NewReply(mock.Request{
		Head: openai.Head{ID: id, Model: r.chat.Model, Created: r.start.Unix()},
		Text: text, PromptTokens: r.input, N: r.chat.N, MaxTokens: limit,
		IncludeUsage: r.chat.StreamOptions.IncludeUsage, Count: r.counter(),
	})
	o := outcome{usage: reply.Usage, estimated: r.inexact, upstreamID: id}
	if !r.chat.Stream {
		r.answerMock(o, "application/json", reply.AppendCompletion(nil))
		return
	}
	var events []byte
	for more := true; more; {
		events, more = reply.AppendEvent(events)
	}
	r.answerMock(o, "text/event-stream", events)
}

// mockText is what the mock says: the deployment's canned answer, or the
// client's own where the built-in mock provider is asked.
func (r *request) mockText() string {
	if r.deployment.MockResponse != nil {
		return *r.deployment.MockResponse
	}
	return r.text(r.chat.MockResponse)
}

// answerMock books o, whose usage is known, as a success.
func (r *request) answerMock(o outcome, contentType string, payload []byte) {
	r.firstToken = time.Now()
	r.countAttempt("ok")
	o.status, o.httpStatus = ledgerv1.SpendRecord_STATUS_SUCCESS, fasthttp.StatusOK
	r.settle(o)
	r.p.cfg.Metrics.DeliveredOutputTokens.Add(o.usage.Output)
	r.commonHeaders()
	if contentType == "application/json" {
		r.costHeaders()
	}
	r.ctx.SetStatusCode(fasthttp.StatusOK)
	r.ctx.SetContentType(contentType)
	r.ctx.Response.SetBodyRaw(payload)
	r.end()
}

// text is a string member of the body, "" where it is absent or null.
func (r *request) text(span jsonscan.Span) string {
	if span.Len() < 2 || r.body.bytes()[span.Start] != '"' {
		return ""
	}
	return string(jsonscan.AppendUnescaped(nil, r.body.bytes(), span))
}

// maxTags bounds what a client can add to a record.
const maxTags = 32

func (r *request) tags() []string {
	tags := append([]string(nil), r.key.Tags...)
	for _, span := range r.chat.Tags {
		if len(tags) == maxTags {
			break
		}
		tags = append(tags, truncate(r.text(span), maxEndUser))
	}
	return tags
}
