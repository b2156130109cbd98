package pg_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/penstock-gateway/penstock/test/pg"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The servers are what every other test of the database stands on: they start,
// answer, survive a crash with their data, and leave nothing behind.
func TestServerSurvivesKill(t *testing.T) {
	s, err := pg.Start(t.Context(), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	b, err := pg.StartBouncer(t.Context(), pg.BouncerConfig{Server: s})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	}()
	db := s.Database(t)
	if _, err := s.Query(t.Context(), db, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)"); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{s.Kill, b.Kill} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Query(t.Context(), db, "SELECT 1"); err == nil {
		t.Fatal("a killed server answers")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Query(t.Context(), db, "SELECT n FROM t"); err != nil || got != "7" {
		t.Fatalf("after a restart: %q, %v; want 7", got, err)
	}
}
