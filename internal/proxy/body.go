package proxy

import (
	"errors"
	"io"
	"math/bits"
	"net"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
)

// bodyPool keeps request bodies by power-of-two size, so that a flood of large
// prompts does not allocate each of them anew.
type bodyPool struct {
	classes [27]sync.Pool // 4 KiB << class
}

const smallestBody = 4 << 10

func bodyClass(size int) int {
	if size <= smallestBody {
		return 0
	}
	return bits.Len(uint(size-1)) - bits.Len(uint(smallestBody-1))
}

func (p *bodyPool) take(size int) *[]byte {
	class := bodyClass(size)
	if b, ok := p.classes[class].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, smallestBody<<class)
	return &b
}

// put files a buffer under the largest size that it has room for: one that append has
// grown is of any capacity.
func (p *bodyPool) put(b *[]byte) {
	class := bits.Len(uint(cap(*b)/smallestBody)) - 1
	if class < 0 {
		return
	}
	*b = (*b)[:0]
	p.classes[min(class, len(p.classes)-1)].Put(b)
}

// body is a request body being held: its bytes and what it counts for in the caps.
type body struct {
	buf      *[]byte
	reserved int64
}

func (b *body) bytes() []byte { return *b.buf }

// refuseTooLarge names the knob, so that an operator knows what to turn.
func (p *Proxy) refuseTooLarge() *Refusal {
	return &Refusal{
		Status: fasthttp.StatusRequestEntityTooLarge, Type: typeInvalidRequest, Code: "request_too_large",
		Message: "the request body is larger than max_body_bytes allows", Close: true,
	}
}

// checkHead refuses what can be told from the headers alone. Nothing of the body
// has been read, so a client that sent Expect: 100-continue never sends it.
func (p *Proxy) checkHead(h *fasthttp.RequestHeader) *Refusal {
	if length := h.ContentLength(); length > p.maxBody {
		return p.refuseTooLarge()
	}
	if e := h.Peek("Content-Encoding"); len(e) > 0 && !strings.EqualFold(string(e), "identity") {
		return &Refusal{
			Status: fasthttp.StatusUnsupportedMediaType, Type: typeInvalidRequest, Code: "unsupported_encoding",
			Message: "request bodies must not be compressed: send them with Content-Encoding identity or none", Close: true,
		}
	}
	if e := h.Peek("Expect"); len(e) > 0 && !strings.EqualFold(string(e), "100-continue") {
		return &Refusal{
			Status: fasthttp.StatusExpectationFailed, Type: typeInvalidRequest, Code: "expectation_failed",
			Message: "the only expectation understood is 100-continue", Close: true,
		}
	}
	return nil
}

// readBody reads the whole body into a pooled buffer. The caps were entered with
// the announced length; a chunked body takes its bytes as they come.
func (p *Proxy) readBody(ctx *fasthttp.RequestCtx, b *body) *Refusal {
	length := ctx.Request.Header.ContentLength()
	stream := ctx.RequestBodyStream()
	switch {
	case length == 0 || stream == nil:
		b.buf = p.bodies.take(0)
		*b.buf = append(*b.buf, ctx.Request.Body()...)
		return nil
	case length > 0:
		b.buf = p.bodies.take(length)
		*b.buf = (*b.buf)[:length]
		if _, err := io.ReadFull(stream, *b.buf); err != nil {
			return refuseUnread(err)
		}
		return nil
	default:
		return p.readChunked(stream, b)
	}
}

func (p *Proxy) readChunked(stream io.Reader, b *body) *Refusal {
	b.buf = p.bodies.take(0)
	for {
		buf := *b.buf
		if len(buf) == cap(buf) {
			if refusal := p.growBody(b); refusal != nil {
				return refusal
			}
			buf = *b.buf
		}
		n, err := stream.Read(buf[len(buf):cap(buf)])
		*b.buf = buf[:len(buf)+n]
		if len(*b.buf) > p.maxBody {
			return p.refuseTooLarge()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return refuseUnread(err)
		}
	}
}

// growBody moves the body into a buffer of twice the size and takes the bytes
// from the cap.
func (p *Proxy) growBody(b *body) *Refusal {
	size := cap(*b.buf)
	if size > p.maxBody {
		return p.refuseTooLarge()
	}
	if !p.capacity.grow(int64(size)) {
		return errOverloaded
	}
	b.reserved += int64(size)
	larger := p.bodies.take(2 * size)
	*larger = append(*larger, *b.buf...)
	p.bodies.put(b.buf)
	b.buf = larger
	return nil
}

func refuseUnread(err error) *Refusal {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &Refusal{Status: fasthttp.StatusRequestTimeout, Type: typeInvalidRequest, Code: "request_timeout",
			Message: "the request body did not arrive in time", Close: true}
	}
	r := refuseBody("body_incomplete", "", "the request body ended before its announced length")
	r.Close = true
	return r
}
