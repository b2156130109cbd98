package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What is asked for, see the table that it is printed in.
const (
	wantAdmission    = 2500 * time.Microsecond
	wantFirstSight   = 6 * time.Millisecond
	wantCode         = 2 * time.Millisecond
	wantHostile      = 60 * time.Millisecond
	wantDistinct     = 15.0
	wantSight        = 5.0
	mostDoubling     = 2.3
	notMeasured      = "–"
	verdictPass      = "pass"
	verdictFail      = "**FAIL**"
	verdictNoted     = "met" // of milliseconds, which are the machine's too
	verdictNotedFail = "not met"
)

// wantProse is the time for distinct prose, by the order of sizes.
func wantProse() []time.Duration {
	return []time.Duration{1200 * time.Microsecond, 1800 * time.Microsecond, 2500 * time.Microsecond}
}

// goal is a line of the table of targets.
type goal struct {
	what, target, measured string
	verdict                string
}

// accepted judges what does not depend on the machine's speed.
func accepted(ok bool) string {
	if ok {
		return verdictPass
	}
	return verdictFail
}

// noted tells whether a time was reached, on this machine.
func noted(got, want time.Duration) string {
	switch {
	case got == 0:
		return notMeasured
	case got <= want:
		return verdictNoted
	}
	return verdictNotedFail
}

// goals holds all that was measured against what is asked for.
func (r *runner) goals() []goal {
	var all []goal
	for i, tokens := range r.plan.tokens {
		all = append(all, r.timeGoal("distinct prose, "+thousands(tokens)+", median", r.median(nameOurs, kindProse, tokens), wantProse()[i]))
	}
	most := r.plan.largest()
	size := thousands(most)
	for _, kind := range []string{kindMarkdown, kindGo} {
		all = append(all, r.timeGoal("distinct "+kind+", "+size+", median", r.median(nameOurs, kind, most), wantCode))
	}
	all = append(all,
		r.timeGoal("first sight (nothing learned), prose, "+size, r.median(nameFirstSight, kindProse, most), wantFirstSight),
		goal{"first pass (learning from prompt to prompt), prose, " + size, "", milliseconds(r.median(nameFirstPass, kindProse, most)), ""},
		r.timeGoal(fmt.Sprintf("whole admission of a body of %d KB with prose of %s", r.admission.bytes/1000, size), median(r.admission.elapsed), wantAdmission),
	)
	for _, kind := range kinds() {
		all = append(all, r.ratioGoal("ratio to tiktoken-go, distinct "+kind+", "+size, kind, nameOurs, wantDistinct))
	}
	for _, kind := range kinds() {
		all = append(all, r.ratioGoal("ratio to tiktoken-go, first sight, "+kind+", "+size, kind, nameFirstSight, wantSight))
	}
	all = append(all, r.hostileGoals()...)
	all = append(all, r.allocationGoal())
	return append(all, goal{"start-up: a counter with its tables ready, time and heap", "", fmt.Sprintf("%s, %.1f MB", milliseconds(r.startUp.elapsed), float64(r.startUp.heap)/1e6), ""})
}

func (r *runner) timeGoal(what string, got, want time.Duration) goal {
	return goal{what, "≤ " + milliseconds(want), milliseconds(got), noted(got, want)}
}

func (r *runner) ratioGoal(what, kind, name string, want float64) goal {
	g := goal{what, fmt.Sprintf("≥ %.0f ×", want), notMeasured, notMeasured}
	got := ratio(r.median(nameTiktokenGo, kind, r.plan.largest()), r.median(name, kind, r.plan.largest()))
	if got > 0 {
		g.measured, g.verdict = fmt.Sprintf("%.1f ×", got), accepted(got >= want)
	}
	return g
}

// hostileGoals are those of the input that is worst in time, and in growth.
func (r *runner) hostileGoals() []goal {
	size := fmt.Sprintf("%.3g KB", float64(r.plan.hostile)/1000)
	slow := goal{"slowest hostile input of " + size, "≤ " + milliseconds(wantHostile), notMeasured, notMeasured}
	growth := goal{"largest growth when such an input is doubled", fmt.Sprintf("≤ %.1f ×", mostDoubling), notMeasured, notMeasured}
	if len(r.hostile) == 0 || len(r.hostile[0].once) == 0 {
		return []goal{slow, growth}
	}
	worst := slices.MaxFunc(r.hostile, func(a, b *hostileResult) int { return int(median(a.once) - median(b.once)) })
	slow.measured, slow.verdict = fmt.Sprintf("%s (%s)", milliseconds(median(worst.once)), worst.name), noted(median(worst.once), wantHostile)
	steepest := slices.MaxFunc(r.hostile, func(a, b *hostileResult) int { return int(1e6 * (a.doubling() - b.doubling())) })
	growth.measured, growth.verdict = fmt.Sprintf("%.2f × (%s)", steepest.doubling(), steepest.name), accepted(steepest.doubling() <= mostDoubling)
	return []goal{slow, growth}
}

func (r *runner) allocationGoal() goal {
	g := goal{"allocations per count, most", "0", notMeasured, notMeasured}
	if r.entrant(nameOurs) != nil {
		g.measured, g.verdict = strconv.Itoa(r.allocated), accepted(r.allocated == 0)
	}
	return g
}

// refused is an error when a ratio was not reached.
func (r *runner) refused() error {
	var missed []string
	for _, g := range r.goals() {
		if g.verdict == verdictFail {
			missed = append(missed, fmt.Sprintf("%s: %s, want %s", g.what, g.measured, g.target))
		}
	}
	if missed == nil {
		return nil
	}
	return errors.New("cannot accept: " + strings.Join(missed, "; "))
}

// cell finds what a candidate gave for a kind and size; nil: nothing.
func (r *runner) cell(name, kind string, tokens int) *cell {
	e := r.entrant(name)
	if e == nil {
		return nil
	}
	for s, c := range e.cells {
		if s.kind == kind && s.tokens == tokens {
			return c
		}
	}
	return nil
}

// median is zero where nothing was measured.
func (r *runner) median(name, kind string, tokens int) time.Duration {
	if c := r.cell(name, kind, tokens); c != nil {
		return median(c.elapsed)
	}
	return 0
}
