package proxy

import (
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/telemetry"
)

// capacity caps what is in flight in this worker, so that memory stays below the
// pod's limit whatever arrives. A request that does not fit is refused before its
// body is read.
type capacity struct {
	maxRequests int64
	maxBytes    int64
	requests    atomic.Int64
	bytes       atomic.Int64
	metrics     *telemetry.Metrics
}

var errOverloaded = &Refusal{
	Status: fasthttp.StatusServiceUnavailable, Type: typeServer, Code: "overloaded",
	Message:    "this gateway is at its limit of requests in flight; retry shortly",
	RetryAfter: time.Second, Close: true,
}

// enter takes a place and size bytes; leave gives both back.
func (c *capacity) enter(size int64) bool {
	if c.requests.Add(1) > c.maxRequests {
		c.requests.Add(-1)
		return false
	}
	if !c.grow(size) {
		c.requests.Add(-1)
		return false
	}
	c.metrics.InFlightRequests.Add(1)
	return true
}

// full says that enter would fail now.
func (c *capacity) full(size int64) bool {
	return c.requests.Load() >= c.maxRequests || c.bytes.Load()+size > c.maxBytes
}

// announced is the body's length as the header tells it; 0 where it does not.
func announced(h *fasthttp.RequestHeader) int64 { return int64(max(0, h.ContentLength())) }

// grow takes further bytes for a body whose length was not announced.
func (c *capacity) grow(n int64) bool {
	if c.bytes.Add(n) > c.maxBytes {
		c.bytes.Add(-n)
		return false
	}
	c.metrics.InFlightBodyBytes.Add(n)
	return true
}

func (c *capacity) leave(size int64) {
	c.bytes.Add(-size)
	c.requests.Add(-1)
	c.metrics.InFlightBodyBytes.Add(-size)
	c.metrics.InFlightRequests.Add(-1)
}
