package telemetry

import (
	"testing"
	"time"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// point finds the point of a series of a full frame.
func point(t *testing.T, f *telemetryv1.Frame, name string) *telemetryv1.Point {
	t.Helper()
	for _, family := range f.Families {
		for _, s := range f.Series {
			for _, p := range f.Points {
				if family.Name == name && s.Family == family.Id && p.Series == s.Id {
					return p
				}
			}
		}
	}
	t.Fatalf("no point of %s", name)
	return nil
}

func TestFramesCarryWhatChanged(t *testing.T) {
	t.Parallel()
	m := New(Config{Worker: Worker{PodUID: "pod", Index: 3}})
	m.SpendNano.With("gpt-5", "a").Add(1_500_000_000)
	m.Duration.With("gpt-5").Observe(7 * time.Millisecond)
	m.JournalFill.Bind(func() float64 { return 0.25 })
	frames := &framer{registry: m.registry, worker: m.reporter.cfg.Worker.proto()}

	first := frames.next(time.UnixMilli(5))
	if !first.Full || first.Worker.GetPodUid() != "pod" || first.Worker.GetRole() != "gateway" || first.SentUnixMs != 5 {
		t.Errorf("the first frame must be full and name the worker: %v", first.Worker)
	}
	if len(first.Families) != len(Catalogue()) || len(first.Series) != len(first.Points) {
		t.Errorf("%d families, %d series, %d points", len(first.Families), len(first.Series), len(first.Points))
	}
	if p := point(t, first, "penstock_admitted_requests_total"); p.Value != 0 {
		t.Errorf("an unlabelled counter must be there at zero from the start, is %v", p.Value)
	}
	if p := point(t, first, "penstock_spend_usd_total"); p.Value != 1.5 {
		t.Errorf("nano-dollars must leave as dollars: %v", p.Value)
	}
	if p := point(t, first, "penstock_journal_fill_ratio"); p.Value != 0.25 {
		t.Errorf("bound gauges are asked: %v", p.Value)
	}
	if p := point(t, first, "penstock_request_duration_seconds"); p.Value != 0.007 || p.Counts[1] != 1 || len(p.Counts) != 18 {
		t.Errorf("7 ms belong into the bucket up to 10 ms: %v", p)
	}

	if second := frames.next(time.UnixMilli(6)); len(second.Points)+len(second.Series)+len(second.Families) != 0 || second.Full {
		t.Errorf("nothing changed, but the frame has %v", second)
	}
	m.ClientGone.Inc()
	m.Requests.With("gpt-5", "200", "a").Inc()
	if third := frames.next(time.UnixMilli(7)); len(third.Points) != 2 || len(third.Series) != 1 {
		t.Errorf("one changed and one new series, but the frame has %v", third)
	}
}

func TestHandlesIgnoreNonsense(t *testing.T) {
	t.Parallel()
	m := New(Config{})
	m.AdmittedInputTokens.Add(-5)
	m.Overhead.With("m").Observe(-time.Second)
	if m.AdmittedInputTokens.Value() != 0 {
		t.Error("a counter went down")
	}
	p := &telemetryv1.Point{}
	if m.Overhead.With("m").read(p); p.Value != 0 || p.Counts[0] != 1 {
		t.Errorf("a clock that went back counts as zero time: %v", p)
	}
}
