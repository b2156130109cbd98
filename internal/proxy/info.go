package proxy

import (
	"encoding/json"
	"errors"

	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/route"
)

var errDraining = errors.New("shutting down")

func writeJSON(ctx *fasthttp.RequestCtx, v any) {
	ctx.SetContentType("application/json")
	if err := json.NewEncoder(ctx).Encode(v); err != nil {
		ctx.Response.ResetBody()
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
	}
}

// models lists what the caller's key may ask for.
func (p *Proxy) models(ctx *fasthttp.RequestCtx) {
	r := p.newRequest(ctx)
	defer r.end()
	if refusal := r.authenticate(); refusal != nil {
		p.refuse(ctx, refusal)
		return
	}
	data := []route.Model{}
	for _, m := range p.cfg.Routes.Models() {
		if r.key.Allows(m.ID) {
			data = append(data, m)
		}
	}
	writeJSON(ctx, struct {
		Object string        `json:"object"`
		Data   []route.Model `json:"data"`
	}{"list", data})
}

func (p *Proxy) modelInfo(ctx *fasthttp.RequestCtx) {
	r := p.newRequest(ctx)
	defer r.end()
	if refusal := r.authenticate(); refusal != nil {
		p.refuse(ctx, refusal)
		return
	}
	data := []route.ModelInfo{}
	for _, m := range p.cfg.Routes.Infos() {
		if r.key.Allows(m.ModelName) {
			data = append(data, m)
		}
	}
	writeJSON(ctx, struct {
		Data []route.ModelInfo `json:"data"`
	}{data})
}
