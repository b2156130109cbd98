package telemetry

import (
	"maps"
	"sync/atomic"
)

// Vec1 is a metric with one label. With is lock-free and allocates nothing for a known
// value; the handle may be kept. Values may alias a buffer that is reused later.
type Vec1[H any] struct{ vec[[1]string, H] }

// With finds or makes the series.
func (v *Vec1[H]) With(a string) *H { return v.with([1]string{a}) }

// Vec2 is a metric with two labels, see Vec1.
type Vec2[H any] struct{ vec[[2]string, H] }

// With finds or makes the series.
func (v *Vec2[H]) With(a, b string) *H { return v.with([2]string{a, b}) }

// Vec3 is a metric with three labels, see Vec1.
type Vec3[H any] struct{ vec[[3]string, H] }

// With finds or makes the series.
func (v *Vec3[H]) With(a, b, c string) *H { return v.with([3]string{a, b, c}) }

type labels interface {
	comparable
	[1]string | [2]string | [3]string
}

// vec is the shared inside: a copy-on-write map, because a worker meets a new series
// a thousand times at most and an old one at every request.
type vec[K labels, H any] struct {
	known    atomic.Pointer[map[K]*H]
	registry *registry
	family   *family
}

func (v *vec[K, H]) bind(r *registry, f *family) {
	v.registry, v.family = r, f
	v.known.Store(&map[K]*H{})
}

func (v *vec[K, H]) with(k K) *H {
	if h := (*v.known.Load())[k]; h != nil {
		return h
	}
	return v.find(k)
}

// find is the way of a value seen for the first time, one that must be cleaned, or
// one beyond the bound.
func (v *vec[K, H]) find(k K) *H {
	for i := range len(k) {
		k[i] = cleanLabel(k[i])
	}
	if h := v.findOrMake(k, v.registry.maxSeries); h != nil {
		return h
	}
	v.registry.folded.Inc()
	// The last label is the one with many values (a key's alias); folding it alone
	// keeps the model and the status readable. These series have their own room.
	for i := len(k) - 1; i > 0; i-- {
		k[i] = overflowLabel
		if h := v.findOrMake(k, v.registry.maxSeries+v.registry.maxSeries/8); h != nil {
			return h
		}
	}
	k[0] = overflowLabel
	return v.findOrMake(k, int(^uint(0)>>1)) // one series: it always has room
}

// findOrMake returns nil when the metric already has limit series.
func (v *vec[K, H]) findOrMake(k K, limit int) *H {
	known := *v.known.Load()
	if h := known[k]; h != nil {
		return h
	}
	if len(known) >= limit { // maps only grow: no lock is needed to know that it is full
		return nil
	}
	v.registry.mu.Lock()
	defer v.registry.mu.Unlock()
	known = *v.known.Load()
	if h := known[k]; h != nil {
		return h
	}
	if len(known) >= limit {
		return nil
	}
	h := new(H)
	values := make([]string, len(k))
	for i := range len(k) {
		values[i] = k[i]
	}
	v.registry.addLocked(v.family, values, any(h).(source))
	grown := maps.Clone(known)
	grown[k] = h
	v.known.Store(&grown)
	return h
}
