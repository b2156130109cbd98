package telemetry

import (
	"math"
	"sync/atomic"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// GaugeFunc is a value that is asked for when a frame is made, about four times a
// second. Unbound, it is zero.
type GaugeFunc struct {
	ask atomic.Pointer[func() float64]
}

// Bind sets the function; it is called by the reporter's goroutine and must not block.
func (g *GaugeFunc) Bind(ask func() float64) { g.ask.Store(&ask) }

func (g *GaugeFunc) init(*family)                {}
func (g *GaugeFunc) bind(r *registry, f *family) { r.add(f, nil, g) }

func (g *GaugeFunc) read(p *telemetryv1.Point) mark {
	if ask := g.ask.Load(); ask != nil {
		p.Value = (*ask)()
	}
	return mark{a: math.Float64bits(p.Value)}
}
