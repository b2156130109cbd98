package telemetry

import (
	"time"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// framer makes the frames of one stream: the first is complete, the others carry what
// changed since.
type framer struct {
	registry *registry
	worker   *telemetryv1.Worker
	started  bool
	sent     []mark // by series id
}

// next is never nil: an empty frame tells the sidecar that the worker lives, and the
// worker that the sidecar does.
func (f *framer) next(now time.Time) *telemetryv1.Frame {
	frame := &telemetryv1.Frame{SentUnixMs: now.UnixMilli()}
	if !f.started {
		f.started = true
		frame.Worker, frame.Full = f.worker, true
		for _, family := range f.registry.families {
			frame.Families = append(frame.Families, family.proto())
		}
	}
	point := &telemetryv1.Point{}
	for _, s := range f.registry.all() {
		point.Series, point.Value, point.Counts = s.id, 0, nil // an unsent one is used again
		seen := s.source.read(point)
		if int(s.id) < len(f.sent) && f.sent[s.id] == seen {
			continue
		}
		if int(s.id) == len(f.sent) { // ids are dense and come in order
			f.sent = append(f.sent, seen)
			frame.Series = append(frame.Series, &telemetryv1.Series{Id: s.id, Family: s.family.id, Values: s.values})
		}
		f.sent[s.id] = seen
		frame.Points = append(frame.Points, point)
		point = &telemetryv1.Point{}
	}
	return frame
}

func (f *family) proto() *telemetryv1.Family {
	kinds := map[Kind]telemetryv1.Family_Type{
		KindCounter:   telemetryv1.Family_TYPE_COUNTER,
		KindGauge:     telemetryv1.Family_TYPE_GAUGE,
		KindHistogram: telemetryv1.Family_TYPE_HISTOGRAM,
	}
	return &telemetryv1.Family{Id: f.id, Name: f.Name, Help: f.Help, Type: kinds[f.Kind], Labels: f.Labels, Buckets: f.Buckets}
}
