package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/pg"
	"github.com/penstock-gateway/penstock/test/stack"
)

// What --check asks of the commit path.
const (
	leastCommitShare = 0.60                 // of plain COPY's rows per second
	mostCommitCPU    = 8 * time.Microsecond // of the collector, per record
)

// commitSample is one run of either way.
type commitSample struct {
	rows                       int
	took                       time.Duration
	collector, pgbouncer, post time.Duration // CPU time
}

func (s commitSample) rate() float64 { return float64(s.rows) / s.took.Seconds() }

// perRow is CPU time per record.
func (s commitSample) perRow(cpu time.Duration) time.Duration { return cpu / time.Duration(s.rows) }

// commitBench is a server with one pod, and the rows as psql takes them.
type commitBench struct {
	server    *pg.Server
	pod       *ledgerPod
	keys      []benchKey
	partition string
	file      string // the rows
	random    *rand.Rand
}

const benchDatabase = "bench"

func (o *runOptions) runCommit(ctx context.Context, out io.Writer) (err error) {
	fmt.Fprintln(out, "starting PostgreSQL, PgBouncer and a spend-collector")
	b, err := newCommitBench(ctx, o.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	// The first run warms up and leaves the rows that psql copies.
	if _, err := b.commit(ctx, o.records); err != nil {
		return err
	}
	if err := b.export(ctx); err != nil {
		return err
	}
	var commits, copies []commitSample
	for n := range o.runs {
		through, err := b.commit(ctx, o.records)
		if err != nil {
			return err
		}
		plain, err := b.copy(ctx, o.records)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "run %d: commit path %.0f rows/s, psql COPY %.0f rows/s\n", n+1, through.rate(), plain.rate())
		commits, copies = append(commits, through), append(copies, plain)
	}
	if err := o.publish(out, placeOfCommit, o.commitTable(commits, copies)); err != nil {
		return err
	}
	if why := commitDefect(commits, copies); why != "" && o.accept {
		return errors.New("cannot accept: " + why)
	}
	return nil
}

// newCommitBench starts everything. Commits are on the disk when they are answered.
func newCommitBench(ctx context.Context, bin string) (*commitBench, error) {
	b := &commitBench{random: rand.New(rand.NewPCG(1, 2))}
	var err error
	if b.server, err = pg.Start(ctx, pg.Config{Settings: []string{
		"fsync = on", "synchronous_commit = on", "shared_buffers = '256MB'", "max_wal_size = '4GB'",
	}}); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx, bin); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

func (b *commitBench) prepare(ctx context.Context, bin string) error {
	direct, err := b.server.CreateDatabase(ctx, benchDatabase)
	if err != nil {
		return err
	}
	if _, err := postgres.Migrate(ctx, direct, postgres.Options{}); err != nil {
		return err
	}
	if b.keys, err = makeKeys(ctx, direct, 50); err != nil {
		return err
	}
	if b.pod, err = startLedgerPod(ctx, bin, b.server, benchDatabase); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "rows")
	if err != nil {
		return fmt.Errorf("cannot make a folder (TMPDIR): %w", err)
	}
	b.file = filepath.Join(folder, "rows.tsv")
	b.partition = "spend_records_p" + time.Now().UTC().Format("20060102")
	return os.Chmod(folder, 0o777) // psql runs as another user
}

func (b *commitBench) stop() error {
	var errs []error
	if b.pod != nil {
		errs = append(errs, b.pod.stop())
	}
	if b.file != "" {
		errs = append(errs, os.RemoveAll(filepath.Dir(b.file)))
	}
	return errors.Join(append(errs, b.server.Stop())...)
}

// commit sends records as a new worker and waits for their acks.
func (b *commitBench) commit(ctx context.Context, rows int) (commitSample, error) {
	w, err := b.pod.newWorker(ctx, b.keys)
	if err != nil {
		return commitSample{}, err
	}
	batches := w.batches(b.keys, rows, b.random)
	if err := b.empty(ctx); err != nil {
		return commitSample{}, err
	}
	return b.measure(ctx, rows, func() error { return w.send(ctx, batches) })
}

// copy has psql copy the same rows.
func (b *commitBench) copy(ctx context.Context, rows int) (commitSample, error) {
	if err := b.empty(ctx); err != nil {
		return commitSample{}, err
	}
	return b.measure(ctx, rows, func() error {
		_, err := b.server.Query(ctx, benchDatabase, fmt.Sprintf(`\copy %s from '%s'`, b.partition, b.file))
		return err
	})
}

// measure times one way of writing rows and makes sure that they are all there.
func (b *commitBench) measure(ctx context.Context, rows int, write func() error) (commitSample, error) {
	collector, pool, server := b.pod.collector(), b.pod.pool(), stack.UsageOf(b.server.PID())
	start := time.Now()
	if err := write(); err != nil {
		return commitSample{}, err
	}
	s := commitSample{rows: rows, took: time.Since(start)}
	s.collector = b.pod.collector().CPU - collector.CPU
	s.pgbouncer = b.pod.pool().CPU - pool.CPU
	s.post = stack.UsageOf(b.server.PID()).CPU - server.CPU
	got, err := b.server.Query(ctx, benchDatabase, "SELECT count(*) FROM "+b.partition)
	if err == nil && got != fmt.Sprint(rows) {
		err = fmt.Errorf("cannot trust the run: %s rows are in %s, want %d", got, b.partition, rows)
	}
	return s, err
}

// empty makes the partition as it was at the start, and writes what is dirty, so that no
// run pays for the one before.
func (b *commitBench) empty(ctx context.Context) error {
	for _, sql := range []string{"TRUNCATE " + b.partition, "CHECKPOINT"} {
		if _, err := b.server.Query(ctx, benchDatabase, sql); err != nil {
			return err
		}
	}
	return nil
}

func (b *commitBench) export(ctx context.Context) error {
	_, err := b.server.Query(ctx, benchDatabase, fmt.Sprintf(`\copy %s to '%s'`, b.partition, b.file))
	return err
}

// commitTable is Markdown, medians of all runs.
func (o *runOptions) commitTable(commits, copies []commitSample) string {
	var t strings.Builder
	fmt.Fprintf(&t, "`%s`, %s\n\n", o.commitLine(), machine())
	t.WriteString("| way | rows/s | collector | PgBouncer | PostgreSQL (all its processes) |\n|---|--:|--:|--:|--:|\n")
	for _, way := range []struct {
		name string
		runs []commitSample
	}{{"record stream → collector → PgBouncer → partition, roll-ups, leases, cursor", commits}, {"psql `\\copy` into the same partition", copies}} {
		cpu := func(of func(commitSample) time.Duration) string {
			d := middle(way.runs, func(s commitSample) time.Duration { return s.perRow(of(s)) })
			if d == 0 {
				return "–"
			}
			return fmt.Sprintf("%.2f µs", float64(d)/1e3)
		}
		fmt.Fprintf(&t, "| %s | %.0f | %s | %s | %s |\n", way.name, middle(way.runs, commitSample.rate),
			cpu(func(s commitSample) time.Duration { return s.collector }), cpu(func(s commitSample) time.Duration { return s.pgbouncer }),
			cpu(func(s commitSample) time.Duration { return s.post }))
	}
	fmt.Fprintf(&t, "\nShare of plain COPY: **%.0f %%** (asked for: at least %.0f %%). CPU time of the collector per record: **%.2f µs** (at most %.0f µs).\n",
		100*commitShare(commits, copies), 100*leastCommitShare, float64(collectorCPU(commits))/1e3, float64(mostCommitCPU)/1e3)
	return t.String()
}

func (o *runOptions) commitLine() string {
	line := fmt.Sprintf("bench run --scenario commit --runs %d --records %d", o.runs, o.records)
	if o.accept {
		line += " --check"
	}
	return line
}

// commitShare is the median over pairs of runs that followed each other, so that a
// change of the machine meets both alike.
func commitShare(commits, copies []commitSample) float64 {
	shares := make([]float64, len(commits))
	for i := range commits {
		shares[i] = commits[i].rate() / copies[i].rate()
	}
	return middle(shares, func(v float64) float64 { return v })
}

func collectorCPU(commits []commitSample) time.Duration {
	return middle(commits, func(s commitSample) time.Duration { return s.perRow(s.collector) })
}

func commitDefect(commits, copies []commitSample) string {
	if share := commitShare(commits, copies); share < leastCommitShare {
		return fmt.Sprintf("the commit path reaches %.0f %% of plain COPY, want %.0f %%", 100*share, 100*leastCommitShare)
	}
	if cpu := collectorCPU(commits); cpu > mostCommitCPU {
		return fmt.Sprintf("the collector takes %v of CPU time per record, want %v", cpu, mostCommitCPU)
	}
	return ""
}
