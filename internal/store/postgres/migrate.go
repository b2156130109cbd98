package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrateLock is the key of the session lock that lets one migration run at a time.
const migrateLock int64 = 0x70656e73746f6d67

// Options of Migrate.
type Options struct {
	// DryRun only reports what would be applied.
	DryRun bool
}

// Applied is one migration that was applied, or would be in a dry run.
type Applied struct {
	Version int
	Name    string
}

// migration is one embedded file.
type migration struct {
	Applied
	text string
	sum  string
}

// Migrate brings the schema up to date, each migration in its own transaction. It
// needs a direct URL: a lock of the session keeps others out, and a session does
// not exist behind a transaction pool. Migrations only expand the schema, so that
// the previous release keeps running on it. Several calls at once wait for each other.
func Migrate(ctx context.Context, directURL string, o Options) (applied []Applied, err error) {
	all, err := list()
	if err != nil {
		return nil, err
	}
	cfg, err := pgx.ParseConfig(directURL)
	if err != nil {
		return nil, fmt.Errorf("cannot read the migration's URL: %w", err)
	}
	unnamed(cfg)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, failure("connect for migrations", unavailable(err))
	}
	// Closing the session also gives the lock back, however this ends.
	defer func() {
		err = errors.Join(err, failure("end the migration's session", conn.Close(context.WithoutCancel(ctx))))
	}()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, migrateLock); err != nil {
		return nil, failure("lock migrations", err)
	}
	known, err := applySums(ctx, conn, o)
	if err != nil {
		return nil, failure("read schema_migrations", err)
	}
	for _, m := range all {
		sum, done := known[m.Version]
		if done && sum != m.sum {
			return applied, fmt.Errorf("cannot migrate: %s was changed after it was applied", m.Name)
		}
		if done {
			continue
		}
		if !o.DryRun {
			if err := apply(ctx, conn, m); err != nil {
				return applied, failure("apply "+m.Name, err)
			}
		}
		applied = append(applied, m.Applied)
	}
	return applied, nil
}

// list reads the embedded files in the order of their numbers.
func list() ([]migration, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql") // sorted by name
	if err != nil {
		return nil, err
	}
	out := make([]migration, len(files))
	for i, f := range files {
		text, err := migrations.ReadFile(f)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(path.Base(f), ".sql")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("cannot number migration %s: want %04d", name, i+1)
		}
		sum := sha256.Sum256(text)
		out[i] = migration{Applied{version, name}, string(text), hex.EncodeToString(sum[:])}
	}
	return out, nil
}

// applySums reads which migrations are in; a dry run makes no table for them.
func applySums(ctx context.Context, conn *pgx.Conn, o Options) (map[int]string, error) {
	known := make(map[int]string)
	if o.DryRun {
		var exists bool
		if err := conn.QueryRow(ctx, `SELECT to_regclass('schema_migrations') IS NOT NULL`).Scan(&exists); err != nil || !exists {
			return known, err
		}
	} else if _, err := conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_migrations (
		version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`); err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, `SELECT version, checksum FROM schema_migrations`)
	if err != nil {
		return nil, err
	}
	var version int
	var sum string
	_, err = pgx.ForEachRow(rows, []any{&version, &sum}, func() error { known[version] = sum; return nil })
	return known, err
}

// apply runs one migration and makes the partitions of the days to come, so that
// no record waits for a collector to do it.
func apply(ctx context.Context, conn *pgx.Conn, m migration) error {
	return pgx.BeginFunc(ctx, conn, func(t pgx.Tx) error {
		if _, err := t.Exec(ctx, m.text); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)`, m.Version, m.Name, m.sum); err != nil {
			return err
		}
		for day := range daysAhead + 1 {
			if err := (&tx{conn: t, ctx: ctx}).makePartition(day); err != nil {
				return err
			}
		}
		return nil
	})
}
