package proxy

import (
	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/dialect/anthropic"
	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/telemetry"
)

// countRoute is one of the routes that only count: they hold no money, ask no
// provider and leave no record.
type countRoute struct {
	shape jsonscan.Shape
	// anyModel counts for a model that is not configured, too, as for any model whose
	// encoding is not known.
	anyModel bool
	answer   func(r *request) any
}

// The answers of the count routes, each in the shape of whom its clients know it
// from: LiteLLM, Anthropic, OpenAI.
func (p *Proxy) utilsTokenCounter(ctx *fasthttp.RequestCtx) {
	p.countOnly(ctx, countRoute{shape: jsonscan.TokenCounter, anyModel: true, answer: func(r *request) any {
		return tokenCounterAnswer{TotalTokens: r.input, RequestModel: r.chat.Model, ModelUsed: r.baseModel(), TokenizerType: "local_tokenizer"}
	}})
}

// tokenCounterAnswer is LiteLLM's; its last three tell of a provider that was asked,
// which none is.
type tokenCounterAnswer struct {
	TotalTokens      int64   `json:"total_tokens"`
	RequestModel     string  `json:"request_model"`
	ModelUsed        string  `json:"model_used"`
	TokenizerType    string  `json:"tokenizer_type"`
	OriginalResponse any     `json:"original_response"`
	Error            bool    `json:"error"`
	ErrorMessage     *string `json:"error_message"`
}

func (p *Proxy) messagesCountTokens(ctx *fasthttp.RequestCtx) {
	p.countOnly(ctx, countRoute{shape: jsonscan.Messages, answer: func(r *request) any {
		return struct {
			InputTokens int64 `json:"input_tokens"`
		}{r.input}
	}})
}

func (p *Proxy) responsesInputTokens(ctx *fasthttp.RequestCtx) {
	p.countOnly(ctx, countRoute{shape: jsonscan.Responses, answer: func(r *request) any {
		return struct {
			Object      string `json:"object"`
			InputTokens int64  `json:"input_tokens"`
		}{"response.input_tokens", r.input}
	}})
}

// countOnly is the stair of a request that is counted and nothing else.
func (p *Proxy) countOnly(ctx *fasthttp.RequestCtx, route countRoute) {
	r := p.newRequest(ctx)
	r.shape = route.shape
	defer r.end()
	for _, step := range [...]func() *Refusal{
		r.checkHead, r.admit, r.authenticate, r.readBody, r.takePlace, r.scan, r.resolve, r.count,
	} {
		refusal := step()
		if refusal == errNoModel && route.anyModel {
			refusal = nil
		}
		if refusal != nil {
			r.refuse(refusal)
			return
		}
	}
	r.p.cfg.Metrics.Requests.With(r.modelLabel(), telemetry.StatusLabel(fasthttp.StatusOK), r.keyAlias()).Inc()
	r.commonHeaders()
	writeJSON(ctx, route.answer(r))
}

// exactness says whether a count is what the provider will find.
func (r *request) exactness() string {
	if r.inexact {
		return "estimated"
	}
	return "exact"
}

// countPrompt counts the body by its shape.
func (r *request) countPrompt(scratch *[]byte) (n int64, exact bool) {
	body, model := r.body.bytes(), r.baseModel()
	if r.shape == jsonscan.Messages {
		size := anthropic.CountMessages(body, &r.chat.Request, model, r.counter(), scratch)
		return size.Tokens, size.Exact
	}
	size := openai.Count(body, &r.chat.Request, model, r.counter(), scratch)
	return size.Tokens, size.Exact
}
