// Package sqlite keeps the ledger in one SQLite file, for a gateway that runs as
// one process. It has the same rules and the same order of records as
// store/postgres; both pass store/storetest.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/penstock-gateway/penstock/internal/store"
)

// keep is how long rows of closed holders, and changes, are kept.
const keep = 7 * 24 * time.Hour

// Config says where the ledger is.
type Config struct {
	Path string // the file; made when missing
}

// Store is a store.Store in one file. Safe for concurrent use. Writers queue for
// one connection; readers have their own and never wait for a writer.
type Store struct {
	write *sql.DB
	read  *sql.DB
}

var _ store.Store = (*Store)(nil)

// Open opens the file, makes it when missing, and brings its schema up to date.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Path == "" {
		return nil, errors.New("cannot open the ledger: no path given")
	}
	s := &Store{}
	var err error
	if s.write, err = open(cfg.Path, 1, "_txlock=immediate"); err != nil {
		return nil, err
	}
	if err := migrate(ctx, s.write); err != nil {
		s.Close()
		return nil, fmt.Errorf("cannot migrate %s: %w", cfg.Path, err)
	}
	if s.read, err = open(cfg.Path, 4, "_pragma=query_only(1)"); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func open(path string, conns int, option string) (*sql.DB, error) {
	// FULL: an acknowledged record is on the disk, also in WAL mode.
	dsn := (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String() +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&" + option
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("cannot open the ledger %s: %w", path, err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// Ping says whether the file can be read.
func (s *Store) Ping(ctx context.Context) error { return failure("ping", s.read.PingContext(ctx)) }

// Close closes the file.
func (s *Store) Close() {
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			_ = db.Close() // nothing is pending: every write was committed by its own call
		}
	}
}

// Maintain deletes what is past its keep.
func (s *Store) Maintain(ctx context.Context) error {
	return s.tx(ctx, "maintain", func(tx *tx) error {
		before := micros(tx.now.Add(-keep))
		for _, q := range []string{
			`DELETE FROM leases WHERE holder IN (SELECT id FROM holders WHERE closed AND closed_at < ?)`,
			`DELETE FROM cursors WHERE holder IN (SELECT id FROM holders WHERE closed AND closed_at < ?)`,
			`DELETE FROM holders WHERE closed AND closed_at < ?`,
			`DELETE FROM changes WHERE at < ?`,
			`DELETE FROM limit_meters WHERE touched < ?`,
			`DELETE FROM limit_holders WHERE touched < ?`,
		} {
			if err := tx.exec(q, before); err != nil {
				return err
			}
		}
		return nil
	})
}

// tx is one write transaction; now is its clock.
type tx struct {
	*sql.Tx
	ctx context.Context
	now time.Time
}

// tx runs do in one transaction, which is the only writer while it runs.
func (s *Store) tx(ctx context.Context, what string, do func(*tx) error) error {
	t, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return failure(what, err)
	}
	defer func() { _ = t.Rollback() }() // does nothing after a commit
	if err := do(&tx{Tx: t, ctx: ctx, now: time.Now()}); err != nil {
		return failure(what, err)
	}
	return failure(what, t.Commit())
}

func (t *tx) exec(query string, args ...any) error {
	_, err := t.ExecContext(t.ctx, query, args...)
	return err
}

func (t *tx) row(query string, args ...any) *sql.Row {
	return t.QueryRowContext(t.ctx, query, args...)
}

// failure says whether an error is about the request or about the file.
func failure(what string, err error) error {
	var se *sqlite.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrUnavailable):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, sql.ErrConnDone):
		return fmt.Errorf("cannot %s: %w: %w", what, store.ErrUnavailable, err)
	case errors.As(err, &se):
		switch se.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_INTERRUPT:
			return fmt.Errorf("cannot %s: %w: %w", what, store.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("cannot %s: %w", what, err)
}

// constraint says whether the database refused the row itself.
func constraint(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && (se.Code()&0xff == sqlite3.SQLITE_CONSTRAINT || se.Code()&0xff == sqlite3.SQLITE_TOOBIG)
}

func unique(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && (se.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || se.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// micros is a time as the file has it; the zero time is NULL.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func timeOf(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64).UTC()
}
