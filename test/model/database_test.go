package model

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store/postgres"
)

// database is a migrated PostgreSQL database whose clock the walk sets. Its work is
// done by a goroutine outside of the walk's bubble, so that the bubble's time stands
// still meanwhile.
type database struct {
	store *postgres.Store
	conn  *pgx.Conn
	calls chan func()
	done  chan struct{}
	at    time.Time // what its clock was set to
	walks int
}

// simulatedClock hides the server's clock behind a row: the store calls
// clock_timestamp() without naming a schema.
const simulatedClock = `CREATE SCHEMA sim;
	CREATE TABLE sim.clock (at timestamptz NOT NULL);
	INSERT INTO sim.clock VALUES ('2000-01-01 00:00:00+00');
	CREATE FUNCTION sim.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM sim.clock'`

func newDatabase(t *testing.T) *database {
	t.Helper()
	ctx := context.Background()
	name := server.Database(t)
	if _, err := postgres.Migrate(ctx, server.URL(name), postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Query(ctx, name, simulatedClock); err != nil {
		t.Fatal(err)
	}
	d := &database{calls: make(chan func()), done: make(chan struct{})}
	url := server.URL(name) + "&search_path=sim,pg_catalog,public"
	var err error
	if d.store, err = postgres.Open(ctx, postgres.Config{URL: url, MaxConns: 4}); err != nil {
		t.Fatal(err)
	}
	if d.conn, err = pgx.Connect(ctx, url); err != nil {
		t.Fatal(err)
	}
	go func() {
		for f := range d.calls {
			f()
			d.done <- struct{}{}
		}
		close(d.done)
	}()
	return d
}

func (d *database) close() {
	close(d.calls)
	<-d.done
	_ = d.conn.Close(context.Background())
	d.store.Close()
}

// do runs f outside of the bubble, at the database's time now.
func (d *database) do(now time.Time, f func()) {
	d.calls <- func() {
		if !now.Equal(d.at) {
			if err := d.exec(`UPDATE sim.clock SET at = $1`, now); err != nil {
				panic(err)
			}
			d.at = now
		}
		f()
	}
	<-d.done
}

// exec runs SQL behind the store's back. It is called within do.
func (d *database) exec(sql string, args ...any) error {
	_, err := d.conn.Exec(context.Background(), sql, args...)
	if err != nil {
		return fmt.Errorf("cannot run %q: %w", sql, err)
	}
	return nil
}

// tables are those that a walk writes to.
var tables = []string{"holders", "cursors", "leases", "budgets", "keys", "changes", "spend_records", "spend_daily", "dead_letters", "audit"}

// clear empties the database for the next walk. It is called outside of a bubble.
func (d *database) clear() error {
	var b pgx.Batch
	for _, table := range tables {
		b.Queue(`DELETE FROM ` + table)
	}
	b.Queue(`SELECT setval(pg_get_serial_sequence('budgets', 'id'), 1, false)`) // so that a walk reads the same each time
	if err := d.conn.SendBatch(context.Background(), &b).Close(); err != nil {
		return err
	}
	if d.walks++; d.walks%10 > 0 {
		return nil
	}
	return d.exec(`VACUUM sim.clock, ` + strings.Join(tables, ", "))
}

// pool lends databases to walks, which run at the same time as far as the test
// runner lets them.
type pool struct {
	mu   sync.Mutex
	idle []*database
}

var databases pool

func (p *pool) borrow(t *testing.T) *database {
	t.Helper()
	p.mu.Lock()
	var d *database
	if n := len(p.idle); n > 0 {
		d, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if d == nil {
		d = newDatabase(t)
	}
	if err := d.clear(); err != nil {
		t.Fatal(err)
	}
	return d
}

func (p *pool) giveBack(d *database) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, d)
}

func (p *pool) close() {
	for _, d := range p.idle {
		d.close()
	}
}
