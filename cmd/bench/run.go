package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// The scenarios.
const (
	scenarioLarge   = "L1"
	scenarioShort   = "L2"
	scenarioFlood   = "flood"
	scenarioWorkers = "workers"
	scenarioCommit  = "commit"
	scenarioPods    = "pods"
	scenarioAll     = "all"
)

type runOptions struct {
	bin         string
	scenario    string
	workers     int
	runs        int
	seconds     float64
	concurrency int
	records     int
	rate        float64
	gatewayCPUs string
	loadCPUs    string
	write       string
	accept      bool
}

func newRun() *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Measure: large prompts (L1), and short chat beside HAProxy (L2)",
		Long: `run measures two scenarios, each answer checked, runs alternated, medians printed.

  L1  prompts of 50, 75 and 100 thousand tokens in equal shares, all different, half of
      them streams, max_tokens 16, a budgeted key, the in-process mock model
  L2  short chat through the fake upstream, half of it streams, beside HAProxy as a
      plain reverse proxy in front of the same upstream

The gateway (or HAProxy) has --gateway-cpus for itself; load, upstream, database and the
other processes share --load-cpus. First the closed loop, which tells the capacity, then
a fixed rate (half of it, or --rate) with latency from the time a request was due.
--scenario workers compares one process with N threads to N processes with one thread.

--scenario flood sends prompts of a million tokens, all different, to the in-process mock
in a closed loop, while other clients ask for /health/liveness every 10 ms and send a
small chat every 100 ms; runs without the flood alternate. Latencies count from the time
a request was due. With --check it fails unless liveness stays within 20 ms at p99.

--scenario commit sends records to a spend-collector, which commits them through PgBouncer
into a day's partition with sums, leases and cursor; psql copies the same rows straight into
the same partition in turn. With --check it fails below 60 % of psql's rows per second, or
above 8 µs of the collector's CPU time per record.

--scenario pods runs 29 spend-collectors, each with its PgBouncer, and counts connections to
PostgreSQL and waiting clients while all of them commit, renew and lease. With --check it
fails above 60 connections, or when a client waits.`,
		Example: `  bench run --bin bin
  bench run --bin bin --scenario L1 --runs 5
  bench run --bin bin --scenario workers --gateway-cpus 0,1 --load-cpus 0,1
  bench run --bin bin --scenario flood --check
  bench run --bin bin --scenario commit --runs 5`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.bin, "bin", "bin", "folder of the programs, as 'make build' makes it")
	f.StringVar(&o.scenario, "scenario", scenarioAll, "L1, L2, all (L1 and L2), workers, flood, commit, or pods")
	f.IntVar(&o.workers, "workers", 1, "gateway workers")
	f.IntVar(&o.runs, "runs", 3, "runs of each target; the median counts")
	f.Float64Var(&o.seconds, "seconds", 8, "length of a run")
	f.IntVar(&o.concurrency, "concurrency", 0, "connections of the closed loop (0: 4 in L1, 32 in L2, 8 in flood)")
	f.Float64Var(&o.rate, "rate", 0, "requests per second of the fixed rate (0: half of the closed loop)")
	f.StringVar(&o.gatewayCPUs, "gateway-cpus", "0", "CPUs of the gateway, as taskset takes them")
	f.StringVar(&o.loadCPUs, "load-cpus", "1", "CPUs of everything else")
	f.StringVar(&o.write, "write", "", "put the table into this file, between its markers")
	f.IntVar(&o.records, "records", 100_000, "commit: records of a run")
	f.BoolVar(&o.accept, "check", false, "flood, commit, pods: fail when the target is missed")
	return cmd
}

func (o *runOptions) check() error {
	switch o.scenario {
	case scenarioLarge, scenarioShort, scenarioAll, scenarioWorkers, scenarioFlood, scenarioCommit, scenarioPods:
	default:
		return fmt.Errorf("cannot run --scenario %s: want L1, L2, all, workers, flood, commit or pods", o.scenario)
	}
	if o.accept && (o.has(scenarioLarge) || o.has(scenarioShort) || o.scenario == scenarioWorkers) {
		return errors.New("cannot --check anything but --scenario flood, commit and pods")
	}
	if o.rate > 0 && o.scenario == scenarioFlood {
		return errors.New("cannot flood at a --rate: it is a closed loop")
	}
	if o.records < 1 && o.scenario == scenarioCommit {
		return errors.New("cannot run: --records must be above 0")
	}
	if o.runs < 1 || o.seconds <= 0 || o.concurrency < 0 || o.rate < 0 || o.workers < 1 {
		return errors.New("cannot run: --runs, --seconds and --workers must be above 0, --concurrency and --rate not below")
	}
	_, err := cpuSet(o.gatewayCPUs)
	return err
}

func (o *runOptions) has(scenario string) bool {
	return o.scenario == scenario || o.scenario == scenarioAll
}

func (o *runOptions) connections(scenario string) int {
	switch {
	case o.concurrency > 0:
		return o.concurrency
	case scenario == scenarioLarge:
		return 4
	case scenario == scenarioFlood:
		return 8
	}
	return 32
}

func (o *runOptions) run(ctx context.Context, out io.Writer) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	switch o.scenario {
	case scenarioCommit:
		return o.runCommit(ctx, out)
	case scenarioPods:
		return o.runConnections(ctx, out)
	}
	if err := pinSelf(o.loadCPUs); err != nil {
		return err
	}
	fmt.Fprintln(out, "starting the processes and writing prompts")
	b := &bench{o: o}
	defer func() { err = errors.Join(err, b.stop()) }()
	if o.scenario == scenarioFlood {
		return o.runFlood(ctx, b, out)
	}
	return o.runTargets(ctx, b, out)
}

func (o *runOptions) runTargets(ctx context.Context, b *bench, out io.Writer) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	rows, err := b.measure(ctx, out)
	if err != nil {
		return err
	}
	if err := o.publish(out, placeOfRun, o.table(rows)); err != nil {
		return err
	}
	return b.explain(out, failures(rows))
}

func (o *runOptions) runFlood(ctx context.Context, b *bench, out io.Writer) error {
	all, err := o.flood(ctx, b, out)
	if err != nil {
		return b.explain(out, err)
	}
	if err := o.publish(out, placeOfFlood, o.floodTable(all)); err != nil {
		return err
	}
	if why := floodDefect(all); why != "" && o.accept {
		return b.explain(out, errors.New("cannot accept: "+why))
	}
	return nil
}

// publish prints a table, and puts it into the file of --write.
func (o *runOptions) publish(out io.Writer, p place, table string) error {
	fmt.Fprint(out, "\n", table)
	if o.write == "" {
		return nil
	}
	return p.write(o.write, table)
}

// explain prints what the processes said when there is an error, which it returns.
func (b *bench) explain(out io.Writer, err error) error {
	if err != nil {
		for _, s := range b.stacks {
			fmt.Fprintln(out, s.Logs())
		}
	}
	return err
}

// row is one line of the table.
type row struct {
	target *target
	rate   float64 // 0: the closed loop
	sample sample
}

// measure runs all targets in turn, so that a change of the machine meets all alike:
// a warm-up, the closed loop, the fixed rate.
func (b *bench) measure(ctx context.Context, out io.Writer) ([]row, error) {
	length := time.Duration(b.o.seconds * float64(time.Second))
	for _, t := range b.targets {
		if _, err := t.measure(ctx, min(length, 2*time.Second), 0); err != nil {
			return nil, err
		}
	}
	rates := make([]float64, len(b.targets))
	closed, err := b.alternate(ctx, out, length, rates)
	if err != nil {
		return nil, err
	}
	for i, r := range closed {
		if rates[i] = b.o.rate; rates[i] == 0 {
			rates[i] = max(1, r.sample.perSecond/2)
		}
	}
	fixed, err := b.alternate(ctx, out, length, rates)
	return append(closed, fixed...), err
}

func (b *bench) alternate(ctx context.Context, out io.Writer, length time.Duration, rates []float64) ([]row, error) {
	runs := make([][]sample, len(b.targets))
	for n := range b.o.runs {
		for i, t := range b.targets {
			s, err := t.measure(ctx, length, rates[i])
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(out, "%s %s, run %d, %s: %.1f requests/s, p50 %s, p99 %s\n", t.scenario, t.name, n+1, loop(rates[i]),
				s.perSecond, milliseconds(s.p50), milliseconds(s.p99))
			runs[i] = append(runs[i], s)
		}
	}
	rows := make([]row, len(b.targets))
	for i, t := range b.targets {
		rows[i] = row{target: t, rate: rates[i], sample: median(runs[i])}
	}
	return rows, nil
}

// failures is an error when any answer was not good.
func failures(rows []row) error {
	for _, r := range rows {
		if len(r.sample.faults) > 0 {
			return fmt.Errorf("not every answer of %s %s was good: %v", r.target.scenario, r.target.name, r.sample.faults)
		}
	}
	return nil
}
