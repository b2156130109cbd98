package collector

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errStuck ends a stop before its time.
var errStuck = errors.New("the database takes no records")

// Stop refuses new work, commits and acks what has arrived, and closes the sockets.
// What the database does not take before ctx ends stays in the workers' journals; the
// error then says so. While their workers are there, records wait for a database that
// takes nothing no longer than Config.StopWait.
func (c *Collector) Stop(ctx context.Context) error {
	c.beginStop()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	// When time is up, waiting commits are given up and connections cut.
	unhook := context.AfterFunc(ctx, func() {
		c.abandonCommit()
		c.rpc.Stop()
		c.http.Close()
	})
	defer unhook()
	stopped := make(chan struct{})
	c.loops.Go(func() { c.watchStop(stopped, giveUp) })

	var err error
	c.servers.Go(func() { err = c.http.Shutdown(ctx) })
	c.rpc.GracefulStop() // every Record stream ends once what it sent is acked
	c.lanes.close()
	close(stopped)
	c.loops.Wait()
	c.servers.Wait()
	c.abandonCommit()
	if ctx.Err() != nil {
		err = fmt.Errorf("cannot stop in time, the rest stays in the journals: %w", context.Cause(ctx))
	}
	s := c.Stats()
	c.log.Info("collector stopped", "records", s.RecordsCommitted, "commits", s.Commits,
		"grants", s.Grants, "gaps", s.Gaps, "refused", s.Refused, "unavailable", s.Unavailable)
	return err
}

// watchStop gives up when nothing was committed for StopWait although records wait,
// and their workers are connected: they bring them to the next collector, which gets
// nothing while this one has their streams. Records of workers that have gone are
// tried to the end, because the pod, and its journals with it, may be going too.
func (c *Collector) watchStop(stopped <-chan struct{}, giveUp context.CancelCauseFunc) {
	ticker := time.NewTicker(c.cfg.StopWait)
	defer ticker.Stop()
	for before := c.stats.commits.Load(); ; {
		select {
		case <-stopped:
			return
		case <-ticker.C:
		}
		now := c.stats.commits.Load()
		if now == before && c.stats.streams.Load() > 0 && c.lanes.waiting() {
			c.log.Warn("stopping without the records that wait: the database takes none, and the workers keep them",
				"waited", c.cfg.StopWait.String(), "cause", c.outage.cause())
			giveUp(errStuck)
			return
		}
		before = now
	}
}
