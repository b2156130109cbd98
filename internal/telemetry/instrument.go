package telemetry

import (
	"sync/atomic"
	"time"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// mark is what a series looked like when it was last sent; any change changes it.
type mark struct{ a, b uint64 }

// source is a handle as the reporter reads it. init comes before first use.
type source interface {
	init(f *family)
	read(p *telemetryv1.Point) mark
}

// binder is a field of Metrics: a handle, or a family of them.
type binder interface {
	bind(r *registry, f *family)
}

// Counter only goes up. The zero value counts, but is reported only as part of Metrics.
type Counter struct {
	n    atomic.Uint64
	nano bool
}

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds n; what is below zero is ignored, because a counter cannot go down.
func (c *Counter) Add(n int64) {
	if n > 0 {
		c.n.Add(uint64(n))
	}
}

// Value is the count so far, in the unit Add takes.
func (c *Counter) Value() uint64 { return c.n.Load() }

func (c *Counter) init(f *family)              { c.nano = f.Nano }
func (c *Counter) bind(r *registry, f *family) { r.add(f, nil, c) }

func (c *Counter) read(p *telemetryv1.Point) mark {
	n := c.n.Load()
	p.Value = float64(n)
	if c.nano {
		p.Value /= 1e9
	}
	return mark{a: n}
}

// Gauge goes up and down.
type Gauge struct{ n atomic.Int64 }

// Add moves the gauge by n, which may be negative.
func (g *Gauge) Add(n int64) { g.n.Add(n) }

// Set replaces the value.
func (g *Gauge) Set(n int64) { g.n.Store(n) }

// Value is the present value.
func (g *Gauge) Value() int64 { return g.n.Load() }

func (g *Gauge) init(*family)                {}
func (g *Gauge) bind(r *registry, f *family) { r.add(f, nil, g) }

func (g *Gauge) read(p *telemetryv1.Point) mark {
	n := g.n.Load()
	p.Value = float64(n)
	return mark{a: uint64(n)}
}

// Histogram counts durations by bucket.
type Histogram struct {
	bounds []int64 // nanoseconds
	counts []atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

// Observe adds one duration; one below zero counts as zero.
func (h *Histogram) Observe(d time.Duration) {
	n := max(int64(d), 0)
	i := 0
	for i < len(h.bounds) && n > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(n)
}

func (h *Histogram) init(f *family) {
	h.bounds = make([]int64, len(f.Buckets))
	for i, b := range f.Buckets {
		h.bounds[i] = int64(b * 1e9)
	}
	h.counts = make([]atomic.Uint64, len(f.Buckets)+1)
}

func (h *Histogram) read(p *telemetryv1.Point) mark {
	p.Counts = make([]uint64, len(h.counts))
	total := uint64(0)
	for i := range h.counts {
		p.Counts[i] = h.counts[i].Load()
		total += p.Counts[i]
	}
	// A duration that is counted but not summed yet makes the next mark differ.
	sum := h.sum.Load()
	p.Value = float64(sum) / 1e9
	return mark{a: total, b: uint64(sum)}
}
