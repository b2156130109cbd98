package collector

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/telemetry"
)

// watched is a watch whose pooler answers as the test wants.
func watched(read func(context.Context) (store.Pools, error)) *poolWatch {
	return newPoolWatch(&Collector{
		cfg: Config{Pools: read, PoolMetrics: telemetry.NewPool(telemetry.Config{})},
		log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

// Gauges are as they were read last, totals add up over restarts of PgBouncer, and a
// PgBouncer that tells nothing has no old figures.
func TestPoolFigures(t *testing.T) {
	t.Parallel()
	var next store.Pools
	var failed error
	w := watched(func(context.Context) (store.Pools, error) { return next, failed })
	for _, total := range []int64{10, 15, 3} { // 3: it was restarted
		next = store.Pools{ServersUsed: 1, ServersIdle: 2, ClientsActive: 3, ClientsWaiting: 4, MaxWait: time.Second, Transactions: total, Waited: time.Duration(total)}
		if err := w.observe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := []int64{
		w.out.Up.Value(), w.out.Servers.With("used").Value(), w.out.Servers.With("idle").Value(), w.out.Clients.With("active").Value(),
		w.out.Clients.With("waiting").Value(), w.maxWait.Load(), int64(w.out.Transactions.Value()), int64(w.out.Wait.Value()),
	}
	for i, want := range []int64{1, 1, 2, 3, 4, int64(time.Second), 18, 18} {
		if got[i] != want {
			t.Errorf("figure %d is %d, want %d", i, got[i], want)
		}
	}
	failed = store.ErrUnavailable
	if err := w.observe(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Fatal(err)
	}
	if w.out.Up.Value() != 0 || w.out.Servers.With("idle").Value() != 0 || w.maxWait.Load() != 0 || w.out.Transactions.Value() != 18 {
		t.Error("old figures stand although PgBouncer tells none")
	}
}

// A console that hangs is left after a second and asked ever more rarely; one that is not
// there is never asked again.
func TestPoolsAreAskedRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		hangs := watched(func(ctx context.Context) (store.Pools, error) {
			asked++
			<-ctx.Done()
			return store.Pools{}, store.ErrUnavailable
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		hangs.run(ctx)
		if asked < 5 || asked > 20 {
			t.Errorf("asked %d times in ten minutes, want about once a minute", asked)
		}
		asked = 0
		away := watched(func(context.Context) (store.Pools, error) {
			asked++
			return store.Pools{}, store.ErrNotFound
		})
		away.run(t.Context()) // returns
		if asked != 1 {
			t.Errorf("asked %d times, want once", asked)
		}
	})
}
