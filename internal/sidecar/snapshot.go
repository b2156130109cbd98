package sidecar

import (
	"maps"
	"strings"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// merged is one metric summed over all workers; it belongs to the caller.
type merged struct {
	family *family
	series []*series
}

// stats is the merger about itself.
type stats struct {
	workers int
	gone    int
	series  int
	frames  uint64
	dropped map[drop]uint64
}

// snapshot copies the sums, so that a slow scrape holds up no frame.
func (m *merger) snapshot() map[string]merged {
	m.mu.Lock()
	defer m.mu.Unlock()
	sums := make(map[string]merged, len(m.families))
	for name, f := range m.families {
		sums[name] = merged{family: f, series: m.sum(f)}
	}
	return sums
}

func (m *merger) sum(f *family) []*series {
	byValues := make(map[string]*series, len(m.summed.series[f]))
	var all []*series
	take := func(w *worker) {
		for joined, s := range w.series[f] {
			total := byValues[joined]
			if total == nil {
				total = &series{values: s.values, counts: make([]uint64, len(s.counts))}
				byValues[joined] = total
				all = append(all, total)
			}
			switch {
			case !f.byMaximum():
				total.add(s)
			case total.value.less(s.value):
				total.value = s.value
			}
		}
	}
	take(m.summed)
	for _, w := range m.workers {
		take(w)
	}
	return all
}

// byMaximum is for gauges of which a sum says nothing: shares and ages.
func (f *family) byMaximum() bool {
	return f.kind == telemetryv1.Family_TYPE_GAUGE &&
		(strings.HasSuffix(f.name, "_ratio") || strings.HasSuffix(f.name, "_seconds"))
}

func (m *merger) stats() stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.attached()
	return stats{workers: n, gone: len(m.workers) - n, series: m.series, frames: m.frames, dropped: maps.Clone(m.dropped)}
}
