package postgres_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
)

// Several pods migrate at once: each migration is applied once, the others wait,
// and no lock stays behind.
func TestMigrateTogether(t *testing.T) {
	t.Parallel()
	db := server.Database(t)
	url := server.URL(db)
	plan, err := postgres.Migrate(t.Context(), url, postgres.Options{DryRun: true})
	if err != nil || len(plan) == 0 {
		t.Fatalf("dry run: %v, %v; want the first migration", plan, err)
	}
	if got, err := server.Query(t.Context(), db, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); err != nil || got != "0" {
		t.Fatalf("a dry run made %s tables (%v)", got, err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	applied := 0
	for range 4 {
		wg.Go(func() {
			done, err := postgres.Migrate(t.Context(), url, postgres.Options{})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			applied += len(done)
		})
	}
	wg.Wait()
	if applied != len(plan) {
		t.Fatalf("applied %d, want %d", applied, len(plan))
	}
	awaitNoLocks(t, db)
	if _, err := server.Query(t.Context(), db, "UPDATE schema_migrations SET checksum = 'x'"); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Migrate(t.Context(), url, postgres.Options{}); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Fatalf("a migration that was edited later: %v, want an error", err)
	}
}

// Records stand in their day's partition, and what the default partition took
// before that day had one is moved.
func TestPartitions(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	today := time.Now().UTC()
	name := "spend_records_p" + today.Format("20060102")
	if _, err := b.query(t.Context(), "DROP TABLE "+name); err != nil {
		t.Fatal(err)
	}
	rec := func(seq uint64, start time.Time) store.Record {
		return store.Record{Seq: seq, RequestID: "r", Start: start, End: start, Status: store.StatusSuccess}
	}
	if _, err := b.store.Commit(t.Context(), "h", []store.Record{rec(1, today), rec(2, today.AddDate(0, 0, 400)), rec(3, today.AddDate(0, 0, 7))}); err != nil {
		t.Fatal(err)
	}
	where := func() string {
		t.Helper()
		rows, err := b.query(t.Context(), "SELECT seq, CASE tableoid::regclass::text WHEN 'spend_records_default' THEN 'default' ELSE 'day' END FROM spend_records ORDER BY seq")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(rows, " ")
	}
	if got := where(); got != "1|default 2|default 3|day" {
		t.Fatalf("before: %s", got)
	}
	if err := b.store.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := where(); got != "1|day 2|default 3|day" {
		t.Fatalf("after: %s", got)
	}
}

// awaitNoLocks: a session's locks go with its backend, which ends a moment after its
// client has closed the connection.
func awaitNoLocks(t *testing.T, db string) {
	t.Helper()
	const locks = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE locktype = 'advisory' AND datname = current_database()"
	deadline := time.Now().Add(10 * time.Second)
	for {
		got, err := server.Query(t.Context(), db, locks)
		if err != nil {
			t.Fatal(err)
		}
		if got == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("advisory locks left: %s", got)
		}
	}
}
