package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate applies the files that the database has not seen, each in its own
// transaction; user_version counts them.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Glob(migrations, "migrations/*.sql") // sorted by name
	if err != nil {
		return err
	}
	for i, name := range files {
		if err := apply(ctx, db, i+1, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func apply(ctx context.Context, db *sql.DB, version int, name string) error {
	t, err := db.BeginTx(ctx, nil)
	if err != nil {
		return failure("begin", err)
	}
	defer func() { _ = t.Rollback() }()
	var have int
	if err := t.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&have); err != nil {
		return failure("read the version", err)
	}
	if have >= version {
		return nil
	}
	text, err := migrations.ReadFile(name)
	if err != nil {
		return err
	}
	if _, err := t.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	if _, err := t.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, version)); err != nil {
		return err
	}
	return t.Commit()
}
