package proxy

import (
	"bytes"
	"fmt"
	"runtime/debug"

	"github.com/valyala/fasthttp"
)

// handle routes by the path as the client wrote it: a path that would have to be
// normalised first (dot segments, double slashes, encoded slashes) matches nothing,
// so that no rule before us can be passed by a spelling.
func (p *Proxy) handle(ctx *fasthttp.RequestCtx) {
	defer p.recoverPanic(ctx)
	path := ctx.Request.URI().PathOriginal()
	if p.cors(ctx) {
		return
	}
	switch p.route(path) {
	case routeChat:
		p.only(ctx, fasthttp.MethodPost, p.chat)
	case routeTokenCounter:
		p.only(ctx, fasthttp.MethodPost, p.utilsTokenCounter)
	case routeMessagesCount:
		p.only(ctx, fasthttp.MethodPost, p.messagesCountTokens)
	case routeResponsesCount:
		p.only(ctx, fasthttp.MethodPost, p.responsesInputTokens)
	case routeModels:
		p.only(ctx, fasthttp.MethodGet, p.models)
	case routeModel:
		p.only(ctx, fasthttp.MethodGet, p.model)
	case routeModelInfo:
		p.only(ctx, fasthttp.MethodGet, p.modelInfo)
	case routeLive:
		p.only(ctx, fasthttp.MethodGet, p.live)
	case routeReady:
		p.only(ctx, fasthttp.MethodGet, p.ready)
	case routeAdmin:
		p.passToAdmin(ctx)
	default:
		p.refuse(ctx, &Refusal{Status: fasthttp.StatusNotFound, Type: typeInvalidRequest, Code: "unknown_route",
			Message: "no such route: see the list in docs/reference.md"})
		skipBody(ctx)
	}
}

// recoverPanic keeps a bug in one request from ending all others.
func (p *Proxy) recoverPanic(ctx *fasthttp.RequestCtx) {
	if cause := recover(); cause != nil {
		p.logPanic(cause)
		p.refuse(ctx, &Refusal{Status: fasthttp.StatusInternalServerError, Type: typeServer, Code: "internal",
			Message: "internal error", Close: true})
	}
}

func (p *Proxy) logPanic(cause any) {
	p.cfg.Logger.Error("panic while serving a request", "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
}

type routeID int

const (
	routeNone routeID = iota
	routeChat
	routeTokenCounter
	routeMessagesCount
	routeResponsesCount
	routeModels
	routeModel
	routeModelInfo
	routeLive
	routeReady
	routeAdmin
)

// takesPrompt says that a key is looked at before the body is asked for.
func (id routeID) takesPrompt() bool {
	return id == routeChat || id == routeTokenCounter || id == routeMessagesCount || id == routeResponsesCount
}

func (p *Proxy) route(path []byte) routeID {
	switch string(path) {
	case "/v1/chat/completions", "/chat/completions":
		return routeChat
	case "/utils/token_counter":
		return routeTokenCounter
	case "/v1/messages/count_tokens":
		return routeMessagesCount
	case "/v1/responses/input_tokens", "/responses/input_tokens":
		return routeResponsesCount
	case "/v1/models", "/models":
		return routeModels
	case "/v1/model/info", "/model/info":
		return routeModelInfo
	case "/health/liveliness", "/health/liveness":
		return routeLive
	case "/health/readiness":
		return routeReady
	}
	if bytes.HasPrefix(path, []byte(modelPrefix)) {
		return routeModel
	}
	if plainPath(path) && isAdmin(path) {
		return routeAdmin
	}
	return routeNone
}

// isAdmin says that the collector answers the path.
func isAdmin(path []byte) bool {
	for _, prefix := range [...]string{
		"/key/", "/spend/", "/team/", "/user/", "/customer/", "/end_user/", "/organization/", "/budget/", "/tag/", "/global/",
	} {
		if bytes.HasPrefix(path, []byte(prefix)) {
			return true
		}
	}
	return false
}

// plainPath accepts only what needs no normalising.
func plainPath(path []byte) bool {
	for _, c := range path {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '/', c == '_', c == '-':
		default:
			return false
		}
	}
	return !bytes.Contains(path, []byte("//"))
}

func (p *Proxy) only(ctx *fasthttp.RequestCtx, method string, serve func(*fasthttp.RequestCtx)) {
	if string(ctx.Method()) == method || (method == fasthttp.MethodGet && ctx.IsHead()) {
		serve(ctx)
		return
	}
	ctx.Response.Header.Set("Allow", method)
	p.refuse(ctx, &Refusal{Status: fasthttp.StatusMethodNotAllowed, Type: typeInvalidRequest, Code: "method_not_allowed",
		Message: "this route takes " + method})
	skipBody(ctx)
}

// cors lets browsers call the gateway from any origin: a virtual key is sent in a
// header by the page itself, never by the browser on its own, so that no origin
// gains anything by it. It says whether the request was a preflight and is done.
func (p *Proxy) cors(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	if len(h.Peek("Origin")) == 0 {
		return false
	}
	out := &ctx.Response.Header
	out.Set("Access-Control-Allow-Origin", "*")
	out.Set("Access-Control-Expose-Headers", "*")
	if !ctx.IsOptions() || len(h.Peek("Access-Control-Request-Method")) == 0 {
		return false
	}
	out.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
	if asked := h.Peek("Access-Control-Request-Headers"); len(asked) > 0 {
		out.SetBytesV("Access-Control-Allow-Headers", asked)
	}
	out.Set("Access-Control-Max-Age", "86400")
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return true
}

func (p *Proxy) live(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("application/json")
	ctx.SetBodyString(`"I'm alive!"`)
}

func (p *Proxy) ready(ctx *fasthttp.RequestCtx) {
	err := p.cfg.Ready()
	if p.draining.Load() {
		err = errDraining
	}
	ctx.SetContentType("application/json")
	if err != nil {
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
		writeJSON(ctx, map[string]string{"status": "not ready", "reason": err.Error()})
		return
	}
	writeJSON(ctx, map[string]string{"status": "healthy"})
}
