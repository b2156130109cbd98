package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/internal/store/sqlite"
)

// database is the store that an all-in-one works on.
type database struct {
	store.Store
	// name tells databases apart that one data folder has been used with. It holds no
	// credential and no white space.
	name string
	// isNew says that there was no such database before this start.
	isNew bool
}

const sqliteFile = "penstock.db"

// openDatabase opens PostgreSQL where there is a URL, else SQLite in the data folder.
func openDatabase(ctx context.Context, address string, f folder) (database, error) {
	if address == "" {
		isNew := !f.has(sqliteFile)
		st, err := sqlite.Open(ctx, sqlite.Config{Path: f.file(sqliteFile)})
		return database{Store: st, name: sqliteFile, isNew: isNew}, err
	}
	at, err := parseDatabaseURL(address)
	if err != nil {
		return database{}, err
	}
	st, err := postgres.Open(ctx, postgres.Config{URL: address})
	if err != nil {
		return database{}, err
	}
	if err := probe(ctx, st, at); err != nil {
		st.Close()
		return database{}, err
	}
	return database{Store: st, name: at.Host + at.EscapedPath() + url.QueryEscape(at.Query().Get("host"))}, nil
}

var errDatabaseURL = errors.New("cannot use the database URL (--database-url, DATABASE_URL): want postgres://user:password@host:port/database")

// parseDatabaseURL refuses what is no URL of PostgreSQL. Its error does not repeat the
// address, which may hold a password.
func parseDatabaseURL(address string) (*url.URL, error) {
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return nil, errDatabaseURL
	}
	at, err := url.Parse(address)
	if err != nil {
		return nil, errDatabaseURL
	}
	return at, nil
}

// SQLSTATEs of a schema that is older than this program.
const (
	undefinedTable  = "42P01"
	undefinedColumn = "42703"
)

// probe asks for a key that cannot exist: the answer says whether the database is
// there and has the tables.
func probe(ctx context.Context, st store.Store, at *url.URL) error {
	_, err := st.Key(ctx, "none")
	var sql interface {
		error
		SQLState() string
	}
	switch {
	case err == nil || errors.Is(err, store.ErrNotFound):
		return nil
	case errors.As(err, &sql) && (sql.SQLState() == undefinedTable || sql.SQLState() == undefinedColumn):
		return fmt.Errorf("cannot use the database, its tables are missing or of an older release; run: penstock migrate --database-url '%s' (direct, not through PgBouncer)", at.Redacted())
	}
	return fmt.Errorf("cannot use the database (--database-url, DATABASE_URL): %w", err)
}
