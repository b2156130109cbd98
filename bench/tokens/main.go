// Command tokens measures Penstock's token counter beside those of other projects, all in
// one run on one core, and writes the table of docs/benchmarks.md. It is a module of its
// own so that the others are not among the product's dependencies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

type options struct {
	rounds int
	only   string
	write  string
	list   bool
	quick  bool
	tools  string
	cpu    int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("tokens", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 12, "rounds; slow candidates take part in some of them")
	f.StringVar(&o.only, "only", "", "names of candidates, separated by commas; --list prints them")
	f.StringVar(&o.write, "write", "", "put the tables into this file, between their markers")
	f.BoolVar(&o.list, "list", false, "list the candidates and end")
	f.BoolVar(&o.quick, "quick", false, "tiny prompts, to try whether all is installed: the figures mean nothing and are not written")
	f.StringVar(&o.tools, "tools", "", "folder of what bench/tokens/run installed for other languages")
	f.IntVar(&o.cpu, "cpu", 0, "the CPU that everything runs on")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("cannot read the argument %q: there are only flags", f.Arg(0))
	case o.rounds < 1:
		return nil, errors.New("cannot run: --rounds must be above 0")
	}
	_, err := o.candidates()
	return o, err
}

// candidates are those that --only names, or all.
func (o *options) candidates() ([]*candidate, error) {
	all := everyCandidate()
	if o.only == "" {
		return all, nil
	}
	var chosen []*candidate
	for name := range strings.SplitSeq(o.only, ",") {
		found := false
		for _, c := range all {
			if c.name == name {
				chosen, found = append(chosen, c), true
			}
		}
		if !found {
			return nil, fmt.Errorf("cannot find the candidate %q (--only): see --list", name)
		}
	}
	return chosen, nil
}

// The candidates that tables and ratios ask for by name.
const (
	nameOurs       = "penstock"
	nameFirstPass  = "penstock-first-pass"
	nameFirstSight = "penstock-first-sight"
	nameTiktokenGo = "tiktoken-go"
)

// everyCandidate is in the order of the tables.
func everyCandidate() []*candidate {
	return []*candidate{
		{name: nameOurs, title: "**Penstock**", exact: true, ours: true, every: 1, open: learned},
		{name: nameFirstPass, title: "Penstock, first pass", exact: true, ours: true, every: 3, open: opened(perPass{})},
		{name: nameFirstSight, title: "Penstock, first sight", exact: true, ours: true, every: 3, open: opened(perText{})},
		{name: nameTiktokenGo, title: "Go: tiktoken-go/tokenizer v0.10.0", every: 3, open: openTiktokenGo},
		{name: "pkoukk", title: "Go: pkoukk/tiktoken-go v0.1.8", exact: true, every: 6, open: openPkoukk},
		{name: "npm-tiktoken", title: "Node: tiktoken 1.0.22 (WASM)", exact: true, every: 6, open: openNode("tiktoken.cjs")},
		{name: "gpt-tokenizer", title: "Node: gpt-tokenizer 4.0.0", every: 3, open: openNode("gpt-tokenizer.cjs")},
		{name: "python-tiktoken", title: "Python: tiktoken 0.14.0", exact: true, every: 6, open: openPython},
		{name: "bpe-openai", title: "Rust: bpe-openai 0.3.2", exact: true, every: 3, open: openRust},
	}
}

// opened is a counter that needs no opening.
func opened(c counter) func(context.Context, *environment) (counter, error) {
	return func(context.Context, *environment) (counter, error) { return c, nil }
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.list {
		for _, c := range everyCandidate() {
			fmt.Fprintf(out, "%-22s %s\n", c.name, strings.Trim(c.title, "*"))
		}
		return nil
	}
	if err := pin(o.cpu); err != nil {
		return err
	}
	r := &runner{o: o, plan: o.plan(), out: out}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.measure(ctx); err != nil {
		return err
	}
	text := r.report()
	fmt.Fprint(out, "\n", text)
	if o.quick {
		return r.wrong() // ratios of tiny texts say nothing
	}
	if o.write != "" {
		if err := writeBetween(o.write, text); err != nil {
			return err
		}
	}
	return errors.Join(r.wrong(), r.refused())
}
