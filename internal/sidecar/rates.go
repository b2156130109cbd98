package sidecar

import (
	"sync"
	"time"
)

// The series that drive scaling; each moves while a request runs.
const (
	familyAdmitted  = "penstock_admitted_requests_total"
	familyInput     = "penstock_admitted_input_tokens_total"
	familyDelivered = "penstock_delivered_output_tokens_total"
	familyInFlight  = "penstock_in_flight_requests"
)

// flow is what has passed since this sidecar began to watch.
type flow struct{ requests, input, output float64 }

func (f *flow) grow(family string, by float64) {
	switch family {
	case familyAdmitted:
		f.requests += by
	case familyInput:
		f.input += by
	case familyDelivered:
		f.output += by
	}
}

// sample is the flow at a tick; at carries a monotonic clock.
type sample struct {
	at       time.Time
	flow     flow
	inFlight float64
	workers  int
}

// Rates is the answer of /rates: what flows through the pod.
type Rates struct {
	Timestamp        time.Time         `json:"timestamp"` // of the last tick
	UnixMs           int64             `json:"unix_ms"`
	Workers          int               `json:"workers"`
	InFlightRequests float64           `json:"in_flight_requests"`
	Windows          map[string]Window `json:"windows"` // "1s", "10s", "60s"
}

// Window is the mean over the last ticks.
type Window struct {
	Seconds               float64 `json:"seconds"` // what the window really spans; less while the sidecar is young
	RequestsPerSecond     float64 `json:"requests_per_second"`
	InputTokensPerSecond  float64 `json:"input_tokens_per_second"`
	OutputTokensPerSecond float64 `json:"output_tokens_per_second"`
	TokensPerSecond       float64 `json:"tokens_per_second"`
	InFlightRequests      float64 `json:"in_flight_requests"`
}

// longestWindow is in ticks.
const longestWindow = 60

// rates is a ring of samples.
type rates struct {
	settle time.Duration
	tick   time.Duration

	mu      sync.Mutex
	started time.Time
	ring    []sample // oldest first, at most longestWindow+1
}

func newRates(settle, tick time.Duration) *rates { return &rates{settle: settle, tick: tick} }

func (r *rates) begin(now time.Time, m *merger) {
	r.mu.Lock()
	r.started = now
	r.mu.Unlock()
	r.sample(now, m)
}

// settled tells whether workers have had the time to report to a new sidecar.
func (r *rates) settled(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.started.IsZero() && now.Sub(r.started) >= r.settle
}

func (r *rates) sample(now time.Time, m *merger) {
	s := m.sample(now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.ring); n > 0 && now.Sub(r.ring[n-1].at) > r.tick+late {
		r.ring = r.ring[:0] // this process stood still: nothing is known about the time between
	}
	if len(r.ring) > longestWindow {
		copy(r.ring, r.ring[1:])
		r.ring = r.ring[:longestWindow]
	}
	r.ring = append(r.ring, s)
}

// read answers with the rates of the last tick. False: nothing is known, because it is
// too early or no worker reports, which must not be mistaken for zero.
func (r *rates) read() (Rates, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < 2 {
		return Rates{}, false
	}
	last := r.ring[len(r.ring)-1]
	if last.workers == 0 {
		return Rates{}, false
	}
	return Rates{
		Timestamp: last.at.UTC(), UnixMs: last.at.UnixMilli(), Workers: last.workers, InFlightRequests: last.inFlight,
		Windows: map[string]Window{"1s": r.over(1), "10s": r.over(10), "60s": r.over(longestWindow)},
	}, true
}

func (r *rates) over(ticks int) Window {
	from := max(0, len(r.ring)-1-ticks)
	first, last := r.ring[from], r.ring[len(r.ring)-1]
	w := Window{Seconds: last.at.Sub(first.at).Seconds()}
	if w.Seconds <= 0 {
		return w
	}
	w.RequestsPerSecond = (last.flow.requests - first.flow.requests) / w.Seconds
	w.InputTokensPerSecond = (last.flow.input - first.flow.input) / w.Seconds
	w.OutputTokensPerSecond = (last.flow.output - first.flow.output) / w.Seconds
	w.TokensPerSecond = w.InputTokensPerSecond + w.OutputTokensPerSecond
	for _, s := range r.ring[from+1:] {
		w.InFlightRequests += s.inFlight / float64(len(r.ring)-1-from)
	}
	return w
}

// sample reads what the rates need.
func (m *merger) sample(now time.Time) sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := sample{at: now, flow: m.flow, workers: m.serving()}
	f := m.families[familyInFlight]
	for _, w := range m.workers {
		for _, gauge := range w.series[f] {
			s.inFlight += gauge.value.float()
		}
	}
	return s
}

// roleCollector is the role of a process that reports and serves no requests: a pod with
// nothing but it has no known rate.
const roleCollector = "spend-collector"

// serving counts the workers that report and serve requests.
func (m *merger) serving() int {
	n := 0
	for _, w := range m.workers {
		if w.attached != 0 && w.key.role != roleCollector {
			n++
		}
	}
	return n
}
