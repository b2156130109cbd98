package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/pg"
)

// load is what the workers of a pod ask of its collector, all at once.
func (b *bundle) load(t *testing.T, rounds int, more ...func() error) {
	t.Helper()
	var wg sync.WaitGroup
	each := func(do func(round int) error) {
		wg.Go(func() {
			for round := range rounds {
				if err := do(round); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for worker := range 3 {
		h := store.HolderID(fmt.Sprint("pod/", worker))
		each(func(int) error {
			_, err := b.store.Heartbeat(t.Context(), []store.HolderID{h}, time.Minute)
			return err
		})
		each(func(round int) error {
			rs := []store.Record{{Seq: uint64(round + 1), RequestID: "r", Start: day, End: day, Cost: 1}}
			_, err := b.store.Commit(t.Context(), h, rs)
			return err
		})
		each(func(int) error {
			_, err := b.store.Key(t.Context(), "unknown")
			if errors.Is(err, store.ErrNotFound) {
				return nil
			}
			return err
		})
	}
	for _, do := range more {
		each(func(int) error { return do() })
	}
	wg.Wait()
}

// most samples the server's connections from PgBouncer while f runs.
func (b *bundle) most(t *testing.T, f func()) int {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for most := 0; ; {
		// Those of the test itself are not PgBouncer's.
		got, err := b.query(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		check(t, err)
		n, err := strconv.Atoi(got[0])
		check(t, err)
		most = max(most, n)
		select {
		case <-done:
			return most
		default:
		}
	}
}

// A pod has two connections however busy its workers are, and a third one only while an
// administrator asks.
func TestServerConnections(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	if most := b.most(t, func() { b.load(t, 40) }); most > 2 {
		t.Errorf("the server had %d connections, want 2", most)
	}
	ask := func() error {
		_, err := b.store.Records(store.WithAdmin(t.Context()), store.RecordFilter{})
		return err
	}
	if most := b.most(t, func() { b.load(t, 40, ask, ask, ask) }); most != 3 {
		t.Errorf("with administrators the server had %d connections, want 3", most)
	}
}

// lock keeps everybody from a table until unlock.
func (b *bundle) lock(t *testing.T, table string) (unlock func()) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), b.direct)
	check(t, err)
	_, err = c.Exec(t.Context(), "BEGIN; LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
	check(t, err)
	return func() { check(t, c.Close(context.Background())) }
}

// awaitLocked waits until so many statements wait for a lock.
func (b *bundle) awaitLocked(t *testing.T, want string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		got, err := b.query(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		check(t, err)
		if got[0] == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s statements wait for a lock, want %s", got[0], want)
		}
	}
}

// awaitAlone waits until the server has let go of the connections that were closed.
func (b *bundle) awaitAlone(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		got, err := b.query(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		check(t, err)
		if got[0] == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s connections are still there", got[0])
		}
	}
}

// An administrator's report that does not end holds up no request, and when the reader
// leaves, the server stops working on it.
func TestASlowReport(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	unlock := b.lock(t, "spend_records")
	reader, leave := context.WithCancel(store.WithAdmin(t.Context()))
	defer leave()
	ended := make(chan error, 1)
	go func() {
		_, err := b.store.Records(reader, store.RecordFilter{})
		ended <- err
	}()
	b.awaitLocked(t, "1")
	for range 20 {
		check(t, b.store.Ping(t.Context()))
	}
	second, cancel := context.WithTimeout(store.WithAdmin(t.Context()), 50*time.Millisecond)
	defer cancel()
	if err := b.store.Ping(second); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a second administrator's question while the first is not answered: %v, want ErrUnavailable", err)
	}
	leave()
	if err := <-ended; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the report that nobody waits for: %v, want ErrUnavailable", err)
	}
	b.awaitLocked(t, "0")
	unlock()
	_, err := b.store.Records(store.WithAdmin(t.Context()), store.RecordFilter{})
	check(t, err)
}

// A statement has the time that its caller has left: nothing goes on at the server for
// somebody who has given up.
func TestStatementsEndWithTheirCaller(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	unlock := b.lock(t, "holders")
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := b.store.Heartbeat(ctx, []store.HolderID{"h"}, time.Minute)
		ended <- err
	}()
	b.awaitLocked(t, "1")
	if err := <-ended; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	b.awaitLocked(t, "0")
}

// Small pools share connections instead of failing.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	for most := int32(1); most <= 4; most++ {
		b := migrated(t)
		b.awaitAlone(t)
		st, err := postgres.Open(t.Context(), postgres.Config{URL: b.direct, MaxConns: most})
		check(t, err)
		defer st.Close()
		b.store = st
		ask := func() error { return st.Ping(store.WithAdmin(t.Context())) }
		if got := b.most(t, func() { b.load(t, 20, ask) }); got > int(most) {
			t.Errorf("with %d connections allowed the server had %d", most, got)
		}
	}
}

// A URL as LiteLLM's users have it works: what sizes Prisma's own pool never reaches the
// server, which would refuse it.
func TestURLsOfPrisma(t *testing.T) {
	t.Parallel()
	name := server.Database(t)
	for _, url := range []string{bouncer.URL(name), server.URL(name)} {
		st := open(t, url+"&pgbouncer=true&connection_limit=10&pool_timeout=20&statement_cache_size=0&socket_timeout=5&statement_timeout=1")
		check(t, st.Ping(t.Context()))
	}
}

// A PgBouncer that others keep busy, and one without room for a client, are named.
func TestPgBouncerIsFull(t *testing.T) {
	t.Parallel()
	b, err := pg.StartBouncer(t.Context(), pg.BouncerConfig{Server: server, Settings: map[string]string{"max_client_conn": "1"}})
	check(t, err)
	defer func() { _ = b.Stop() }()
	name := server.Database(t)
	first := open(t, b.URL(name))
	check(t, first.Ping(t.Context()))
	err = open(t, b.URL(name)).Ping(t.Context())
	if want := "no more connections allowed (max_client_conn)"; !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want ErrUnavailable with %q", err, want)
	}
}
