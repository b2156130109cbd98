package collector

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/telemetry"
)

const (
	// poolsEvery is the pace at which PgBouncer is asked for its figures.
	poolsEvery = 5 * time.Second
	// poolsAway is the longest pause while it does not tell them.
	poolsAway = time.Minute
	// poolsTimeout gives up a console that hangs. Nothing waits for it.
	poolsTimeout = time.Second
)

// poolWatch takes the figures of the pod's PgBouncer to the metrics-sidecar.
type poolWatch struct {
	c       *Collector
	read    func(context.Context) (store.Pools, error)
	out     *telemetry.Pool
	maxWait atomic.Int64 // nanoseconds
	before  store.Pools  // for the totals
}

func newPoolWatch(c *Collector) *poolWatch {
	w := &poolWatch{c: c, read: c.cfg.Pools, out: c.cfg.PoolMetrics}
	w.out.MaxWait.Bind(func() float64 { return time.Duration(w.maxWait.Load()).Seconds() })
	return w
}

// run ends with ctx, or when there is no PgBouncer at the database's address.
func (w *poolWatch) run(ctx context.Context) {
	pause := poolsEvery
	for {
		err := w.observe(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrNotFound):
			w.c.log.Info("the database's address is no PgBouncer, so there are no figures of one")
			return
		case err != nil:
			w.c.log.Debug("cannot read PgBouncer's figures", "error", err)
			pause = min(2*pause, poolsAway)
		default:
			pause = poolsEvery
		}
		if !sleep(ctx, jitter(pause)) {
			return
		}
	}
}

// observe reads the figures once.
func (w *poolWatch) observe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, poolsTimeout)
	defer cancel()
	p, err := w.read(ctx)
	if err != nil {
		w.show(store.Pools{}, 0) // an old figure would look like a present one
		return err
	}
	w.show(p, 1)
	w.out.Transactions.Add(since(p.Transactions, w.before.Transactions))
	w.out.Wait.Add(since(int64(p.Waited), int64(w.before.Waited)))
	w.before = p
	return nil
}

func (w *poolWatch) show(p store.Pools, up int64) {
	w.out.Up.Set(up)
	w.out.Servers.With("used").Set(int64(p.ServersUsed))
	w.out.Servers.With("idle").Set(int64(p.ServersIdle))
	w.out.Clients.With("active").Set(int64(p.ClientsActive))
	w.out.Clients.With("waiting").Set(int64(p.ClientsWaiting))
	w.maxWait.Store(int64(p.MaxWait))
}

// since is how far a total has come. One that is lower began anew with a new PgBouncer.
func since(now, before int64) int64 {
	if now < before {
		return now
	}
	return now - before
}
