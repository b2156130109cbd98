package upstream

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Response is the answer to one call. It is used by one goroutine; another one
// interrupts it through Call.Cancel.
type Response struct {
	Status int

	x     *exchange // nil after Close
	err   error     // what Read goes on failing with
	unzip *unzip    // nil unless the body is decoded
}

// exchange is the part of a response that is worth pooling.
type exchange struct {
	header fasthttp.ResponseHeader
	body   body
	c      *conn
	whole  bool // the request was written to its end
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func (x *exchange) open(c *conn, whole bool) *Response {
	x.c, x.whole = c, whole
	x.body = newBody(c.call.Method, &x.header)
	r := &Response{Status: x.header.StatusCode(), x: x}
	if x.gzipped() {
		r.unzip = &unzip{response: r}
	}
	return r
}

// abandon gives everything back after a failure before the response.
func (x *exchange) abandon(e *Error, c *conn) *Error {
	e.Reused = c.reused
	c.call.detach()
	c.discard()
	x.release()
	return e
}

func (x *exchange) release() {
	x.c = nil
	x.header.Reset()
	exchanges.Put(x)
}

// Header of the response, valid until Close. Names are in canonical form.
func (r *Response) Header() *fasthttp.ResponseHeader { return &r.x.header }

// ContentLength is the body's length in bytes, or -1 when it is not known
// before the end.
func (r *Response) ContentLength() int {
	if r.unzip != nil {
		return -1
	}
	return r.x.body.length
}

// Read gives the body's bytes as soon as some are there; it does not wait to
// fill p. It returns io.EOF after a complete body only. A body in gzip is decoded, and
// its header says nothing of the coding; any other coding is the caller's.
func (r *Response) Read(p []byte) (int, error) {
	if r.x == nil {
		return 0, io.ErrClosedPipe
	}
	if r.unzip != nil && len(p) > 0 {
		return r.unzip.read(p)
	}
	return r.readRaw(p)
}

func (r *Response) readRaw(p []byte) (int, error) {
	c := r.x.c
	if c.call.Canceled() {
		return 0, c.target.failed(PhaseBody, SentAll, ErrCanceled)
	}
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	n, err := r.x.body.read(c.br, p)
	if err == io.EOF { //nolint:errorlint // io.EOF itself is a whole body's end, an error that wraps it is not
		r.err = io.EOF
	} else if err != nil {
		r.err = c.target.failed(PhaseBody, SentAll, classify(c.call, err, ErrIdleTimeout))
	}
	if n > 0 {
		return n, nil
	}
	return 0, r.err
}

// ReadAll appends the whole body to dst, or fails with ErrBodyTooLarge when it
// is larger than MaxBody, before reading it where its length is announced.
func (r *Response) ReadAll(dst []byte) ([]byte, error) {
	limit := r.x.c.target.cfg.MaxBody
	tooLarge := r.x.c.target.failed(PhaseBody, SentAll, ErrBodyTooLarge)
	length := r.ContentLength()
	if length > limit {
		return dst, tooLarge
	}
	// One spare byte lets the read that meets the end happen without growing.
	dst = grow(dst, max(length, 0)+1)
	for start := len(dst); ; {
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst)-start > limit:
			return dst, tooLarge
		case err == io.EOF: //nolint:errorlint // io.EOF itself is a whole body's end, an error that wraps it is not
			return dst, nil
		case err != nil:
			return dst, err
		}
		if len(dst) == cap(dst) {
			dst = grow(dst, len(dst))
		}
	}
}

// grow makes room for n more bytes and at least a small read.
func grow(dst []byte, n int) []byte {
	n = max(n, 512)
	if cap(dst)-len(dst) >= n {
		return dst
	}
	return append(make([]byte, 0, len(dst)+n), dst...)
}

// Close ends the response. The connection is kept for another call when the
// body was read to its end and both sides allow it; otherwise it is closed,
// which tells the upstream to stop. A second Close does nothing.
func (r *Response) Close() error {
	x := r.x
	if x == nil {
		return nil
	}
	r.x = nil
	c := x.c
	idle := time.Duration(0)
	if x.whole && x.body.done && !x.header.ConnectionClose() && c.br.Buffered() == 0 {
		idle = c.idleFor(&x.header)
	}
	alive := c.call.detach()
	x.release()
	if !alive || idle <= 0 {
		c.discard()
		return nil
	}
	c.end()
	if !c.target.pool.put(c, idle) {
		c.raw.Close()
	}
	return nil
}

// idleFor is how long the connection may be kept after this response.
func (c *conn) idleFor(h *fasthttp.ResponseHeader) time.Duration {
	limit := c.target.cfg.MaxIdleTime
	if hint, ok := keepAliveHint(h.Peek("Keep-Alive")); ok {
		return min(hint, limit)
	}
	return limit
}

// keepAliveHint reads "timeout=5, max=100" and leaves a second for the way.
func keepAliveHint(value []byte) (time.Duration, bool) {
	for len(value) > 0 {
		var param []byte
		param, value, _ = bytes.Cut(value, []byte(","))
		name, number, ok := strings.Cut(strings.TrimSpace(string(param)), "=")
		if !ok || !strings.EqualFold(name, "timeout") {
			continue
		}
		seconds, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return 0, false
		}
		return time.Duration(seconds)*time.Second - time.Second, true
	}
	return 0, false
}
