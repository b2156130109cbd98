package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// A change whose transaction began first and commits last is not passed by: the
// position waits for it.
func TestChangesLateCommit(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	ctx := t.Context()
	_, pos, err := b.store.Changes(ctx, -1)
	if err != nil {
		t.Fatal(err)
	}
	late, err := b.conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Exec(ctx, "INSERT INTO changes (key_id) VALUES ('late')"); err != nil {
		t.Fatal(err)
	}
	if err := b.store.CreateKey(ctx, store.Key{ID: "early"}); err != nil {
		t.Fatal(err)
	}
	ids, held, err := b.store.Changes(ctx, pos)
	if err != nil || len(ids) != 0 {
		t.Fatalf("before the late commit: %v, %v; want nothing", ids, err)
	}
	if _, err := late.Exec(ctx, "INSERT INTO changes (key_id) VALUES ('late too')"); err != nil {
		t.Fatal(err)
	}
	if err := late.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if got := poll(t, b.store, held, 3); fmt.Sprint(got) != "[late late too early]" {
		t.Fatalf("told of %q", got)
	}
}

// A page of changes ends with a whole transaction, so that the rest of it is not
// lost, and many changes take several pages.
func TestChangesPages(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	for _, q := range []string{
		"INSERT INTO changes (key_id) SELECT 'a' || n FROM generate_series(1, 700) n",
		"INSERT INTO changes (key_id) SELECT 'b' || n FROM generate_series(1, 700) n",
		"INSERT INTO changes (key_id) SELECT 'c' || n FROM generate_series(1, 700) n",
	} {
		if _, err := b.query(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(map[string]bool)
	for _, id := range poll(t, b.store, 0, 2100) {
		seen[id] = true
	}
	if len(seen) != 2100 {
		t.Fatalf("told of %d different keys, want 2100", len(seen))
	}
	if _, pos, err := b.store.Changes(t.Context(), 1<<50); err != nil || pos >= 1<<50 {
		t.Fatalf("a position from another database: %d, %v; want a lower one", pos, err)
	}
}

// poll asks until it was told of n changes: transactions of other databases on
// the same server hold positions back too.
func poll(t *testing.T, s store.Store, pos int64, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var told []string
	for {
		ids, next, err := s.Changes(ctx, pos)
		if err != nil {
			t.Fatalf("told of %d changes, want %d: %v", len(told), n, err)
		}
		if told, pos = append(told, ids...), next; len(told) >= n {
			return told
		}
		<-tick.C
	}
}
