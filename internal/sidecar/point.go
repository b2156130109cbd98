package sidecar

import telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"

// define takes a metric's definition. The first one under a name stands for all workers.
func (m *merger) define(l *link, p *telemetryv1.Family) drop {
	f := readFamily(p)
	if f == nil || len(l.families) >= maxFamilies {
		return dropFamily
	}
	known := m.families[f.name]
	switch {
	case known != nil && !known.same(f):
		return dropFamily
	case known != nil:
		f = known
	case len(m.families) >= maxFamilies:
		return dropFamily
	default:
		m.families[f.name] = f
	}
	l.families[p.GetId()] = f
	return ""
}

// introduce ties a report's id to a series; a series that the worker told of in an
// earlier report goes on from there.
func (m *merger) introduce(l *link, p *telemetryv1.Series) drop {
	f := l.families[p.GetFamily()]
	if f == nil || !f.takes(p.GetValues()) {
		return dropSeries
	}
	s := l.worker.series[f][join(p.GetValues())]
	if s == nil {
		if l.worker.count >= maxWorkerSeries || m.series >= maxSeries {
			return dropSeriesBound
		}
		s = m.put(l.worker, f, p.GetValues())
	}
	if len(l.series) >= maxWorkerSeries {
		return dropSeriesBound
	}
	l.series[p.GetId()] = target{family: f, series: s}
	return ""
}

// set takes a point. live: its growth counts towards the rates.
func (m *merger) set(l *link, p *telemetryv1.Point, live bool) drop {
	t, known := l.series[p.GetSeries()]
	if !known || !t.family.fits(p) {
		return dropPoint
	}
	value := amountOf(p.GetValue())
	if t.family.kind != telemetryv1.Family_TYPE_GAUGE {
		if value.less(t.series.value) {
			return dropDecrease
		}
		for i, n := range p.GetCounts() {
			if n < t.series.counts[i] {
				return dropDecrease
			}
		}
	}
	if live && t.family.kind == telemetryv1.Family_TYPE_COUNTER {
		m.flow.grow(t.family.name, value.minus(t.series.value).float())
	}
	t.series.value = value
	copy(t.series.counts, p.GetCounts())
	return ""
}
