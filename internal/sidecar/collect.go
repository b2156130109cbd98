package sidecar

import (
	"github.com/prometheus/client_golang/prometheus"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// collector turns the sums into constant metrics, at each scrape anew.
type collector struct{ server *Server }

// Describe sends nothing: which metrics there are is up to the workers.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	own(out, c.server.merger.stats())
	if !c.server.settled() {
		return // sums that lack a worker would look like a reset
	}
	sums := c.server.merger.snapshot()
	for _, m := range sums {
		m.collect(out)
	}
	litellm(out, sums)
}

func (m merged) collect(out chan<- prometheus.Metric) {
	desc := prometheus.NewDesc(m.family.name, m.family.help, m.family.labels, nil)
	for _, s := range m.series {
		switch m.family.kind {
		case telemetryv1.Family_TYPE_COUNTER:
			emit(out, desc, prometheus.CounterValue, s.value.float(), s.values...)
		case telemetryv1.Family_TYPE_GAUGE:
			emit(out, desc, prometheus.GaugeValue, s.value.float(), s.values...)
		case telemetryv1.Family_TYPE_HISTOGRAM:
			emitHistogram(out, desc, m.family.buckets, s)
		}
	}
}

// emit leaves out what client_golang refuses; names and values were checked when they
// came in, so that nothing should be.
func emit(out chan<- prometheus.Metric, desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	if metric, err := prometheus.NewConstMetric(desc, kind, value, labels...); err == nil {
		out <- metric
	}
}

func emitHistogram(out chan<- prometheus.Metric, desc *prometheus.Desc, bounds []float64, s *series) {
	cumulative, total := make(map[float64]uint64, len(bounds)), uint64(0)
	for i, n := range s.counts {
		total += n
		if i < len(bounds) {
			cumulative[bounds[i]] = total
		}
	}
	if metric, err := prometheus.NewConstHistogram(desc, total, s.value.float(), cumulative, s.values...); err == nil {
		out <- metric
	}
}
