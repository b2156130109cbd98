package proxy

import (
	"errors"
	"math/rand/v2"

	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/telemetry"
)

// chat serves POST /v1/chat/completions. The request's way, each line one step:
// what an early exit answers is the step's own Refusal.
func (p *Proxy) chat(ctx *fasthttp.RequestCtx) {
	r := p.newRequest(ctx)
	defer func() {
		if cause := recover(); cause != nil {
			r.abandon()
			panic(cause)
		}
	}()
	for _, step := range [...]func() *Refusal{
		r.checkHead, r.admit, r.authenticate, r.readBody, r.takePlace, r.scan, r.resolve, r.count, r.limits, r.reserve, r.open,
	} {
		if refusal := step(); refusal != nil {
			r.refuse(refusal)
			return
		}
	}
	// From here on money is held and the journal knows of the request: every way
	// out goes through settle.
	r.serve()
}

func (r *request) checkHead() *Refusal { return r.p.checkHead(&r.ctx.Request.Header) }

func (r *request) readBody() *Refusal { return r.p.readBody(r.ctx, &r.body) }

// refuse answers an early exit and counts it.
func (r *request) refuse(refusal *Refusal) {
	m := r.p.cfg.Metrics
	m.Refusals.With(refusal.Code).Inc()
	m.Requests.With(r.modelLabel(), telemetry.StatusLabel(refusal.Status), r.keyAlias()).Inc()
	r.commonHeaders()
	r.p.write(r.ctx, refusal)
	if r.body.buf == nil {
		skipBody(r.ctx)
	}
	r.end()
}

// scan reads the body once and strictly.
func (r *request) scan() *Refusal {
	err := r.chat.Request.Scan(r.body.bytes(), r.shape, jsonscan.Limits{})
	var bad *jsonscan.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return refuseBody("invalid_body", bad.Field, err.Error())
	default:
		return refuseBody("invalid_body", "", err.Error())
	}
}

// resolve finds the deployments that serve the model, if the key may use it. A
// key's own aliases come first; the allow-list speaks of the name that the client
// or the alias asks for.
func (r *request) resolve() *Refusal {
	name := r.chat.Model
	if !r.key.Allows(name) {
		return &Refusal{Status: fasthttp.StatusForbidden, Type: typePermission, Code: "model_not_allowed", Param: "model",
			Message: "this key may not use the model it asked for", NoRetry: true}
	}
	if alias, ok := r.key.Aliases[name]; ok {
		name = alias
	}
	group, ok := r.p.cfg.Routes.Resolve(name)
	if !ok {
		return errNoModel
	}
	r.group, r.deployment = group, group.Pick(rand.Uint64())
	return nil
}

var errNoModel = &Refusal{Status: fasthttp.StatusNotFound, Type: typeInvalidRequest, Code: "model_not_found", Param: "model",
	Message: "no such model: GET /v1/models lists those that are served"}

func (r *request) modelLabel() string {
	if r.group == nil {
		return "" // a name that no configuration knows is a client's text
	}
	return r.group.Name
}

func (r *request) keyAlias() string {
	if r.key == nil {
		return ""
	}
	return r.key.Alias
}
