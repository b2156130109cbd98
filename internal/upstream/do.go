package upstream

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// maxInformational bounds the 1xx answers before the real one.
	maxInformational = 8
	// earlyAnswer is the wait for an answer on a connection that broke while
	// the request was written; what there is, is in the kernel already.
	earlyAnswer = time.Second
)

func (t *Target) failed(phase Phase, sent Sent, reason error) *Error {
	return &Error{Phase: phase, Sent: sent, Addr: t.cfg.BaseURL, Err: reason}
}

// Do sends the call and returns when the response header is there. The caller
// must close the response. Any status is a response, not an error; redirects
// are not followed. Every error is an *Error.
func (t *Target) Do(call *Call) (*Response, error) {
	if err := call.check(); err != nil {
		return nil, t.failed(PhaseWrite, SentNothing, err)
	}
	kept, err := t.kept()
	if err != nil {
		return nil, t.failed(PhaseDial, SentNothing, err)
	}
	if kept != nil {
		resp, failure := t.exchange(call, kept)
		if failure == nil {
			return resp, nil
		}
		if errors.Is(failure, ErrUnexpectedEnd) && !failure.answered {
			t.pool.learn(kept)
		}
		if !failure.wasStale() {
			return nil, failure
		}
		t.stats.resent.Add(1)
	}
	c, err := t.dial(call)
	if err != nil {
		return nil, err
	}
	resp, failure := t.exchange(call, c)
	if failure != nil {
		return nil, failure
	}
	return resp, nil
}

// kept takes a connection that is still good from the pool, or nil.
func (t *Target) kept() (*conn, error) {
	for {
		c, err := t.pool.take()
		if c == nil {
			return nil, err
		}
		switch {
		case !time.Now().Before(c.idleUntil):
		case c.quiet():
			c.reused = true
			t.stats.reused.Add(1)
			return c, nil
		default:
			t.stats.stale.Add(1)
			t.pool.learn(c)
		}
		c.raw.Close()
	}
}

// wasStale reports that a kept connection was closed before the upstream had
// the whole request, so that sending it once more cannot be the second time.
func (e *Error) wasStale() bool {
	return e.Sent != SentAll && !e.answered && !TimedOut(e) && !errors.Is(e, ErrCanceled)
}

// exchange sends the call on c and reads the response header.
func (t *Target) exchange(call *Call, c *conn) (*Response, *Error) {
	c.begin(call)
	if !call.attach(c) {
		c.discard()
		return nil, t.failed(PhaseWrite, SentNothing, ErrCanceled)
	}
	x := exchanges.Get().(*exchange)
	writeErr := c.send(call)
	if errors.Is(writeErr, os.ErrDeadlineExceeded) {
		return nil, x.abandon(t.failed(PhaseWrite, c.sent(writeErr), classify(call, writeErr, ErrIdleTimeout)), c)
	}
	// After a failed write an early answer (too large, not authorized) may
	// still be readable; it says more than the broken pipe does.
	limit := t.cfg.HeaderTimeout
	if writeErr != nil {
		limit = min(limit, earlyAnswer)
	}
	failure := c.readHeader(&x.header, limit)
	if failure == nil {
		return x.open(c, writeErr == nil), nil
	}
	if writeErr != nil {
		answered := failure.answered
		failure = t.failed(PhaseWrite, c.sent(writeErr), classify(call, writeErr, ErrIdleTimeout))
		failure.answered = answered
	}
	return nil, x.abandon(failure, c)
}

// sent says how much of the request can be with the upstream.
func (c *conn) sent(writeErr error) Sent {
	switch {
	case writeErr == nil:
		return SentAll
	case c.wrote > 0:
		return SentPart
	default:
		return SentNothing
	}
}

// readHeader reads up to the end of the first header that is not 1xx, under
// one deadline: a header that trickles in is as late as one that never comes.
func (c *conn) readHeader(h *fasthttp.ResponseHeader, limit time.Duration) *Error {
	if err := c.rw.SetReadDeadline(c.call.until(limit)); err != nil {
		return c.target.failed(PhaseHeader, SentAll, classify(c.call, err, ErrHeaderTimeout))
	}
	h.SetNoDefaultContentType(true)
	for range maxInformational {
		if _, err := c.br.Peek(1); err != nil {
			return c.noAnswer(err)
		}
		if err := h.Read(c.br); err != nil {
			return c.badHeader(err)
		}
		if status := h.StatusCode(); status >= 200 || status == fasthttp.StatusSwitchingProtocols {
			break
		}
	}
	if h.StatusCode() < 200 {
		return c.badHeader(ErrProtocol)
	}
	c.idle = c.target.cfg.IdleTimeout
	return nil
}

// noAnswer is the failure of a request to which not a byte came.
func (c *conn) noAnswer(err error) *Error {
	sent := SentAll
	if errors.Is(err, io.EOF) && c.unacked() {
		sent = SentPart
	}
	return c.target.failed(PhaseHeader, sent, classify(c.call, err, ErrHeaderTimeout))
}

// badHeader is the failure of a response whose header did not come whole, or
// is none. The codec's own text is dropped, because it quotes the answer.
func (c *conn) badHeader(err error) *Error {
	var small *fasthttp.ErrSmallBuffer
	reason := ErrProtocol
	switch {
	case c.readErr != nil:
		reason = classify(c.call, c.readErr, ErrHeaderTimeout)
	case errors.As(err, &small):
		reason = ErrHeaderTooLarge
	}
	e := c.target.failed(PhaseHeader, SentAll, reason)
	e.answered = true
	return e
}
