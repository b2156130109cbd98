package main

import (
	"context"
	"fmt"
	"time"
)

// hostileResult is what one input gave.
type hostileResult struct {
	input
	once, twice   []time.Duration          // ours: the planned size and its double
	small, double map[string]time.Duration // the others and ours: the small size and its double, minimum
}

// doubling is how much longer twice the input takes. Minima: a pause of the machine is
// not the counter's.
func (h *hostileResult) doubling() float64 { return ratio(least(h.twice), least(h.once)) }

// hostileRounds is how often an input is counted: for ours, and for the small sizes.
const (
	hostileRounds = 9
	smallRounds   = 2
)

// attack counts hostile inputs with ours, which must not be stalled by any.
func (r *runner) attack(ctx context.Context) error {
	for _, in := range hostile() {
		r.hostile = append(r.hostile, &hostileResult{input: in, small: map[string]time.Duration{}, double: map[string]time.Duration{}})
	}
	ours := r.entrant(nameOurs)
	if ours == nil {
		return nil
	}
	texts := make([][]*text, len(r.hostile))
	for i, h := range r.hostile {
		texts[i] = []*text{newText("", h.make(r.plan.hostile)), newText("", h.make(2*r.plan.hostile))}
	}
	for range hostileRounds {
		for i, h := range r.hostile {
			p, err := ours.counter.pass(texts[i])
			if err != nil {
				return err
			}
			h.once, h.twice = append(h.once, p.elapsed[0]), append(h.twice, p.elapsed[1])
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// attackOthers counts smaller ones with all, and compares the counts.
func (r *runner) attackOthers(ctx context.Context) error {
	for i, h := range r.hostile {
		var texts []*text
		for _, n := range []int{r.plan.others, 2 * r.plan.others} {
			t, err := writeText(r.dir, fmt.Sprintf("hostile-%d-%d", i, n), h.make(n))
			if err != nil {
				return err
			}
			texts = append(texts, t)
		}
		if err := r.attackWith(ctx, h, texts); err != nil {
			return err
		}
	}
	return nil
}

// attackWith lets all candidates count an input in both sizes.
func (r *runner) attackWith(ctx context.Context, h *hostileResult, texts []*text) error {
	var want []int // the counts of the first that is exact
	for round := range smallRounds {
		for _, e := range r.entrants {
			if e.name == nameFirstPass || e.name == nameFirstSight {
				continue
			}
			p, err := e.counter.pass(texts)
			if err != nil {
				return err
			}
			if want == nil && e.exact {
				want = p.tokens
			}
			if round == 0 {
				h.small[e.name], h.double[e.name] = p.elapsed[0], p.elapsed[1]
				e.compare(h.name, p.tokens, want)
			}
			h.small[e.name] = min(h.small[e.name], p.elapsed[0])
			h.double[e.name] = min(h.double[e.name], p.elapsed[1])
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// compare notes counts that differ from those of one that is exact, where there is one.
func (e *entrant) compare(name string, got, want []int) {
	for i := range want {
		if got[i] != want[i] {
			e.differs(groupHostile, name, got[i], want[i])
		}
	}
}
