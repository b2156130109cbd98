// Package model tests the ledger's rules as a whole: the real hold manager, journal
// and record code of several workers, and the real store over PostgreSQL, are driven
// by one seeded random walk through lost, late and doubled messages, kills, lost
// nodes, outages, expiries, period ends and administrators, and the laws are checked
// after every step. Each rule is then switched off by itself, and a law must break.
//
// The walk runs in a bubble of package synctest, so that the workers' time is the
// walk's; the database's clock_timestamp() is one of the test's own, set to the same
// time. README.md in this folder says how to run and read it.
package model

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/penstock-gateway/penstock/test/pg"
)

// server has a database for each walk that runs at the same time.
var server *pg.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if server, err = pg.Start(context.Background(), pg.Config{Settings: []string{"autovacuum = off", "full_page_writes = off"}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = server.Stop() }()
	code := m.Run()
	databases.close()
	// The server's goroutine waits for it and is the only one that may be left.
	if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/penstock-gateway/penstock/test/pg.spawn.func1")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// setting is a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("cannot read %s: %v", name, err)
	}
	return n
}
