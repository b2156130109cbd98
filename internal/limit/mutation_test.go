package limit

import (
	"math/rand/v2"
	"testing"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// Each rule that is switched off lets some run pass a limit: so each is needed, and the
// laws of TestNeverOver can tell.
func TestRulesAreNeeded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		set  func(*setup)
	}{
		{"permits are not used after their deadline", func(set *setup) {
			set.answered = func(w *simWorker, _ time.Duration) {
				eachLease(w, func(l *lease) { l.deadline = never })
			}
		}},
		{"a deadline counts from the first send", func(set *setup) {
			seen := map[*lease]bool{}
			set.answered = func(w *simWorker, sent time.Duration) {
				eachLease(w, func(l *lease) {
					if !seen[l] {
						seen[l] = true
						l.deadline += w.clock() - sent
					}
				})
			}
		}},
		{"a call counts once", func(set *setup) {
			set.double = 0.5
			set.arriving = func(s *sim, req *ledgerv1.LimitsRequest) { req.Seq = uint64(s.calls) }
		}},
		{"used permits count for a window", func(set *setup) {
			set.arriving = func(_ *sim, req *ledgerv1.LimitsRequest) {
				for _, m := range req.GetMeters() {
					for _, r := range m.GetReturns() {
						r.Used = 0
					}
				}
			}
		}},
		{"slots are not used when they were not renewed", func(set *setup) {
			set.answered = func(w *simWorker, _ time.Duration) {
				for _, s := range w.book.subjects {
					s.slots.valid = never
				}
			}
		}},
		{"slots count until their requests have ended", func(set *setup) {
			set.arriving = func(_ *sim, req *ledgerv1.LimitsRequest) { req.LongestMs = 0 }
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(60) {
				set := breakable(rand.New(rand.NewPCG(seed, 4)))
				c.set(&set)
				s := newSim(t, seed, set)
				if s.run(20 * set.window); s.broken != "" {
					t.Logf("seed %d at %v: %s", seed, s.now, s.broken)
					return
				}
			}
			t.Error("no run passed a limit without it")
		})
	}
}

// breakable is a bad day with a limit in demand, now here and now there.
func breakable(r *rand.Rand) setup {
	window := 6 * time.Second
	limit := int64(20 + r.IntN(100))
	set := setup{window: window, share: skewed(), subject: Subject{Name: "key:a", RPM: limit}, rate: 1.3 * float64(limit) / window.Seconds()}
	if r.IntN(2) == 0 {
		set.share, set.burst = []float64{0.25, 0.25, 0.25, 0.25}, int(limit)
	}
	if r.IntN(2) == 0 {
		set.subject = Subject{Name: "key:a", Parallel: limit / 4}
		set.length = between(window/4, window)
	}
	return worst(set)
}

func eachLease(w *simWorker, do func(*lease)) {
	for _, s := range w.book.subjects {
		for _, l := range s.requests.leases {
			do(l)
		}
	}
}
