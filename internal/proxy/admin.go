package proxy

import (
	"bytes"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/upstream"
)

// adminTimeout bounds an admin call; a page of 10,000 records takes seconds.
const adminTimeout = 60 * time.Second

// maxAdminAnswer bounds what the collector may answer.
const maxAdminAnswer = 64 << 20

func adminTarget(client *upstream.Client, socket string) (*upstream.Target, error) {
	return client.Target(upstream.TargetConfig{
		BaseURL: "http://spend-collector", SocketPath: socket,
		DialTimeout: time.Second, HeaderTimeout: adminTimeout, MaxIdle: 4, MaxBody: maxAdminAnswer,
	})
}

// passToAdmin hands /key/* and /spend/* to the collector, which checks the master
// key and owns the database. The gateway only carries the bytes.
func (p *Proxy) passToAdmin(ctx *fasthttp.RequestCtx) {
	if r := p.checkHead(&ctx.Request.Header); r != nil {
		p.refuse(ctx, r)
		return
	}
	size := announced(&ctx.Request.Header)
	if !p.capacity.enter(size) {
		p.refuse(ctx, errOverloaded)
		return
	}
	b := body{reserved: size}
	defer func() {
		p.capacity.leave(b.reserved)
		if b.buf != nil {
			p.bodies.put(b.buf)
		}
	}()
	if r := p.readBody(ctx, &b); r != nil {
		p.refuse(ctx, r)
		return
	}
	p.forwardAdmin(ctx, b.bytes())
}

func (p *Proxy) forwardAdmin(ctx *fasthttp.RequestCtx, payload []byte) {
	call := &upstream.Call{Method: string(ctx.Method()), Path: adminPath(ctx.Request.URI()), Deadline: time.Now().Add(adminTimeout)}
	for _, name := range [...]string{"Authorization", "x-api-key", "api-key", "Content-Type", "litellm-changed-by"} {
		if v := ctx.Request.Header.Peek(name); len(v) > 0 {
			call.Headers = append(call.Headers, [2]string{name, string(v)})
		}
	}
	// The collector does not know LiteLLM's own header.
	if v := ctx.Request.Header.Peek("x-litellm-api-key"); len(v) > 0 && len(ctx.Request.Header.Peek("x-api-key")) == 0 {
		call.Headers = append(call.Headers, [2]string{"x-api-key", string(bytes.TrimPrefix(v, []byte("Bearer ")))})
	}
	if len(payload) > 0 {
		call.Body = [][]byte{payload}
	}
	resp, err := p.admin.Do(call)
	if err != nil {
		p.refuseAdmin(ctx, err)
		return
	}
	defer resp.Close()
	answer, err := resp.ReadAll(nil)
	if err != nil {
		p.refuseAdmin(ctx, err)
		return
	}
	ctx.SetStatusCode(resp.Status)
	ctx.SetContentTypeBytes(resp.Header().ContentType())
	for _, name := range [...]string{"Retry-After", "Allow", "x-penstock-warning"} {
		if v := resp.Header().Peek(name); len(v) > 0 {
			ctx.Response.Header.SetBytesV(name, v)
		}
	}
	ctx.Response.SetBodyRaw(answer)
}

// adminPath is the target without the scheme and host that a client may write.
func adminPath(uri *fasthttp.URI) string {
	path := string(uri.PathOriginal())
	if query := uri.QueryString(); len(query) > 0 {
		path += "?" + string(query)
	}
	return path
}

func (p *Proxy) refuseAdmin(ctx *fasthttp.RequestCtx, err error) {
	if errors.Is(err, upstream.ErrInvalidCall) {
		p.refuse(ctx, refuseBody("bad_request", "", "the target or a header has characters that have to be escaped"))
		return
	}
	p.cfg.Logger.Warn("cannot reach the spend-collector's admin socket", "error", err)
	p.refuse(ctx, refuseLedger("the admin API is not reachable right now; retry shortly"))
}
