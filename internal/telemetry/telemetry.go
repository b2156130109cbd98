// Package telemetry is what a worker measures: one declared set of metrics, handles
// that a request updates without a lock, and a reporter that sends what changed to
// the metrics-sidecar.
package telemetry

import (
	"context"
	"log/slog"
	"time"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// Worker names one process life; the sidecar sums by it.
type Worker struct {
	PodUID string
	Index  uint32
	Epoch  [16]byte // random, new with each process life
	Role   string   // default "gateway"; of a Pool RoleCollector
}

// Config says who reports, where to, and how much.
type Config struct {
	Worker    Worker
	Socket    string        // path of the sidecar's telemetry.sock; empty: nothing is sent
	Interval  time.Duration // between frames, default 250 ms
	MaxSeries int           // series per metric before labels fold into "other", default 1,000
	Logger    *slog.Logger  // default slog.Default()
}

// Metrics is the worker's whole set; the table in catalogue.go says what each means.
// All of it may be used by any number of goroutines. Fields are read, never replaced.
type Metrics struct {
	// Admission and progress: these move while a request runs and drive scaling.
	AdmittedRequests      Counter // after hold, before the first dispatch
	AdmittedInputTokens   Counter // counted prompt tokens of admitted requests
	DeliveredOutputTokens Counter // output tokens as they leave, streaming or not
	InFlightRequests      Gauge
	InFlightBodyBytes     Gauge

	// Outcome: these move once, when a request ends.
	Requests      Vec3[Counter]   // model, status (see StatusLabel), key alias
	InputTokens   Vec2[Counter]   // model, key alias
	OutputTokens  Vec2[Counter]   // model, key alias
	SpendNano     Vec2[Counter]   // model, key alias; Add takes nano-dollars
	Duration      Vec1[Histogram] // model
	Overhead      Vec1[Histogram] // model
	TimeToFirst   Vec1[Histogram] // model
	Refusals      Vec1[Counter]   // reason: the error code, or the step that refused
	Attempts      Vec2[Counter]   // provider, outcome
	ClientGone    Counter
	UsageRejected Vec1[Counter] // model
	Estimated     Vec1[Counter] // model
	OverrunNano   Vec1[Counter] // model; Add takes nano-dollars
	CapInjected   Counter
	CountWaits    Counter

	// State that is asked for when a frame is made.
	JournalFill    GaugeFunc // 0..1
	UnackedRecords GaugeFunc
	OldestUnacked  GaugeFunc // seconds

	// SeriesFolded counts look-ups that went to "other" because a metric was full.
	SeriesFolded Counter

	registry *registry
	reporter *reporter
}

func (c *Config) setDefaults(role string) {
	if c.MaxSeries <= 0 {
		c.MaxSeries = 1000
	}
	if c.Interval <= 0 {
		c.Interval = 250 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Worker.Role == "" {
		c.Worker.Role = role
	}
}

// New makes the set with every series that has no labels at zero. It starts nothing.
func New(cfg Config) *Metrics {
	cfg.setDefaults("gateway")
	m := &Metrics{}
	m.registry = &registry{maxSeries: cfg.MaxSeries, folded: &m.SeriesFolded}
	for _, row := range m.table() {
		row.field.bind(m.registry, m.registry.addFamily(row.Desc))
	}
	m.reporter = newReporter(cfg, m.registry)
	return m
}

// Start begins reporting; it never waits for the sidecar and never fails for one that
// is away.
func (m *Metrics) Start(context.Context) error {
	m.reporter.start()
	return nil
}

// Stop sends a last frame, waits until the sidecar has taken it, and ends the
// reporter. With ctx done, or the sidecar away, it gives up. Call it once, after Start.
func (m *Metrics) Stop(ctx context.Context) error {
	return m.reporter.stop(ctx)
}

func (w Worker) proto() *telemetryv1.Worker {
	return &telemetryv1.Worker{PodUid: w.PodUID, Index: w.Index, Epoch: w.Epoch[:], Role: w.Role}
}
