package collector

import (
	"context"
	"time"
)

// maintainEvery is the pace of partitions ahead and rows past their keep.
const maintainEvery = time.Hour

// maintainTimeout bounds one run; dropping partitions waits for locks.
const maintainTimeout = 2 * time.Minute

// maintain runs the store's maintenance at the start and every hour.
func (c *Collector) maintain(ctx context.Context) {
	var failing backoff
	for {
		limited, cancel := context.WithTimeout(ctx, maintainTimeout)
		err := c.cfg.Store.Maintain(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failing.reset()
			if !sleep(ctx, jitter(maintainEvery)) {
				return
			}
		default:
			c.failed("cannot maintain the database", err, &failing)
			if !failing.wait(ctx) {
				return
			}
		}
	}
}

// failed logs what a loop could not do: a database that cannot be used once for all
// loops, anything else once for a row of failures.
func (c *Collector) failed(what string, err error, retry *backoff) {
	switch {
	case retryable(err):
		c.outage.failed(err)
	case retry.next == 0:
		c.log.Error(what, "error", err)
	}
}

// reap charges the leases of holders that are gone for good, but only while this
// collector's own connection has worked without a break for a whole ttl. After an
// outage every holder looks dead, although its worker waits to renew it.
func (c *Collector) reap(ctx context.Context) {
	watch := newSteadyWatch(c.cfg.TTL)
	for sleep(ctx, jitter(c.cfg.TTL/12)) {
		err := c.call(ctx, c.cfg.Store.Ping)
		if !watch.observe(time.Now(), err) {
			continue
		}
		err = c.call(ctx, func(ctx context.Context) error {
			n, err := c.cfg.Store.Reap(ctx, c.cfg.reapMargin())
			if n > 0 {
				c.stats.reaped.Add(int64(n))
				c.log.Warn("charged the leases of dead workers as lost", "holders", n)
			}
			return err
		})
		watch.observe(time.Now(), err)
		if err != nil && ctx.Err() == nil {
			c.log.Warn("cannot reap dead workers", "error", err)
		}
	}
}

// call runs one statement of a loop within its time.
func (c *Collector) call(ctx context.Context, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return f(limited)
}

// steadyWatch says whether the database has answered without a break for a time.
type steadyWatch struct {
	need  time.Duration
	since time.Time // start of the unbroken time; zero: broken
	last  time.Time // last good answer
}

func newSteadyWatch(need time.Duration) *steadyWatch { return &steadyWatch{need: need} }

// observe takes the outcome of one call. A silence between two good answers counts as
// a break as well: this process was stopped and saw nothing.
func (w *steadyWatch) observe(now time.Time, err error) (steady bool) {
	switch {
	case err != nil:
		w.since = time.Time{}
		return false
	case w.since.IsZero(), now.Sub(w.last) > w.need/2:
		w.since = now
	}
	w.last = now
	return now.Sub(w.since) >= w.need
}
