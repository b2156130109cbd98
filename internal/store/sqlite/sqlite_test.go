package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/penstock-gateway/penstock/internal/store/sqlite"
	"github.com/penstock-gateway/penstock/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		path := filepath.Join(t.TempDir(), "with space?#%.db")
		s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return storetest.Subject{Store: s, Query: inspector(t, path)}
	})
}

// inspector runs SQL in the file behind the store's back.
func inspector(t *testing.T, path string) func(context.Context, string) ([]string, error) {
	db, err := sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return func(ctx context.Context, q string) ([]string, error) {
		rows, err := db.QueryContext(ctx, q)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var out []string
		for rows.Next() {
			line, err := joined(rows)
			if err != nil {
				return nil, err
			}
			out = append(out, line)
		}
		return out, rows.Err()
	}
}

func joined(rows *sql.Rows) (string, error) {
	names, err := rows.Columns()
	if err != nil {
		return "", err
	}
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	err = rows.Scan(into...)
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, "|"), err
}

// What was committed is there when the file is opened again, and opening it
// again changes nothing.
func TestReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	for range 2 {
		s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	if _, err := sqlite.Open(t.Context(), sqlite.Config{}); err == nil {
		t.Fatal("no path: want an error")
	}
}
