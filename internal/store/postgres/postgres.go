// Package postgres keeps the ledger in PostgreSQL, through PgBouncer in
// transaction mode: no named prepared statement, no session state, no session
// lock. It is the one package of the collector that knows pgx.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/penstock-gateway/penstock/internal/store"
)

// Config says where the database is and how much of it one collector takes.
type Config struct {
	URL string // DATABASE_URL, of PgBouncer or of PostgreSQL itself
	// MaxConns bounds the pool; 0: 3 (a flush, a grant, an admin query).
	MaxConns int32
	// Timeout bounds each statement and each wait for a connection; 0: 10 s.
	Timeout time.Duration
}

// Store is a store.Store in PostgreSQL. Safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	timeout time.Duration
	begin   string
}

var _ store.Store = (*Store)(nil)

// Open makes a store. It does not connect: with the database away it succeeds,
// and calls fail with store.ErrUnavailable until the database is back. It fails
// when the URL cannot be read.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 3
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("cannot read DATABASE_URL: %w", err)
	}
	unnamed(pc.ConnConfig)
	pc.MaxConns = cfg.MaxConns
	pc.MinConns = 0
	pc.MaxConnIdleTime = time.Minute
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("cannot make a connection pool for DATABASE_URL: %w", err)
	}
	return &Store{pool: pool, timeout: cfg.Timeout, begin: beginQuery(cfg.Timeout)}, nil
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
	delete(cc.RuntimeParams, "statement_timeout") // set per transaction; PgBouncer does not pass it on
}

// beginQuery opens a transaction whose settings end with it. An acknowledged
// record is on the disk whatever the server's default for synchronous_commit, and
// a statement ends at the server even when the client's cancel is lost.
func beginQuery(timeout time.Duration) string {
	return fmt.Sprintf("begin isolation level read committed; set local synchronous_commit = on; set local statement_timeout = %d",
		timeout.Milliseconds())
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
		s.pool.Close()
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
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error)
}

// tx runs statements of one transaction, or of one read outside of any.
type tx struct {
	conn
	ctx context.Context
}

// errAgain asks for the transaction to be run again: what it read has moved.
var errAgain = errors.New("a row was replaced meanwhile")

// attempts is how often a transaction is run that lost to another one.
const attempts = 10

// tx runs do in one transaction, again when it lost to another one, so do must
// set its results anew each time.
func (s *Store) tx(ctx context.Context, what string, do func(*tx) error) error {
	var err error
	for range attempts {
		if err = s.once(ctx, do); !again(err) {
			break
		}
	}
	if again(err) {
		err = unavailable(err)
	}
	return failure(what, err)
}

func (s *Store) once(ctx context.Context, do func(*tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	t, err := s.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: s.begin})
	if err != nil {
		return unavailable(err) // whatever it was, nothing has been asked of the database yet
	}
	defer func() { _ = t.Rollback(ctx) }() // does nothing after a commit
	if err := do(&tx{conn: t, ctx: ctx}); err != nil {
		return err
	}
	return t.Commit(ctx)
}

// read runs one query outside a transaction: one round trip.
func (s *Store) read(ctx context.Context, what string, do func(*tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return failure(what, unavailable(err))
	}
	defer conn.Release()
	return failure(what, do(&tx{conn: conn.Conn(), ctx: ctx}))
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
