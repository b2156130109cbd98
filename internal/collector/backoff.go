package collector

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff waits longer after each failure, with jitter, so that the collectors of
// many pods do not come back to a restarted database in one wave.
type backoff struct {
	next time.Duration
}

const (
	backoffFirst = 50 * time.Millisecond
	backoffLast  = 2 * time.Second
)

// wait sleeps, and returns false when ctx ended first.
func (b *backoff) wait(ctx context.Context) bool {
	b.next = min(max(2*b.next, backoffFirst), backoffLast)
	return sleep(ctx, jitter(b.next))
}

func (b *backoff) reset() { b.next = 0 }

// jitter spreads d over 0.75 to 1.25 of itself.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}

// sleep waits for d, and returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
