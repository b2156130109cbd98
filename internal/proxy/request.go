package proxy

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/hangup"
	"github.com/penstock-gateway/penstock/internal/hold"
	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/keyring"
	"github.com/penstock-gateway/penstock/internal/limit"
	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/record"
	"github.com/penstock-gateway/penstock/internal/route"
	"github.com/penstock-gateway/penstock/internal/upstream"
)

// request is one request on its way up the stair. It belongs to the connection's
// goroutine; only gone (and what it cancels) is touched from the hangup watcher.
type request struct {
	p     *Proxy
	ctx   *fasthttp.RequestCtx
	conn  *hangup.Conn // nil when the listener does not watch
	id    string
	start time.Time

	// cancelled ends when the client has gone.
	cancelled context.Context
	cancel    context.CancelFunc

	body body
	key  *keyring.Key
	chat jsonscan.Chat

	shape jsonscan.Shape
	line  *semaphore.Weighted
	place int64 // bytes of the places for counting that the request has taken, in its line

	group      *route.Group
	deployment *config.Deployment

	input     int64 // counted prompt tokens
	inexact   bool  // input is an estimate for this model
	counted   bool  // both are known
	outputCap int64 // output cap given upstream; 0: the client's own request stands
	pass      *limit.Pass
	hold      *hold.Hold
	ticket    record.Ticket
	admitted  bool // has a place under the caps
	opened    bool // the journal knows of it
	record    *ledgerv1.SpendRecord

	call       upstream.Call
	attempts   int
	dispatched time.Time
	firstToken time.Time
	upstream   time.Duration // spent waiting for the upstream

	settled bool
	ended   bool
}

func (p *Proxy) newRequest(ctx *fasthttp.RequestCtx) *request {
	r := &request{p: p, ctx: ctx, id: newRequestID(), start: time.Now()}
	r.cancelled, r.cancel = context.WithCancel(context.Background())
	if c, ok := hangup.From(ctx.Conn()); ok {
		r.conn = c
		c.Begin(r.gone)
	}
	return r
}

// gone runs on the watcher's goroutine when the client's connection has ended.
func (r *request) gone() {
	r.cancel()
	r.call.Cancel()
}

func (r *request) clientGone() bool { return r.cancelled.Err() != nil }

// end gives back what the request holds in memory. It comes last, once.
func (r *request) end() {
	if r.ended {
		return
	}
	r.ended = true
	if r.conn != nil {
		r.conn.End()
	}
	r.cancel()
	r.leavePlace()
	r.leaveLimits()
	r.releaseBody()
	if r.admitted {
		r.p.capacity.leave(r.body.reserved)
	}
}

// abandon ends a request whose goroutine panicked: what was dispatched is stopped and
// booked, what was only held goes back.
func (r *request) abandon() {
	r.call.Cancel()
	if !r.opened {
		r.releaseHold()
	} else {
		r.settle(outcome{
			status: ledgerv1.SpendRecord_STATUS_FAILURE, httpStatus: fasthttp.StatusInternalServerError, errorCode: "internal",
			usage: money.Usage{Input: r.input}, estimated: true,
		})
	}
	r.end()
}

// admit takes a place under the caps for the request and its announced body.
func (r *request) admit() *Refusal {
	size := announced(&r.ctx.Request.Header)
	if !r.p.capacity.enter(size) {
		return errOverloaded
	}
	r.admitted, r.body.reserved = true, size
	return nil
}

func (r *request) releaseBody() {
	if r.body.buf != nil {
		r.p.bodies.put(r.body.buf)
		r.body.buf = nil
	}
}
