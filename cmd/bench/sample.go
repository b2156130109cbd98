package main

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/penstock-gateway/penstock/test/load"
)

// sample is what one run, or the median of several, gave.
type sample struct {
	requests  float64
	perSecond float64
	tokens    float64            // prompt tokens per second
	perCPU    map[string]float64 // requests per CPU second, by role; absent: no CPU time was seen
	p50, p99  time.Duration
	success   float64 // share of good answers
	rss       float64 // bytes, of the process that requests pass
	faults    map[string]int64
}

// serials never repeat in one process life, so that no two requests are the same.
var serials atomic.Int64

// measure sends a target's load for a time; rate 0 is the closed loop.
func (t *target) measure(ctx context.Context, d time.Duration, rate float64) (sample, error) {
	before, err := t.usage()
	if err != nil {
		return sample{}, err
	}
	const room = 1 << 32 // more than any run sends
	var promptTokens atomic.Int64
	connections := t.concurrency
	if rate > 0 {
		connections *= 8 // those that wait must not hold up the next
	}
	result := load.Run(ctx, load.Config{
		Address: t.address, Requests: t.requests, Concurrency: connections, Duration: d, Rate: rate, FirstSerial: serials.Add(room),
		Done: func(_ int64, a *load.Answer, err error) {
			if err == nil {
				promptTokens.Add(promptTokensOf(a.Body))
			}
		},
	})
	after, err := t.usage()
	if err != nil {
		return sample{}, err
	}
	s := sample{
		requests: float64(result.Requests), perSecond: result.PerSecond(), tokens: float64(promptTokens.Load()) / result.Elapsed.Seconds(),
		p50: result.Percentile(50), p99: result.Percentile(99), success: float64(result.OK) / float64(max(1, result.Requests)),
		perCPU: map[string]float64{}, rss: float64(after[gatewayRole].RSS), faults: result.Faults,
	}
	for role, u := range after {
		if cpu := u.CPU - before[role].CPU; cpu > 0 {
			s.perCPU[role] = float64(result.OK) / cpu.Seconds()
		}
	}
	return s, ctx.Err()
}

// promptTokensOf reads the number out of an answer's usage; 0 where it has none.
func promptTokensOf(body []byte) int64 {
	_, rest, _ := bytes.Cut(body, []byte(`"prompt_tokens":`))
	end := bytes.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })
	n, err := strconv.ParseInt(string(rest[:max(0, end)]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// median takes each number's own.
func median(runs []sample) sample {
	m := sample{
		requests: middle(runs, func(s sample) float64 { return s.requests }), perSecond: middle(runs, func(s sample) float64 { return s.perSecond }),
		tokens: middle(runs, func(s sample) float64 { return s.tokens }), success: 1, rss: middle(runs, func(s sample) float64 { return s.rss }),
		p50: middle(runs, func(s sample) time.Duration { return s.p50 }), p99: middle(runs, func(s sample) time.Duration { return s.p99 }),
		perCPU: map[string]float64{}, faults: map[string]int64{},
	}
	for _, role := range roles() {
		var seen []sample
		for _, s := range runs {
			if s.perCPU[role] > 0 {
				seen = append(seen, s)
			}
		}
		if len(seen) > 0 {
			m.perCPU[role] = middle(seen, func(s sample) float64 { return s.perCPU[role] })
		}
	}
	for _, s := range runs {
		m.success = min(m.success, s.success) // a failure is never averaged away
		for what, n := range s.faults {
			m.faults[what] += n
		}
	}
	return m
}

func middle[S any, T cmp.Ordered](runs []S, field func(S) T) T {
	all := make([]T, len(runs))
	for i, s := range runs {
		all[i] = field(s)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
