// Package postgres keeps the ledger in PostgreSQL, through PgBouncer in
// transaction mode: no named prepared statement, no session state, no session
// lock. It is the one package of the collector that knows pgx.
package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/penstock-gateway/penstock/internal/store"
)

// Config says where the database is and how much of it one collector takes.
type Config struct {
	URL string // DATABASE_URL, of PgBouncer or of PostgreSQL itself
	// MaxConns bounds the connections; 0: 3. One is for what administrators ask and is
	// open only while they do, one for commits, the rest for what requests wait for.
	// With 2, administrators share that of the commits; with 1, all share one.
	MaxConns int32
	// Timeout bounds each statement and each wait for a connection; 0: 10 s.
	Timeout time.Duration
	// KeepDays is how many days Maintain keeps records beside today's; 0: all.
	KeepDays int
}

// Store is a store.Store in PostgreSQL. Safe for concurrent use.
type Store struct {
	hot   *lane // what a request waits for
	flush *lane // commits, and the upkeep of what they write to
	admin *lane // what an administrator asks
	pools []*pgxpool.Pool

	retention    retention
	limitsLocked atomic.Int64 // Unix ns until which calls about limits lock at once
}

var _ store.Store = (*Store)(nil)

// Open makes a store. It does not connect: with the database away it succeeds,
// and calls fail with store.ErrUnavailable until the database is back. It fails
// when the URL cannot be read.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.MaxConns <= 0 {
		cfg.MaxConns = 3
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	s, door := &Store{retention: retention{days: cfg.KeepDays}}, &gate{}
	for _, size := range laneSizes(cfg.MaxConns) {
		pool, err := newPool(ctx, cfg.URL, size, door)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.pools = append(s.pools, pool)
	}
	last := len(s.pools) - 1
	s.hot = &lane{pool: s.pools[0], timeout: cfg.Timeout, gate: door}
	s.flush = &lane{pool: s.pools[min(1, last)], timeout: cfg.Timeout, gate: door}
	s.admin = &lane{pool: s.pools[last], timeout: cfg.Timeout, gate: door, long: true}
	return s, nil
}

// laneSizes are the connections of the hot lane, of the flush lane and of the admin
// lane, as far as there are enough for a lane of its own.
func laneSizes(most int32) []int32 {
	if most < 3 {
		return []int32{1, 1}[:most]
	}
	return []int32{most - 2, 1, 1}
}

func newPool(ctx context.Context, url string, size int32, door *gate) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("cannot read DATABASE_URL: %w", err)
	}
	unnamed(pc.ConnConfig)
	pc.MaxConns = size
	pc.MinConns = 0
	pc.MaxConnIdleTime = time.Minute
	pc.BeforeConnect = door.enter
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("cannot make a connection pool for DATABASE_URL: %w", err)
	}
	return pool, nil
}

// unnamed makes a connection fit for a transaction pool: one round trip per
// statement, and nothing left behind in the server's session.
func unnamed(cc *pgx.ConnConfig) {
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	cc.StatementCacheCapacity = 0
	cc.DescriptionCacheCapacity = 0
	if cc.ConnectTimeout == 0 {
		cc.ConnectTimeout = 5 * time.Second
	}
	for _, name := range notForTheServer() {
		delete(cc.RuntimeParams, name)
	}
}

// notForTheServer are parameters of a URL that the server would refuse: Prisma's, as
// LiteLLM's URLs have them, which size a pool that this is not; and a time limit that
// PgBouncer does not pass on and that each transaction sets for itself.
func notForTheServer() []string {
	return []string{"connection_limit", "pool_timeout", "pgbouncer", "socket_timeout", "statement_cache_size", "statement_timeout"}
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, "ping", func(t *tx) error { return t.exec("select 1") })
}

// closeTimeout bounds the wait for a database that does not say goodbye.
const closeTimeout = time.Second

// Close closes all connections; calls under way fail. It does not wait for a database
// that hangs: the connections to it end by themselves, or with the process.
func (s *Store) Close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for _, pool := range s.pools {
			pool.Close()
		}
	}()
	t := time.NewTimer(closeTimeout)
	defer t.Stop()
	select {
	case <-closed:
	case <-t.C:
	}
}

// conn is what a transaction and a bare connection have in common.
type conn interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	Conn() *pgx.Conn
}

// tx runs statements of one transaction, or of one read outside of any.
type tx struct {
	conn
	ctx context.Context
}

// tx runs do in one transaction on the lane of its caller, see lane.tx.
func (s *Store) tx(ctx context.Context, what string, do func(*tx) error) error {
	return s.lane(ctx).tx(ctx, what, do)
}

// read runs one query on the lane of its caller, see lane.read.
func (s *Store) read(ctx context.Context, what string, do func(*tx) error) error {
	return s.lane(ctx).read(ctx, what, do)
}

func (s *Store) lane(ctx context.Context) *lane {
	if store.ForAdmin(ctx) {
		return s.admin
	}
	return s.hot
}

// exec runs a statement for its effect.
func (t *tx) exec(query string, args ...any) error {
	_, err := t.Exec(t.ctx, query, args...)
	return err
}

func (t *tx) row(query string, args ...any) pgx.Row { return t.QueryRow(t.ctx, query, args...) }

// query scans all rows into values.
func query[T any](t *tx, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := t.Query(t.ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// send runs a batch in one round trip.
func (t *tx) send(b *pgx.Batch) error { return t.SendBatch(t.ctx, b).Close() }
