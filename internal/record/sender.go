package record

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

var errNoAck = errors.New("no ack for records that were sent (AckTimeout)")

// send keeps a stream up until ctx ends. Each new stream begins behind the last
// ack; the collector drops what it knows.
func (r *Recorder) send(ctx context.Context) {
	pause := r.cfg.BackoffMin
	for {
		acked, began := r.Acked(), time.Now()
		err := r.stream(ctx)
		if ctx.Err() != nil {
			return
		}
		if r.Acked() > acked || time.Since(began) > r.cfg.BackoffMax {
			pause = r.cfg.BackoffMin
		}
		level := slog.LevelDebug // an outage is told once, not at every try
		if pause == r.cfg.BackoffMin {
			level = slog.LevelWarn
		}
		r.cfg.Logger.Log(ctx, level, "record stream broke, records wait in the journal", "error", err, "retry_in", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause/2+1)): // jitter: the workers of a pod break together
		}
		pause = min(2*pause, r.cfg.BackoffMax)
	}
}

// stream is one connection's life: it sends until the stream breaks.
func (r *Recorder) stream(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	conn, err := r.cfg.Client.Record(ctx)
	if err != nil {
		return err
	}
	s := &session{r: r, conn: conn, sent: r.Acked(), wake: make(chan struct{}, 1)}
	s.watchdog = time.AfterFunc(r.cfg.AckTimeout, func() { cancel(errNoAck) })
	s.watchdog.Stop() // nothing is sent yet
	defer s.watchdog.Stop()

	received := make(chan struct{})
	go func() {
		defer close(received)
		cancel(s.receive())
	}()
	s.run(ctx)
	cancel(nil)
	<-received // its acks move this session's state only
	return context.Cause(ctx)
}
