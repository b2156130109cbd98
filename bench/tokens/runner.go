package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// runner makes the texts, opens the candidates and measures them in turn.
type runner struct {
	o    *options
	plan plan
	out  io.Writer

	dir      string
	corpus   *corpus
	entrants []*entrant
	absent   []*candidate

	startUp   startUp
	allocated int // by one count of ours, at most
	hostile   []*hostileResult
	admission admission
}

// startUp is what it takes until the first count.
type startUp struct {
	elapsed time.Duration
	heap    int64 // bytes that stay
}

// entrant is a candidate that takes part, with what it gave.
type entrant struct {
	*candidate
	counter counter
	cells   map[*set]*cell
	// wrong are the texts of each group that it counted other than expected.
	wrong map[string][]string
}

// Groups of texts beside the kinds of prompts.
const (
	groupHard    = "hard texts"
	groupHostile = "hostile inputs"
)

// differs notes a text that was counted other than expected.
func (e *entrant) differs(group, text string, got, want int) {
	e.wrong[group] = append(e.wrong[group], fmt.Sprintf("%s: %d tokens, want %d", text, got, want))
}

// cell is what one candidate gave for one set.
type cell struct {
	elapsed            []time.Duration
	allocations, bytes float64 // per text, in the pass with the fewest
}

func (r *runner) say(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

// prepare makes everything that is measured.
func (r *runner) prepare(ctx context.Context) error {
	var err error
	if r.dir, err = os.MkdirTemp("", "penstock-bench-tokens"); err != nil {
		return fmt.Errorf("cannot make a folder (TMPDIR): %w", err)
	}
	if err := errors.Join(writeVocabulary(r.dir), os.CopyFS(r.dir, children)); err != nil {
		return fmt.Errorf("cannot write what the candidates need (TMPDIR): %w", err)
	}
	if r.startUp, err = measureStartUp(); err != nil {
		return err
	}
	ours, err := warmed()
	if err != nil {
		return err
	}
	r.say("cutting prompts")
	r.corpus, err = makeCorpus(ctx, r.dir, r.plan, func(b []byte) int { return ours.Count(encoding, b) })
	if err != nil {
		return err
	}
	return r.open(ctx)
}

func measureStartUp() (startUp, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	c, err := warmed()
	elapsed := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(c)
	return startUp{elapsed: elapsed, heap: int64(after.HeapAlloc) - int64(before.HeapAlloc)}, err
}

// open opens the candidates; those that are not installed are left out.
func (r *runner) open(ctx context.Context) error {
	chosen, err := r.o.candidates()
	if err != nil {
		return err
	}
	e := &environment{tools: r.o.tools, dir: r.dir}
	for _, c := range chosen {
		opened, err := c.open(ctx, e)
		if errors.Is(err, errAbsent) {
			r.say("left out: %s is not installed below --tools %q", c.name, r.o.tools)
			r.absent = append(r.absent, c)
			continue
		}
		if err != nil {
			return err
		}
		r.entrants = append(r.entrants, &entrant{candidate: c, counter: opened, cells: map[*set]*cell{}, wrong: map[string][]string{}})
	}
	return nil
}

func (r *runner) close() error {
	var errs []error
	for _, e := range r.entrants {
		errs = append(errs, e.counter.close())
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}

// measure runs all that is measured.
func (r *runner) measure(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"hard texts", r.tryHardTexts},
		{"warming up", r.warm},
		{"prompts", r.rounds},
		{"allocations", r.allocate},
		{"whole admission", r.admit},
		{"hostile inputs", r.attack},
		{"smaller hostile inputs, the others too", r.attackOthers},
	} {
		start := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("cannot measure: %s: %w", step.what, err)
		}
		r.say("%s: %.1f s", step.what, time.Since(start).Seconds())
	}
	return nil
}

// tryHardTexts notes how many of the texts that some libraries get wrong each gets wrong.
func (r *runner) tryHardTexts(context.Context) error {
	var texts []*text
	for i, h := range hardTexts() {
		t, err := writeText(r.dir, fmt.Sprintf("hard-%d", i), []byte(h.text))
		if err != nil {
			return err
		}
		texts = append(texts, t)
	}
	for _, e := range r.entrants {
		p, err := e.counter.pass(texts)
		if err != nil {
			return err
		}
		for i, h := range hardTexts() {
			if p.tokens[i] != h.tokens {
				e.differs(groupHard, strconv.Quote(h.text), p.tokens[i], h.tokens)
			}
		}
	}
	return nil
}

// warm lets each candidate see texts of all sets before anything is noted: ours all of
// them, so that the shared counter has learned, the others enough for their compilers
// and caches.
func (r *runner) warm(ctx context.Context) error {
	for _, e := range r.entrants {
		for _, s := range r.corpus.sets {
			texts := s.texts
			if e.name != nameOurs {
				texts = texts[:1]
			}
			if _, err := e.counter.pass(texts); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// rounds lets the candidates take turns: in each round and set, one pass each.
func (r *runner) rounds(ctx context.Context) error {
	for round := range r.o.rounds {
		for _, s := range r.corpus.sets {
			for _, e := range r.entrants {
				if round%e.every != 0 {
					continue
				}
				if err := e.run(s); err != nil {
					return err
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
	}
	return nil
}

// run is one pass over a set.
func (e *entrant) run(s *set) error {
	p, err := e.counter.pass(s.texts)
	if err != nil {
		return err
	}
	c := e.cells[s]
	if c == nil {
		c = &cell{allocations: p.allocations, bytes: p.bytes}
		e.cells[s] = c
		for i, n := range p.tokens { // a count does not change from pass to pass
			if n != s.tokens {
				e.differs(s.kind, filepath.Base(s.texts[i].file), n, s.tokens)
			}
		}
	}
	c.elapsed = append(c.elapsed, p.elapsed...)
	c.allocations, c.bytes = min(c.allocations, p.allocations), min(c.bytes, p.bytes)
	return nil
}

// allocate counts each prompt alone with ours and notes the most allocations.
func (r *runner) allocate(ctx context.Context) error {
	c, err := warmed()
	if err != nil {
		return err
	}
	for _, s := range r.corpus.sets {
		for _, t := range s.texts {
			r.allocated = max(r.allocated, fewestAllocations(countWith(c), t))
		}
	}
	return ctx.Err()
}

// fewestAllocations counts a text a few times: some of the allocations seen are the
// runtime's own, or make again what a collection of garbage took.
func fewestAllocations(count local, t *text) int {
	const tries = 5
	fewest := math.MaxInt
	for range tries {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		count(t)
		runtime.ReadMemStats(&after)
		fewest = min(fewest, int(after.Mallocs-before.Mallocs))
	}
	return fewest
}

// wrong is an error when a candidate that is meant to be exact was not: then either it
// or the prompts, which ours has cut, are wrong.
func (r *runner) wrong() error {
	var errs []error
	for _, e := range r.entrants {
		if !e.exact {
			continue
		}
		for group, texts := range e.wrong {
			errs = append(errs, fmt.Errorf("%s is meant to be exact and differs in %d %s, the first %s", e.name, len(texts), group, texts[0]))
		}
	}
	return errors.Join(errs...)
}

// entrant finds one by name; nil: it does not take part.
func (r *runner) entrant(name string) *entrant {
	for _, e := range r.entrants {
		if e.name == name {
			return e
		}
	}
	return nil
}
