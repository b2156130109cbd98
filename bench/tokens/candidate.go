package main

import (
	"context"
	"runtime"
	"time"
)

// candidate is a way to count tokens.
type candidate struct {
	name  string // for --only
	title string // in the tables
	// exact: it is meant to give what tiktoken gives, and this program fails when it
	// does not.
	exact bool
	// ours: it needs no yardstick to be compared with.
	ours  bool
	every int // slow ones take part in every n-th round only
	open  func(ctx context.Context, e *environment) (counter, error)
}

// environment is where a candidate finds what it needs.
type environment struct {
	tools string // folder of what was installed for other languages
	dir   string // a temporary folder: the texts and the vocabulary are in it
}

// counter is a candidate that is ready.
type counter interface {
	// pass counts each text once, in order.
	pass(texts []*text) (pass, error)
	close() error
}

// pass is what counting some texts gave.
type pass struct {
	tokens  []int
	elapsed []time.Duration
	// Per text, and -1 where it cannot be seen.
	allocations, bytes float64
}

// text is something to count.
type text struct {
	file  string // it is also in this file, for other processes
	bytes []byte
	str   string
}

func newText(file string, b []byte) *text { return &text{file: file, bytes: b, str: string(b)} }

// local counts in this process.
type local func(t *text) int

func (count local) pass(texts []*text) (pass, error) {
	p := pass{tokens: make([]int, len(texts)), elapsed: make([]time.Duration, len(texts))}
	runtime.GC() // what others left is not this one's to clean
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, t := range texts {
		start := time.Now()
		p.tokens[i] = count(t)
		p.elapsed[i] = time.Since(start)
	}
	runtime.ReadMemStats(&after)
	p.allocations = float64(after.Mallocs-before.Mallocs) / float64(len(texts))
	p.bytes = float64(after.TotalAlloc-before.TotalAlloc) / float64(len(texts))
	return p, nil
}

func (local) close() error { return nil }
