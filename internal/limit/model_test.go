package limit

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// seeds is how many bad days TestNeverOver lives through; a long run takes thousands.
var seeds = flag.Uint64("seeds", 90, "bad days to simulate")

// skewed is 90 % of the load on one of eight workers.
func skewed() []float64 {
	share := make([]float64, 8)
	for i := range share {
		share[i] = 0.1 / 7
	}
	share[0] = 0.9
	return share
}

func between(from, to time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return from + time.Duration(r.Int64N(int64(to-from))) }
}

// worst is a network and a cluster on a bad day.
func worst(set setup) setup {
	set.delay = func(r *rand.Rand) time.Duration {
		if r.IntN(20) == 0 {
			return time.Duration(r.Int64N(int64(set.window / 3))) // overtakes and is overtaken
		}
		return time.Duration(r.Int64N(int64(set.window / 200)))
	}
	set.loss, set.double = 0.05, 0.1
	set.kills, set.cuts = 1/set.window.Seconds(), 0.5/set.window.Seconds()
	return set
}

func badDay(r *rand.Rand) setup {
	window := []time.Duration{2 * time.Second, 6 * time.Second, time.Minute}[r.IntN(3)]
	share := make([]float64, 8)
	for i := range share {
		share[i] = r.ExpFloat64() / 8
	}
	if r.IntN(2) == 0 {
		share = skewed()
	}
	limit := int64(1 + r.IntN(200))
	set := setup{window: window, share: share, subject: Subject{Name: "key:a"}}
	if r.IntN(3) > 0 {
		set.subject.RPM = limit
	}
	if r.IntN(3) > 0 || set.subject.RPM == 0 {
		set.subject.Parallel = 1 + limit/8
		set.length = between(0, window/2)
	}
	if r.IntN(3) == 0 {
		set.subject.TPM = 100 * limit
		set.tokens = func(r *rand.Rand) int64 { return r.Int64N(200) }
	}
	set.burst = []int{1, 1, 10}[r.IntN(3)]
	set.rate = float64(limit) / window.Seconds() * []float64{0.3, 1, 3}[r.IntN(3)]
	return worst(set)
}

// No limit is passed in any window, whatever happens.
func TestNeverOver(t *testing.T) {
	t.Parallel()
	for seed := range *seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 2))
			set := badDay(r)
			if seed%3 == 0 {
				set = breakable(r)
			}
			s := newSim(t, seed, set)
			s.run(12 * set.window)
			if s.broken != "" {
				t.Errorf("%+v at %v: %s", set.subject, s.now, s.broken)
			}
			if len(s.all) == 0 && set.rate*set.window.Seconds() > 5 {
				t.Error("nothing was ever admitted")
			}
			if err := s.ledger.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func calmNet(set setup) setup {
	set.delay = between(500*time.Microsecond, 5*time.Millisecond)
	return set
}

// usage is the part of the limit that was used: the time that so many windows' worth
// of requests should have taken, by the time that they took. Only for a load above the limit.
func (s *sim) usage(limit int64, windows int) float64 {
	last := int(limit) * windows
	if len(s.all) <= last {
		return 0
	}
	return float64(windows) * float64(s.set.window) / float64(s.all[last].at-s.all[0].at)
}

// At least 95 % of a limit can be used while nine tenths of the load are on one worker.
func TestUsable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why    string
		window time.Duration
		limit  int64
		rate   float64 // of the limit
	}{
		{"a minute, twice the load", time.Minute, 600, 2},
		{"a minute, a little more than the limit", time.Minute, 600, 1.1},
		{"six seconds", 6 * time.Second, 600, 2},
		{"a large limit", time.Minute, 6000, 1.5},
		{"ten times the load", time.Minute, 600, 10},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			set := calmNet(setup{window: c.window, share: skewed(), subject: Subject{Name: "key:a", RPM: c.limit}, rate: c.rate * float64(c.limit) / c.window.Seconds()})
			s := newSim(t, 7, set)
			s.run(12 * c.window)
			used := s.usage(c.limit, 10)
			t.Logf("%.3f used; %d calls for %d admitted, %d refused", used, s.calls, len(s.all), s.refused)
			if s.broken != "" || used < 0.95 {
				t.Errorf("%s; %.3f of the limit used, want 95 %%", s.broken, used)
			}
		})
	}
}

// Slots are as usable as requests: those of a limit are taken nearly all of the time.
func TestSlotsUsable(t *testing.T) {
	t.Parallel()
	const limit = 40
	set := calmNet(setup{
		window: time.Minute, share: skewed(), subject: Subject{Name: "key:a", Parallel: limit},
		rate: 3 * limit, length: between(0, 2*time.Second),
	})
	s := newSim(t, 3, set)
	sum, n := int64(0), int64(0)
	for at := time.Second; at < time.Minute; at += 100 * time.Millisecond {
		s.run(at)
		sum, n = sum+s.running, n+1
	}
	t.Logf("%.1f of %d slots in use; %d calls for %d admitted, %d refused", float64(sum)/float64(n), limit, s.calls, len(s.all), s.refused)
	if s.broken != "" || float64(sum) < 0.95*limit*float64(n) {
		t.Errorf("%s; %.1f of %d slots in use, want 95 %%", s.broken, float64(sum)/float64(n), limit)
	}
}

// Requests that take less than they were charged make room, and those that take more
// are made up for: over a long time no more tokens are used than the limit has, and most
// of them are.
func TestTokensCorrected(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	for why, actual := range map[string]func(*rand.Rand, int64) int64{
		"most take half":         func(r *rand.Rand, n int64) int64 { return n/4 + r.Int64N(n/2) },
		"many take a third more": func(r *rand.Rand, n int64) int64 { return n + r.Int64N(n*2/3) },
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			used := int64(0)
			set := calmNet(setup{
				window: time.Minute, share: skewed(), subject: Subject{Name: "key:a", TPM: limit},
				rate: 20, tokens: func(*rand.Rand) int64 { return 400 }, length: between(0, time.Second),
				actual: func(r *rand.Rand, n int64) int64 {
					n = actual(r, n)
					used += n
					return n
				},
			})
			s := newSim(t, 5, set)
			s.run(10 * time.Minute)
			perWindow := float64(used) / 10
			t.Logf("%.0f tokens per window; %d calls for %d admitted", perWindow, s.calls, len(s.all))
			if perWindow > 1.1*limit || perWindow < 0.85*limit { // the first window counts for two at its ends
				t.Errorf("%.0f tokens per window, limit %d", perWindow, limit)
			}
		})
	}
}

// While nothing is in demand the ledger is rarely asked.
func TestQuiet(t *testing.T) {
	t.Parallel()
	set := calmNet(setup{window: time.Minute, share: skewed(), subject: Subject{Name: "key:a", RPM: 60_000, TPM: 60_000_000, Parallel: 1000}, rate: 200,
		tokens: func(r *rand.Rand) int64 { return 500 + r.Int64N(500) }, length: between(0, 500*time.Millisecond)})
	s := newSim(t, 3, set)
	s.run(3 * time.Minute)
	perRequest := float64(s.calls) / float64(len(s.all))
	t.Logf("%d calls for %d requests: %.3f", s.calls, len(s.all), perRequest)
	if s.refused > 0 || perRequest > 0.05 {
		t.Errorf("%d refused, %.3f calls per request; want none, and at most 0.05", s.refused, perRequest)
	}
}

// A long tail of keys that are rarely used asks together and rarely: a call is two
// statements where nobody else is at the same keys.
func TestLongTail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why   string
		limit Subject
		most  float64 // calls per request
	}{
		{"requests", Subject{RPM: 60}, 0.05},
		{"requests and tokens", Subject{RPM: 60, TPM: 100_000}, 0.05},
		{"parallel requests", Subject{Parallel: 10}, 0.06},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			set := calmNet(setup{
				window: time.Minute, share: []float64{1}, subject: c.limit, keys: 1000, rate: 200, length: between(0, time.Second),
				tokens: func(r *rand.Rand) int64 { return 500 + r.Int64N(500) },
				actual: func(r *rand.Rand, n int64) int64 { return n - r.Int64N(200) },
			})
			s := newSim(t, 11, set)
			s.run(time.Minute)
			calls, requests := s.calls, len(s.all)
			s.run(2 * time.Minute)
			perRequest := float64(s.calls-calls) / float64(len(s.all)-requests)
			t.Logf("%.3f calls per request", perRequest)
			if s.refused > 0 || perRequest > c.most {
				t.Errorf("%d refused, %.3f calls per request; want none, and at most %.2f", s.refused, perRequest, c.most)
			}
		})
	}
}
