package load

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config says what is sent, and how. Address and Requests are required.
type Config struct {
	Address string
	// Requests are sent in turn.
	Requests []*Request
	// Concurrency is the number of connections; with a rate, the most that may wait
	// for answers at once. Zero means 1.
	Concurrency int
	// Total ends the run after so many requests, Duration after that time; what
	// comes first, and zero means no end.
	Total    int64
	Duration time.Duration
	// Rate is requests per second at fixed times; latency then counts from the time
	// a request should have been sent. Zero: each connection sends when it has its
	// answer.
	Rate float64
	// Serials start here; each request gets the next.
	FirstSerial int64
	// Done is called after each request, by several goroutines at once. Optional.
	Done func(n int64, a *Answer, err error)
}

// Result is what a run gave.
type Result struct {
	Requests int64
	OK       int64
	Statuses map[int]int64    // answers, good or not
	Faults   map[string]int64 // by what was wrong
	Elapsed  time.Duration
	sorted   []time.Duration // latencies of good answers
}

// PerSecond is the rate of good answers.
func (r *Result) PerSecond() float64 { return float64(r.OK) / r.Elapsed.Seconds() }

// Percentile is the latency that p percent of the good answers stayed within.
func (r *Result) Percentile(p float64) time.Duration {
	if len(r.sorted) == 0 {
		return 0
	}
	return r.sorted[min(len(r.sorted)-1, int(p/100*float64(len(r.sorted))))]
}

// mostOfBody is how much of an error's body a fault tells.
const mostOfBody = 300

// sender is one connection's part of a run.
type sender struct {
	statuses  map[int]int64
	faults    map[string]int64
	latencies []time.Duration
	requests  int64
}

// Run sends requests until the configured end, or until ctx ends. Answers that are
// still outstanding then are waited for.
func Run(ctx context.Context, cfg Config) *Result {
	start := time.Now()
	var next atomic.Int64
	senders := make([]sender, max(1, cfg.Concurrency))
	var wait sync.WaitGroup
	for i := range senders {
		wait.Go(func() { senders[i].run(ctx, cfg, start, &next) })
	}
	wait.Wait()
	result := &Result{Elapsed: time.Since(start), Statuses: map[int]int64{}, Faults: map[string]int64{}}
	for i := range senders {
		s := &senders[i]
		result.Requests += s.requests
		result.sorted = append(result.sorted, s.latencies...)
		for status, n := range s.statuses {
			result.Statuses[status] += n
		}
		for what, n := range s.faults {
			result.Faults[what] += n
		}
	}
	result.OK = int64(len(result.sorted))
	slices.Sort(result.sorted)
	return result
}

func (s *sender) run(ctx context.Context, cfg Config, start time.Time, next *atomic.Int64) {
	s.statuses, s.faults = map[int]int64{}, map[string]int64{}
	conn := Dial(cfg.Address)
	defer conn.Close()
	for {
		n := next.Add(1) - 1
		at, more := cfg.turn(ctx, start, n)
		if !more {
			return
		}
		a, err := conn.Do(cfg.Requests[n%int64(len(cfg.Requests))], cfg.FirstSerial+n)
		s.note(&a, err, time.Since(at))
		if cfg.Done != nil {
			cfg.Done(n, &a, err)
		}
	}
}

// turn waits for the time of request n; more is false when the run is over.
func (cfg *Config) turn(ctx context.Context, start time.Time, n int64) (at time.Time, more bool) {
	at = time.Now()
	if cfg.Rate > 0 {
		at = start.Add(time.Duration(float64(n) / cfg.Rate * float64(time.Second)))
	}
	if ctx.Err() != nil || cfg.Total > 0 && n >= cfg.Total || cfg.Duration > 0 && at.Sub(start) >= cfg.Duration {
		return at, false
	}
	if wait := time.Until(at); wait > 0 {
		time.Sleep(wait)
	}
	return at, true
}

func (s *sender) note(a *Answer, err error, latency time.Duration) {
	s.requests++
	fault := a.Fault()
	if err != nil {
		fault = err.Error()
	} else if s.statuses[a.Status]++; fault != "" && a.Status != 200 {
		fault += ": " + string(a.Body[:min(len(a.Body), mostOfBody)])
	}
	if fault != "" {
		s.faults[fault]++
		return
	}
	s.latencies = append(s.latencies, latency)
}
