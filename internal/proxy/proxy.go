// Package proxy is the request's way through the gateway: a stair of small
// functions from accept to record, one file per step. fasthttp's server types
// live here and nowhere else; nothing of a fasthttp.RequestCtx is kept beyond its
// request.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/hold"
	"github.com/penstock-gateway/penstock/internal/keyring"
	"github.com/penstock-gateway/penstock/internal/limit"
	"github.com/penstock-gateway/penstock/internal/record"
	"github.com/penstock-gateway/penstock/internal/route"
	"github.com/penstock-gateway/penstock/internal/telemetry"
	"github.com/penstock-gateway/penstock/internal/tokens"
	"github.com/penstock-gateway/penstock/internal/upstream"
)

// Config is what a Proxy is made of. Everything is required.
type Config struct {
	Config  *config.Config
	Routes  *route.Snapshot
	Keys    *keyring.Keyring
	Holds   *hold.Manager
	Limits  *limit.Manager
	Records *record.Recorder
	Client  *upstream.Client
	Tokens  *tokens.Counter
	Metrics *telemetry.Metrics
	Logger  *slog.Logger
	// AdminSocket is the collector's HTTP socket, to which /key/* and /spend/* go.
	AdminSocket string
	// MaxInFlight and MaxBytesInFlight cap requests and body bytes of this worker.
	MaxInFlight      int64
	MaxBytesInFlight int64
	// Ready says why the worker should get no new requests; nil when it should.
	Ready func() error
}

// Proxy serves clients. It is made once per worker.
type Proxy struct {
	cfg           Config
	maxBody       int
	capacity      capacity
	places        places
	outputs       limit.Outputs
	bodies        bodyPool
	streamBuffers bufferPool
	targets       map[string]*target // by deployment id
	admin         *upstream.Target
	server        *fasthttp.Server
	draining      atomic.Bool
	listener      atomic.Pointer[onceListener]
}

// Time limits of a client's connection. A header must be there within
// headerTimeout, a body within bodyTimeout; an idle connection stays open longer
// than the common load balancers keep theirs (60 s), so that they never use one
// that is being closed.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 120 * time.Second
	idleTimeout   = 75 * time.Second
)

// New wires a Proxy. It does not listen yet.
func New(cfg Config) (*Proxy, error) {
	p := &Proxy{
		cfg:      cfg,
		maxBody:  int(cfg.Config.Settings.MaxBodyBytes),
		places:   newPlaces(),
		capacity: capacity{maxRequests: cfg.MaxInFlight, maxBytes: cfg.MaxBytesInFlight, metrics: cfg.Metrics},
	}
	var err error
	if p.targets, err = newTargets(cfg.Client, cfg.Config); err != nil {
		return nil, err
	}
	if p.admin, err = adminTarget(cfg.Client, cfg.AdminSocket); err != nil {
		return nil, err
	}
	p.server = &fasthttp.Server{
		Handler: p.handle,
		HeaderReceived: func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
			return fasthttp.RequestConfig{ReadTimeout: bodyTimeout}
		},
		ExpectHandler: p.expect,
		ErrorHandler:  p.protocolError,
		Name:          "",
		ReadTimeout:   headerTimeout,
		IdleTimeout:   idleTimeout,
		// The handler runs once the header is there, so that a request can be refused
		// before its body is read. Before it runs, fasthttp reads as much of the body as
		// this limit says: the limit that clients know is max_body_bytes, in checkHead and
		// readBody.
		StreamRequestBody:             true,
		MaxRequestBodySize:            1,
		DisablePreParseMultipartForm:  true,
		NoDefaultServerHeader:         true,
		NoDefaultDate:                 true,
		NoDefaultContentType:          true,
		CloseOnShutdown:               true,
		DisableHeaderNamesNormalizing: false,
		ReadBufferSize:                16 << 10, // also the limit of a request's header
		Logger:                        quietLogger{cfg.Logger},
	}
	return p, nil
}

// Serve accepts connections until Shutdown, also one that came before it: fasthttp's own
// forgets that.
func (p *Proxy) Serve(l net.Listener) error {
	once := &onceListener{Listener: l, close: sync.OnceValue(l.Close)}
	p.listener.Store(once)
	if p.draining.Load() {
		return once.Close()
	}
	return p.server.Serve(once)
}

// onceListener may be closed by Shutdown and by fasthttp.
type onceListener struct {
	net.Listener
	close func() error
}

func (l *onceListener) Close() error { return l.close() }

// Shutdown stops accepting, lets what is in flight end, and returns when nothing
// is or ctx ends.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.draining.Store(true)
	if l := p.listener.Load(); l != nil {
		if err := l.Close(); err != nil {
			return fmt.Errorf("cannot stop listening: %w", err)
		}
	}
	return p.server.ShutdownWithContext(ctx)
}

// InFlight is how many requests this worker holds now.
func (p *Proxy) InFlight() int64 { return p.capacity.requests.Load() }

// expect answers Expect: 100-continue: what the headers already condemn is
// refused before the client sends its body.
func (p *Proxy) expect(ctx *fasthttp.RequestCtx) int {
	r := p.checkHead(&ctx.Request.Header)
	if r == nil && p.capacity.full(announced(&ctx.Request.Header)) {
		r = errOverloaded
	}
	if r == nil && p.route(ctx.Request.URI().PathOriginal()).takesPrompt() {
		_, r = p.identify(context.Background(), &ctx.Request.Header)
	}
	if r != nil {
		p.refuse(ctx, r)
		return r.Status
	}
	return fasthttp.StatusContinue
}

// protocolError answers what fasthttp could not read as a request.
func (p *Proxy) protocolError(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	r := refuseBody("bad_request", "", "the request cannot be read as HTTP/1.1")
	switch {
	case errors.As(err, &small):
		r.Status, r.Code, r.Message = fasthttp.StatusRequestHeaderFieldsTooLarge, "header_too_large", "the request header is larger than 16 KiB"
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		r = p.refuseTooLarge()
	case errors.As(err, &timeout) && timeout.Timeout():
		r.Status, r.Code, r.Message = fasthttp.StatusRequestTimeout, "request_timeout", "the request did not arrive in time"
	}
	r.Close = true
	p.refuse(ctx, r)
}

// refuse answers and counts a refusal that has no request of its own.
func (p *Proxy) refuse(ctx *fasthttp.RequestCtx, r *Refusal) {
	p.cfg.Metrics.Refusals.With(r.Code).Inc()
	p.write(ctx, r)
}

// write answers in the shape that the route's clients read.
func (p *Proxy) write(ctx *fasthttp.RequestCtx, r *Refusal) {
	if p.route(ctx.Request.URI().PathOriginal()) == routeMessagesCount {
		writeAnthropic(ctx, r)
		return
	}
	writeRefusal(ctx, r)
}

// quietLogger keeps fasthttp's own lines, which name client addresses and broken
// connections, at debug level.
type quietLogger struct{ log *slog.Logger }

func (q quietLogger) Printf(format string, args ...any) {
	q.log.Debug("http server", "detail", fmt.Sprintf(format, args...))
}
