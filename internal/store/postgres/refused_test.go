package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
)

var day = time.Date(2026, 3, 14, 0, 0, 0, 0, time.UTC)

// Rows that only the database refuses become dead letters in order, whatever
// their number, and PgBouncer's server connections stay usable after each COPY
// that broke off.
func TestRefusedRows(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	if _, err := b.query(t.Context(), "ALTER TABLE spend_records ADD CHECK (model <> 'bad')"); err != nil {
		t.Fatal(err)
	}
	const batches, size = 8, 300
	bad := map[int]bool{0: true, 7: true, 8: true, 255: true, size - 1: true}
	for batch := range batches {
		rs := make([]store.Record, size)
		for i := range rs {
			rs[i] = store.Record{Seq: uint64(batch*size + i + 1), RequestID: fmt.Sprint(i), Model: "good", Start: day, End: day, Cost: 1}
			if bad[i] {
				rs[i].Model = "bad"
			}
		}
		rs[9].UserID = strings.Repeat(fmt.Sprint(batch), 9000) // fits: an index compresses it
		last, err := b.store.Commit(t.Context(), "h", rs)
		if err != nil || last != uint64((batch+1)*size) {
			t.Fatalf("batch %d: cursor %d, %v", batch, last, err)
		}
	}
	got, err := b.query(t.Context(), `SELECT (SELECT count(*) FROM spend_records), (SELECT count(*) FROM dead_letters),
		(SELECT bool_and(ordered) FROM (SELECT seq > coalesce(lag(seq) OVER (ORDER BY id), 0) AS ordered FROM dead_letters) x),
		(SELECT sum(cost) FROM spend_daily)`)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d|%d|t|%d", batches*(size-len(bad)), batches*len(bad), batches*size)
	if got[0] != want {
		t.Fatalf("records|dead letters|in order|cost: got %s, want %s", got[0], want)
	}
}

func reap(t *testing.T, url string) error {
	_, err := open(t, url).Reap(t.Context(), 0)
	return err
}

// What says nothing about the request is ErrUnavailable, whoever says it.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	name := server.Database(t) // not migrated
	closed := open(t, bouncer.URL(name))
	closed.Close()
	readOnly := server.Database(t)
	if _, err := postgres.Migrate(t.Context(), server.URL(readOnly), postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Query(t.Context(), "postgres", "ALTER DATABASE "+readOnly+" SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"cancelled":     b.store.Ping(gone),
		"nobody there":  open(t, "postgres://postgres@127.0.0.1:1/x").Ping(t.Context()),
		"closed":        closed.Ping(t.Context()),
		"not migrated":  reap(t, bouncer.URL(name)),
		"no database":   open(t, server.URL("missing")).Ping(t.Context()),
		"a replica now": open(t, server.URL(readOnly)).Maintain(t.Context()),
	} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: got %v, want ErrUnavailable", what, err)
		}
	}
}
