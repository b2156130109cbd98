package sidecar

import "github.com/prometheus/client_golang/prometheus"

// ownMetric is one of the sidecar's about itself. read calls set once per series.
type ownMetric struct {
	name   string
	help   string
	kind   prometheus.ValueType
	labels []string
	read   func(s stats, set func(value float64, labels ...string))
}

func ownMetrics() []ownMetric {
	plain := func(of func(stats) float64) func(stats, func(float64, ...string)) {
		return func(s stats, set func(float64, ...string)) { set(of(s)) }
	}
	return []ownMetric{
		{ownFamilyPrefix + "workers", "Workers that report now.", prometheus.GaugeValue, nil,
			plain(func(s stats) float64 { return float64(s.workers) })},
		{ownFamilyPrefix + "workers_gone", "Workers that left and whose counts are kept apart.", prometheus.GaugeValue, nil,
			plain(func(s stats) float64 { return float64(s.gone) })},
		{ownFamilyPrefix + "series", "Series kept over all workers.", prometheus.GaugeValue, nil,
			plain(func(s stats) float64 { return float64(s.series) })},
		{ownFamilyPrefix + "frames_total", "Frames taken from workers.", prometheus.CounterValue, nil,
			plain(func(s stats) float64 { return float64(s.frames) })},
		{ownFamilyPrefix + "dropped_total", "Parts of frames that were not taken, by reason.", prometheus.CounterValue, []string{"reason"},
			func(s stats, set func(float64, ...string)) {
				for _, reason := range drops() {
					set(float64(s.dropped[reason]), string(reason))
				}
			}},
	}
}

// own is the sidecar about itself.
func own(out chan<- prometheus.Metric, s stats) {
	for _, m := range ownMetrics() {
		desc := prometheus.NewDesc(m.name, m.help, m.labels, nil)
		m.read(s, func(value float64, labels ...string) { emit(out, desc, m.kind, value, labels...) })
	}
}
