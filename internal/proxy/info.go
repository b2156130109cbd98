package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

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
	key, refusal := p.identify(context.Background(), &ctx.Request.Header)
	if refusal != nil {
		p.refuse(ctx, refusal)
		return
	}
	data := []route.Model{}
	for _, m := range p.cfg.Routes.Models() {
		if key.Allows(m.ID) {
			data = append(data, m)
		}
	}
	writeJSON(ctx, struct {
		Object string        `json:"object"`
		Data   []route.Model `json:"data"`
	}{"list", data})
}

// modelPrefix is followed by a model's name, whose slashes may be escaped or not.
const modelPrefix = "/v1/models/"

// model describes one model that the caller's key may ask for.
func (p *Proxy) model(ctx *fasthttp.RequestCtx) {
	key, refusal := p.identify(context.Background(), &ctx.Request.Header)
	if refusal != nil {
		p.refuse(ctx, refusal)
		return
	}
	name, err := url.PathUnescape(strings.TrimPrefix(string(ctx.Request.URI().PathOriginal()), modelPrefix))
	for _, m := range p.cfg.Routes.Models() {
		if err == nil && m.ID == name && key.Allows(name) {
			writeJSON(ctx, m)
			return
		}
	}
	p.refuse(ctx, errNoModel)
}

func (p *Proxy) modelInfo(ctx *fasthttp.RequestCtx) {
	key, refusal := p.identify(context.Background(), &ctx.Request.Header)
	if refusal != nil {
		p.refuse(ctx, refusal)
		return
	}
	data := []route.ModelInfo{}
	for _, m := range p.cfg.Routes.Infos() {
		if key.Allows(m.ModelName) {
			data = append(data, m)
		}
	}
	writeJSON(ctx, struct {
		Data []route.ModelInfo `json:"data"`
	}{data})
}
