package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/pg"
)

// Servers die in the middle of commits, again and again; the committer sends what
// was not acknowledged once more. Every record is in exactly once, and a store
// that was opened with the database away works once it is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	s, err := pg.Start(t.Context(), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop() }()
	b, err := pg.StartBouncer(t.Context(), pg.BouncerConfig{Server: s})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Stop() }()
	db := s.Database(t)
	if _, err := postgres.Migrate(t.Context(), s.URL(db), postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	check(t, s.Kill())
	st := open(t, b.URL(db))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := st.Ping(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("with the database away: %v, want ErrUnavailable", err)
	}
	check(t, s.Restart(t.Context()))

	const holders, batches, size = 3, 40, 20
	var wg sync.WaitGroup
	progress := make(chan struct{}, holders*batches)
	for h := range holders {
		wg.Go(func() { commitAll(t, st, store.HolderID(fmt.Sprint("h", h)), batches, size, progress) })
	}
	for _, dies := range []dying{b, s, b, s} {
		for range holders * batches / 8 {
			<-progress
		}
		check(t, dies.Kill())
		check(t, dies.Restart(t.Context()))
	}
	wg.Wait()
	got, err := s.Query(t.Context(), db, "SELECT count(*), count(DISTINCT (holder, seq)), (SELECT sum(cost) FROM spend_daily) FROM spend_records")
	const all = holders * batches * size
	if want := fmt.Sprintf("%d|%d|%d", all, all, all); err != nil || got != want {
		t.Fatalf("records|different|cost: got %s (%v), want %s", got, err, want)
	}
}

// dying is a server that can be killed and started again.
type dying interface {
	Kill() error
	Restart(ctx context.Context) error
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// commitAll sends batches until each is acknowledged.
func commitAll(t *testing.T, st store.Store, h store.HolderID, batches, size int, progress chan<- struct{}) {
	for batch := range batches {
		rs := make([]store.Record, size)
		for i := range rs {
			rs[i] = store.Record{Seq: uint64(batch*size + i + 1), RequestID: "r", Start: day, End: day, Cost: 1}
		}
		for {
			_, err := st.Commit(t.Context(), h, rs)
			if err == nil {
				break
			}
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("batch %d of %s: %v, want ErrUnavailable", batch, h, err)
				return
			}
		}
		progress <- struct{}{}
	}
}
