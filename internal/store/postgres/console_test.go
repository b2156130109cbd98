package postgres_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/pg"
)

// The figures are those of the pools to the database, not of the console itself, and
// asking for them opens no connection to the database.
func TestConsole(t *testing.T) {
	t.Parallel()
	b, err := pg.StartBouncer(t.Context(), pg.BouncerConfig{Server: server})
	check(t, err)
	defer func() { _ = b.Stop() }()
	name := server.Database(t)
	console, err := postgres.NewConsole(b.URL(name))
	check(t, err)
	defer console.Close()
	got, err := console.Pools(t.Context())
	check(t, err)
	if got != (store.Pools{}) {
		t.Errorf("nobody has asked for the database yet: %+v", got)
	}
	held, err := pgx.Connect(t.Context(), b.URL(name))
	check(t, err)
	defer func() { _ = held.Close(context.Background()) }()
	_, err = held.Exec(t.Context(), "BEGIN", pgx.QueryExecModeSimpleProtocol)
	check(t, err)
	idle := open(t, b.URL(name))
	check(t, idle.Ping(t.Context()))
	got, err = console.Pools(t.Context())
	check(t, err)
	if got.ServersUsed != 1 || got.ServersIdle != 1 || got.ClientsActive != 2 || got.ClientsWaiting != 0 {
		t.Errorf("one transaction open, one client idle: %+v", got)
	}
	if got.Transactions == 0 {
		t.Error("no transaction was counted")
	}
	// A PgBouncer that was away is asked again.
	check(t, b.Kill())
	if _, err := console.Pools(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("while it is away: %v, want ErrUnavailable", err)
	}
	check(t, b.Restart(t.Context()))
	_, err = console.Pools(t.Context())
	check(t, err)
}

// The address of a database itself is told apart, and a console that hangs is left after
// the time that its caller gives it.
func TestNoConsole(t *testing.T) {
	t.Parallel()
	direct, err := postgres.NewConsole(server.URL("postgres"))
	check(t, err)
	if _, err := direct.Pools(t.Context()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("without a PgBouncer: %v, want ErrNotFound", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	check(t, err)
	defer l.Close()
	hanging, err := postgres.NewConsole("postgres://app@" + l.Addr().String() + "/x?sslmode=disable")
	check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := hanging.Pools(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a console that hangs: %v, want ErrUnavailable", err)
	}
}
