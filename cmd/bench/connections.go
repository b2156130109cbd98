package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/pg"
)

// What --check asks of many pods.
const (
	connectionPods  = 29
	mostConnections = 60
	// noWait is what a client may wait while its connection is handed over.
	noWait = 50 * time.Millisecond
)

// connectionBench is many pods before one server.
type connectionBench struct {
	server   *pg.Server
	pods     []*ledgerPod
	consoles []*postgres.Console
	keys     []benchKey
}

// connectionSample is the worst that was seen.
type connectionSample struct {
	connections int // of all PgBouncers to PostgreSQL
	waiting     int // clients of all PgBouncers
	longest     time.Duration
	rows        int64
	looks       int
}

func (o *runOptions) runConnections(ctx context.Context, out io.Writer) (err error) {
	fmt.Fprintf(out, "starting PostgreSQL and %d pods of a spend-collector and a PgBouncer\n", connectionPods)
	b := &connectionBench{}
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.start(ctx, o.bin); err != nil {
		return err
	}
	worst, err := b.load(ctx, time.Duration(o.seconds*float64(time.Second)))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d pods, %.0f records/s: at most %d PostgreSQL connections, %d waiting clients, longest wait %v, in %d looks\n",
		connectionPods, float64(worst.rows)/o.seconds, worst.connections, worst.waiting, worst.longest, worst.looks)
	if o.accept && (worst.connections > mostConnections || worst.longest > noWait) {
		return fmt.Errorf("cannot accept: want at most %d connections, and no client that waits longer than %v", mostConnections, noWait)
	}
	return nil
}

func (b *connectionBench) start(ctx context.Context, bin string) error {
	var err error
	if b.server, err = pg.Start(ctx, pg.Config{}); err != nil {
		return err
	}
	direct, err := b.server.CreateDatabase(ctx, benchDatabase)
	if err != nil {
		return err
	}
	if _, err := postgres.Migrate(ctx, direct, postgres.Options{}); err != nil {
		return err
	}
	if b.keys, err = makeKeys(ctx, direct, 20); err != nil {
		return err
	}
	for range connectionPods {
		p, err := startLedgerPod(ctx, bin, b.server, benchDatabase)
		if err != nil {
			return err
		}
		b.pods = append(b.pods, p)
		console, err := postgres.NewConsole(p.bouncer.URL(benchDatabase))
		if err != nil {
			return err
		}
		b.consoles = append(b.consoles, console)
		if _, err := console.Pools(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *connectionBench) stop() error {
	var errs []error
	for _, c := range b.consoles {
		c.Close()
	}
	for _, p := range b.pods {
		errs = append(errs, p.stop())
	}
	if b.server != nil {
		errs = append(errs, b.server.Stop())
	}
	return errors.Join(errs...)
}

// load has all pods commit, renew and lease for a time, and looks on.
func (b *connectionBench) load(ctx context.Context, d time.Duration) (connectionSample, error) {
	workers := make([]*worker, len(b.pods))
	for i, p := range b.pods {
		var err error
		if workers[i], err = p.newWorker(ctx, b.keys); err != nil {
			return connectionSample{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var wg sync.WaitGroup
	failed := make(chan error, 2*len(workers))
	for i, w := range workers {
		wg.Go(func() { failed <- w.commitOn(ctx, b.keys, rand.New(rand.NewPCG(uint64(i), 1))) })
		wg.Go(func() { failed <- w.askOn(ctx, b.keys) })
	}
	worst, err := b.look(ctx)
	wg.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	for _, w := range workers {
		worst.rows += int64(w.sent)
	}
	return worst, err
}

// commitOn sends a batch ten times per second until ctx ends.
func (w *worker) commitOn(ctx context.Context, keys []benchKey, random *rand.Rand) error {
	return paced(ctx, 100*time.Millisecond, func() error { return w.send(ctx, w.batches(keys, 20, random)) })
}

// askOn asks what requests wait for, twenty times per second until ctx ends.
func (w *worker) askOn(ctx context.Context, keys []benchKey) error {
	seq := uint64(1)
	return paced(ctx, 50*time.Millisecond, func() error {
		if _, err := w.client.Heartbeat(ctx, &ledgerv1.HeartbeatRequest{Holder: w.holder}); err != nil {
			return err
		}
		seq++
		_, err := w.client.Grant(ctx, &ledgerv1.GrantRequest{Holder: w.holder, Seq: seq, Wants: []*ledgerv1.Want{{Entities: []string{keys[seq%uint64(len(keys))].entity}, AmountNano: 1000}}})
		return err
	})
}

// paced repeats until ctx ends, which is no error.
func paced(ctx context.Context, pause time.Duration, do func() error) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if err := do(); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look counts connections and waiting clients until ctx ends.
func (b *connectionBench) look(ctx context.Context) (connectionSample, error) {
	var worst connectionSample
	err := paced(ctx, 100*time.Millisecond, func() error {
		// Those of this command itself are psql's.
		got, err := b.server.Query(ctx, benchDatabase, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'psql'")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(got)
		if err != nil {
			return err
		}
		worst.connections = max(worst.connections, n)
		waiting := 0
		for _, c := range b.consoles {
			p, err := c.Pools(ctx)
			if err != nil {
				return err
			}
			waiting += p.ClientsWaiting
			worst.longest = max(worst.longest, p.MaxWait)
		}
		worst.waiting = max(worst.waiting, waiting)
		worst.looks++
		return nil
	})
	return worst, err
}
