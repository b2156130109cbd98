package postgres_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/pg"
)

// strict is a server that asks everybody but its owner for a password.
func strict(t *testing.T, settings ...string) *pg.Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "hba")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	hba := filepath.Join(dir, "hba")
	check(t, os.WriteFile(hba, []byte("host all postgres all trust\nhost all all all scram-sha-256\n"), 0o644))
	s, err := pg.Start(t.Context(), pg.Config{Settings: append(settings, "hba_file = '"+hba+"'")})
	check(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// What is wrong stands first, once, and without what was tried before it.
func TestCauses(t *testing.T) {
	t.Parallel()
	s := strict(t)
	name := s.Database(t)
	_, err := s.Query(t.Context(), name, "CREATE ROLE app LOGIN PASSWORD 'right'")
	check(t, err)
	// The driver's default tries TLS first, which this server does not have.
	url := func(user, database string) string {
		u := strings.Replace(s.URL(database), "postgres@", user+"@", 1)
		return strings.Replace(u, "sslmode=disable", "sslmode=prefer", 1)
	}
	changes := func(url string) error {
		_, _, err := open(t, url).Changes(t.Context(), 0)
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	closed := l.Addr().String()
	l.Close()
	for _, c := range []struct {
		why  string
		err  error
		want string
	}{
		{"a wrong password", changes(url("app:wrong", name)), "cannot read changes: the login is refused, see user and password in DATABASE_URL: FATAL: password authentication failed for user \"app\" (SQLSTATE 28P01)"},
		{"no such role", changes(url("nobody:x", name)), "cannot read changes: the login is refused, see user and password in DATABASE_URL: FATAL: password authentication failed"},
		{"no such database", changes(url("postgres", "missing")), "cannot read changes: there is no such database, see the name in DATABASE_URL: FATAL: database \"missing\" does not exist (SQLSTATE 3D000)"},
		{"not migrated", changes(url("postgres", name)), "cannot read changes: the schema is missing or older: run 'penstock migrate' with a direct URL: ERROR: relation \"changes\" does not exist (SQLSTATE 42P01)"},
		{"nobody listens", changes("postgres://app@" + closed + "/x"), "cannot read changes: the database cannot be reached: dial tcp " + closed + ": connect: connection refused"},
		{"TLS is asked for and not there", changes(strings.Replace(url("postgres", name), "prefer", "require", 1)), "cannot read changes: the database cannot be reached: "},
	} {
		if !errors.Is(c.err, store.ErrUnavailable) {
			t.Errorf("%s: records must wait for it: %v", c.why, c.err)
			continue
		}
		text := c.err.Error()
		if !strings.HasPrefix(text, c.want) || strings.Count(text, "SQLSTATE") > 1 || strings.Contains(text, "\n") {
			t.Errorf("%s:\ngot  %s\nwant %s", c.why, text, c.want)
		}
		if c.why != "TLS is asked for and not there" && strings.Contains(text, "TLS") {
			t.Errorf("%s: TLS is not what is wrong: %s", c.why, text)
		}
	}
}

// A database that hangs neither holds a close up nor reads as a new trouble each time.
func TestAHangingDatabase(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	st, err := postgres.Open(t.Context(), postgres.Config{URL: "postgres://app@" + l.Addr().String() + "/x"})
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- st.Ping(ctx) }()
	conn, err := l.Accept() // and never an answer
	check(t, err)
	defer conn.Close()
	st.Close()
	cancel()
	if err := <-ended; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}
