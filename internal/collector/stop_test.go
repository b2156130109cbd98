package collector_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/store"
)

// journal of what a collector logs.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func refused(cause string) error {
	return fmt.Errorf("cannot do it: %w", &store.Unavailable{Cause: cause, Err: fmt.Errorf("driver")})
}

func TestAnOutageIsSaidOncePerCause(t *testing.T) {
	t.Parallel()
	var log logged
	b := setup(t, func(cfg *collector.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	h := holder(1)
	b.faults.set(func(f *faultyStore) { f.away = refused("the login is refused") })
	eventually(t, "the cause is said at WARN", func() bool {
		return log.count(`level=WARN msg="the database cannot be used, records and requests wait for it" component=collector cause="the login is refused"`) == 1
	})
	r := b.open()
	r.send(records(h, 1, 3)) // a lane runs into it as well
	b.faults.set(func(f *faultyStore) { f.away = refused("the schema is missing") })
	eventually(t, "another cause is said too", func() bool { return log.count(`cause="the schema is missing"`) == 1 })
	b.faults.set(func(f *faultyStore) { f.away = refused("the login is refused") })
	eventually(t, "commits are tried again", func() bool { return b.c.Stats().CommitRetries > 2 })
	b.faults.heal()
	r.wantAck(3)
	eventually(t, "the end is said", func() bool { return log.count("the database can be used again") == 1 })
	if n := log.count("cannot be used"); n != 2 {
		t.Errorf("%d lines for two causes:\n%s", n, log.String())
	}
}

// stopIn runs a stop with a grace that no test waits for.
func (b *bundle) stopIn(grace time.Duration) <-chan error {
	ended := make(chan error, 1)
	c := b.c
	b.c = nil
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		ended <- c.Stop(ctx)
	}()
	return ended
}

func TestAStopDoesNotWaitForADatabaseThatTakesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why string
		set func(f *faultyStore)
	}{
		{"it refuses", func(f *faultyStore) { f.away = refused("the login is refused") }},
		{"it hangs", func(f *faultyStore) { f.committed = func(_ int, ctx context.Context) { <-ctx.Done() } }},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			var log logged
			b := setup(t, func(cfg *collector.Config) {
				cfg.Logger, cfg.StopWait = slog.New(slog.NewTextHandler(&log, nil)), 20*time.Millisecond
			})
			conn := b.conn
			defer conn.Close()
			h := holder(1)
			b.faults.set(c.set)
			r := b.open()
			r.send(records(h, 1, 3))
			eventually(t, "a commit was tried", func() bool {
				b.faults.mu.Lock()
				defer b.faults.mu.Unlock()
				return b.faults.calls > 0
			})
			ended := b.stopIn(time.Hour)
			r.wantEnd("the worker is sent to the next collector", codes.Unavailable)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "stays in the journals: the database takes no records") {
				t.Errorf("got %v, want a word about what is left", err)
			}
			if log.count("stopping without the records that wait") != 1 || !strings.Contains(log.String(), "waited=20ms") {
				t.Errorf("the log does not say why:\n%s", log.String())
			}

			b.faults.heal()
			b.start() // beside or after: it gets what the worker kept
			again := b.open()
			again.send(records(h, 1, 3))
			again.wantAck(3)
			b.wantRecords(h, 3)
		})
	}
}

// The worker has gone, and with the pod its journal goes too: only the grace ends it.
func TestAStopWaitsForTheRecordsOfAWorkerThatHasGone(t *testing.T) {
	t.Parallel()
	var log logged
	b := setup(t, func(cfg *collector.Config) {
		cfg.Logger, cfg.StopWait = slog.New(slog.NewTextHandler(&log, nil)), time.Millisecond
	})
	h := holder(1)
	b.faults.set(func(f *faultyStore) { f.away = refused("it restarts") })
	r := b.open()
	r.send(records(h, 1, 3))
	eventually(t, "the rows have arrived", func() bool { return b.c.Stats().RecordsReceived == 3 })
	c := b.c
	b.conn.Close()
	eventually(t, "its stream has ended", func() bool { return c.Stats().RecordStreams == 0 })
	ended := b.stopIn(time.Hour)
	retries := c.Stats().CommitRetries
	eventually(t, "a stopping collector still tries", func() bool { return c.Stats().CommitRetries > retries+1 })
	b.faults.heal()
	if err := <-ended; err != nil {
		t.Errorf("everything was committed, and the stop says %v", err)
	}
	b.wantRecords(h, 3)
}
