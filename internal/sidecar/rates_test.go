package sidecar

import (
	"math"
	"testing"
	"time"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// watch is one worker seen by a sidecar, second by second.
type watch struct {
	t        *testing.T
	m        *merger
	r        *rates
	l        *link
	now      time.Time
	requests float64
}

func newWatch(t *testing.T, before float64) *watch {
	w := &watch{t: t, m: newMerger(), r: newRates(2*time.Second, time.Second), now: time.Unix(1_800_000_000, 0), requests: before}
	w.r.begin(w.now, w.m)
	w.l = attach(t, w.m, who(0, 1))
	w.send(full(who(0, 1), before, 0))
	return w
}

func (w *watch) send(f *telemetryv1.Frame) {
	f.SentUnixMs = w.now.UnixMilli()
	if !w.m.apply(w.l, f, w.now) {
		w.t.Fatal("the report was replaced")
	}
}

// second lets one pass with n requests and in flight as many.
func (w *watch) second(n float64) {
	w.now = w.now.Add(time.Second)
	w.requests += n
	w.send(&telemetryv1.Frame{Points: points(w.requests, n)})
	w.r.sample(w.now, w.m)
}

func (w *watch) want(why string, window string, rate float64) {
	w.t.Helper()
	all, known := w.r.read()
	if got := all.Windows[window]; !known || math.Abs(got.RequestsPerSecond-rate) > 1e-9 {
		w.t.Errorf("%s: %v requests/s over %s, want %v", why, got.RequestsPerSecond, window, rate)
	}
}

func TestRatesOverThreeWindows(t *testing.T) {
	t.Parallel()
	w := newWatch(t, 1e6)
	if _, known := w.r.read(); known {
		t.Error("before the first tick nothing is known, which is not zero")
	}
	w.second(10)
	w.want("what a worker did before it was watched is not a rate", "1s", 10)
	w.want("a young sidecar divides by what it saw", "60s", 10)
	for range 59 {
		w.second(20)
	}
	w.second(80)
	w.want("the last second", "1s", 80)
	w.want("ten seconds", "10s", (9*20+80)/10.0)
	w.want("a minute, without what came before it", "60s", (59*20+80)/60.0)
	all, _ := w.r.read()
	if all.InFlightRequests != 80 || all.Windows["10s"].InFlightRequests != (9*20+80)/10.0 || all.Workers != 1 {
		t.Errorf("in flight %v now, %v over 10 s, %d workers", all.InFlightRequests, all.Windows["10s"].InFlightRequests, all.Workers)
	}
	if !all.Timestamp.Equal(w.now) || all.Windows["60s"].Seconds != 60 {
		t.Errorf("the answer is of %v and spans %v s", all.Timestamp, all.Windows["60s"].Seconds)
	}
}

func TestAStallIsNoPeak(t *testing.T) {
	t.Parallel()
	w := newWatch(t, 0)
	for range 5 {
		w.second(10)
	}
	// The sidecar stood still; the frames of that time lie in the socket.
	sent := w.now
	w.now = w.now.Add(20 * time.Second)
	w.r.sample(w.now, w.m)
	for range 20 {
		sent = sent.Add(time.Second)
		w.requests += 10
		w.m.apply(w.l, &telemetryv1.Frame{SentUnixMs: sent.UnixMilli(), Points: points(w.requests, 1)}, w.now)
	}
	w.second(10)
	all, known := w.r.read()
	if got := all.Windows["1s"].RequestsPerSecond; !known || got > 40 {
		t.Errorf("%v requests/s after a stall at 10 requests/s: late frames must not look like a peak", got)
	}
	if got := value(w.m, familyAdmitted); got != w.requests {
		t.Errorf("the totals must have all of it: %v, want %v", got, w.requests)
	}
}

func TestAWorkerThatWasAwayIsNoPeak(t *testing.T) {
	t.Parallel()
	w := newWatch(t, 0)
	w.second(10)
	w.m.detach(w.l)
	for range 5 { // nobody reports
		w.now = w.now.Add(time.Second)
		w.r.sample(w.now, w.m)
	}
	if _, known := w.r.read(); known {
		t.Error("without a worker nothing is known, which is not zero")
	}
	w.requests += 5000
	w.l = attach(t, w.m, who(0, 1))
	w.send(full(who(0, 1), w.requests, 1))
	w.second(10)
	w.want("what happened meanwhile goes to the totals only", "1s", 10)
	if got := value(w.m, familyAdmitted); got != w.requests {
		t.Errorf("the total is %v, want %v", got, w.requests)
	}
}

func TestRatesNeverGoBelowZero(t *testing.T) {
	t.Parallel()
	w := newWatch(t, 100)
	w.second(10)
	w.requests = 50 // a worker that goes down is not believed
	w.second(0)
	w.want("a decrease", "1s", 0)
}

// A pod whose gateway is gone has no known rate, although its spend-collector reports.
func TestCollectorsAreNoWorkers(t *testing.T) {
	t.Parallel()
	w := newWatch(t, 0)
	collector := &telemetryv1.Worker{PodUid: "pod", Role: roleCollector, Epoch: []byte{15: 9}}
	attach(t, w.m, collector)
	w.second(10)
	if all, known := w.r.read(); !known || all.Workers != 1 {
		t.Errorf("%d workers serve (known %v), want 1", all.Workers, known)
	}
	w.m.detach(w.l)
	w.r.sample(w.now.Add(time.Second), w.m)
	if _, known := w.r.read(); known {
		t.Error("nobody serves: that is unknown, not zero")
	}
}
