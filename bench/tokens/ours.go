package main

import (
	"context"

	"github.com/penstock-gateway/penstock/internal/tokens"
)

// encoding is the one that all candidates count in.
const encoding = tokens.O200kBase

// warmed makes a counter that has seen no text yet and waits for nothing.
func warmed() (*tokens.Counter, error) {
	c, err := tokens.NewCounter()
	if err != nil {
		return nil, err
	}
	c.Warm(encoding)
	return c, nil
}

func countWith(c *tokens.Counter) local {
	return func(t *text) int { return c.Count(encoding, t.bytes) }
}

// learned is one counter for everything, as a gateway has it.
func learned(context.Context, *environment) (counter, error) {
	c, err := warmed()
	return countWith(c), err
}

// perPass takes a new counter for each pass: it learns from text to text.
type perPass struct{}

func (perPass) pass(texts []*text) (pass, error) {
	c, err := warmed()
	if err != nil {
		return pass{}, err
	}
	return countWith(c).pass(texts)
}

func (perPass) close() error { return nil }

// perText takes a new counter for each text: nothing was learned before. The counters
// are made before the first text is timed, for making one clears five megabytes, which
// empties the processor's caches of the vocabulary.
type perText struct{}

func (perText) pass(texts []*text) (pass, error) {
	all := pass{allocations: -1, bytes: -1}
	counters := make([]*tokens.Counter, len(texts))
	for i := range counters {
		var err error
		if counters[i], err = warmed(); err != nil {
			return pass{}, err
		}
	}
	for i, c := range counters {
		one, err := countWith(c).pass(texts[i : i+1])
		if err != nil {
			return pass{}, err
		}
		all.tokens = append(all.tokens, one.tokens...)
		all.elapsed = append(all.elapsed, one.elapsed...)
	}
	return all, nil
}

func (perText) close() error { return nil }
