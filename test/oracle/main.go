// Command oracle compares our counts of tokens with those of the original tokenizer,
// over generated texts and over every code point. The script run starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/penstock-gateway/penstock/internal/tokens"
	"github.com/penstock-gateway/penstock/internal/tokens/tokenstest"
	"github.com/penstock-gateway/penstock/test/corpus"
)

var encodings = [...]tokens.Encoding{tokens.O200kBase, tokens.CL100kBase, tokens.P50kBase, tokens.R50kBase}

type options struct {
	script, node   string
	strings        int
	seed           uint64
	suites         []suite
	encodings      []tokens.Encoding
	processes      int
	referenceEvery int
	shown          int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("oracle", flag.ContinueOnError)
	flags.StringVar(&o.script, "script", "test/oracle/node/count.js", "the original tokenizer's script")
	flags.StringVar(&o.node, "node", "node", "the program that runs it")
	flags.IntVar(&o.strings, "strings", 1_000_000, "generated texts for each encoding")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixMilli()), "seed of the first text; the others have the seeds that follow")
	flags.IntVar(&o.processes, "processes", max(2, min(4, runtime.NumCPU())), "processes of the original tokenizer")
	flags.IntVar(&o.referenceEvery, "reference", 17, "check the slow reference, too, with every such text")
	flags.IntVar(&o.shown, "show", 20, "print so many differences")
	suites := flags.String("suites", "strings,combinations,code-points", "what to compare")
	names := flags.String("encodings", "o200k_base,cl100k_base,p50k_base,r50k_base", "the encodings")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.strings < 1 || o.processes < 1 || o.referenceEvery < 1 {
		return o, fmt.Errorf("cannot compare: -strings, -processes and -reference must be at least 1")
	}
	var err error
	if o.suites, err = choose(*suites, stringsSuite, combinationsSuite, codePointsSuite); err != nil {
		return o, fmt.Errorf("cannot read -suites: %w", err)
	}
	if o.encodings, err = choose(*names, encodings[:]...); err != nil {
		return o, fmt.Errorf("cannot read -encodings: %w", err)
	}
	return o, nil
}

// choose returns those of all that are named in a list.
func choose[T fmt.Stringer](list string, all ...T) ([]T, error) {
	var chosen []T
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(t T) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is none of %v", name, all)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func run(ctx context.Context, o options, out io.Writer) error {
	start := time.Now()
	counter, err := tokens.NewCounter()
	if err != nil {
		return err
	}
	c := &comparison{
		counter:        counter,
		references:     make(map[tokens.Encoding]*tokenstest.Reference),
		referenceEvery: o.referenceEvery,
		shown:          o.shown,
		out:            out,
		tallies:        make(map[tallyKey]tally),
	}
	for _, e := range o.encodings {
		if c.references[e], err = tokenstest.New(e.String()); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "-seed %d -strings %d, %d processes\n", o.seed, o.strings, o.processes)
	if err := ask(ctx, o, c); err != nil {
		return err
	}
	return c.report(o, out, time.Since(start))
}

// ask deals the batches to the processes.
func ask(ctx context.Context, o options, c *comparison) error {
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan batch)
	group.Go(func() error {
		defer close(batches)
		return deal(ctx, o, c, batches)
	})
	for range o.processes {
		group.Go(func() error {
			process, err := startOracle(o.node, o.script)
			if err != nil {
				return err
			}
			// When the process has failed, its exit says more than what it cost us.
			return errors.Join(c.work(process, batches), process.close())
		})
	}
	return group.Wait()
}

func deal(ctx context.Context, o options, c *comparison, batches chan<- batch) error {
	for _, s := range o.suites {
		for _, e := range o.encodings {
			for b := range batchesOf(s, e, o, c.references[e]) {
				select {
				case batches <- b:
				case <-ctx.Done():
					return fmt.Errorf("stopped: %w", context.Cause(ctx))
				}
			}
		}
	}
	return nil
}

func batchesOf(s suite, e tokens.Encoding, o options, reference *tokenstest.Reference) iter.Seq[batch] {
	switch s {
	case codePointsSuite:
		return codePointBatches(e)
	case combinationsSuite:
		return combinationBatches(e)
	default:
		return stringBatches(e, corpus.New(reference.Vocabulary()), o.seed, o.strings)
	}
}

// report prints what was compared and returns an error when something differs.
func (c *comparison) report(o options, out io.Writer, took time.Duration) error {
	var all tally
	failed := 0
	for _, s := range o.suites {
		for _, e := range o.encodings {
			t := c.tallies[tallyKey{s, e}]
			fmt.Fprintf(out, "%-11s %-12s %9d strings compared, %d differ\n", e, s, t.compared, t.differ)
			all.add(t)
			if t.differ > 0 || t.compared == 0 {
				failed++
			}
		}
	}
	fmt.Fprintf(out, "the slow reference:      %9d strings compared, %d differ\n", c.reference.compared, c.reference.differ)
	if c.reference.differ > 0 {
		failed++
	}
	if c.printed > c.shown {
		fmt.Fprintf(out, "%d more differences are not shown (-show)\n", c.printed-c.shown)
	}
	fmt.Fprintf(out, "%d strings compared, %d differ, in %s\n", all.compared, all.differ, took.Round(time.Second))
	suites := len(o.suites)*len(o.encodings) + 1
	fmt.Fprintf(out, "suites: %d passed, %d failed\n", suites-failed, failed)
	if failed > 0 {
		return fmt.Errorf("the counts differ from the original's: repeat with the -seed of a text and -strings 1, or with -suites combinations,code-points")
	}
	return nil
}
