package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/internal/store/storetest"
	"github.com/penstock-gateway/penstock/test/pg"
)

// server and bouncer serve all tests of this binary; each test has a database of
// its own. Tests that kill servers start theirs.
var (
	server  *pg.Server
	bouncer *pg.Bouncer
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background()
	var err error
	if server, err = pg.Start(ctx, pg.Config{}); err == nil {
		defer func() { _ = server.Stop() }()
		bouncer, err = pg.StartBouncer(ctx, pg.BouncerConfig{Server: server})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = bouncer.Stop() }()
	code := m.Run()
	// The two servers' goroutines wait for them and are the only ones that may be left.
	if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/penstock-gateway/penstock/test/pg.spawn.func1")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		b := migrated(t)
		return storetest.Subject{Store: b.store, Query: b.query}
	})
}

// bundle is a store through PgBouncer over a migrated database of its own.
type bundle struct {
	store  *postgres.Store
	direct string
	conn   *pgx.Conn
}

func migrated(t *testing.T) *bundle {
	t.Helper()
	name := server.Database(t)
	b := &bundle{direct: server.URL(name)}
	if _, err := postgres.Migrate(t.Context(), b.direct, postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	b.store = open(t, bouncer.URL(name))
	var err error
	if b.conn, err = pgx.Connect(t.Context(), b.direct); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.conn.Close(context.Background()) })
	return b
}

func open(t *testing.T, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (b *bundle) query(ctx context.Context, sql string) ([]string, error) {
	// The simple protocol answers in texts, numerics included.
	rows, err := b.conn.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		parts := make([]string, len(row.RawValues()))
		for i, v := range row.RawValues() {
			parts[i] = string(v)
		}
		return strings.Join(parts, "|"), nil
	})
}
