package telemetry

import "sync"

// family is a declared metric in this worker; its id lives as long as the process.
type family struct {
	Desc
	id uint32
}

// series is one set of label values; ids are dense, in the order of making.
type series struct {
	id     uint32
	family *family
	values []string
	source source
}

// registry knows all series. Families are complete after New, series only get more.
type registry struct {
	maxSeries int
	folded    *Counter
	families  []*family

	mu     sync.Mutex
	series []*series
}

func (r *registry) addFamily(d Desc) *family {
	f := &family{Desc: d, id: uint32(len(r.families))}
	r.families = append(r.families, f)
	return f
}

func (r *registry) add(f *family, values []string, s source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(f, values, s)
}

func (r *registry) addLocked(f *family, values []string, s source) {
	s.init(f)
	r.series = append(r.series, &series{id: uint32(len(r.series)), family: f, values: values, source: s})
}

// all is every series up to now; the slice is only ever appended to behind it.
func (r *registry) all() []*series {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.series
}
