package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
)

// consoleDatabase is the name under which PgBouncer talks about itself.
const consoleDatabase = "pgbouncer"

// Console reads PgBouncer's figures over a connection of its own, which is none to the
// database. Its methods may be called from one goroutine at a time.
type Console struct {
	cfg  *pgx.ConnConfig
	conn *pgx.Conn // nil: not connected
}

// NewConsole makes a console for the PgBouncer of a DATABASE_URL. It does not connect.
func NewConsole(url string) (*Console, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("cannot read DATABASE_URL: %w", err)
	}
	unnamed(cfg)
	cfg.Database = consoleDatabase
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // the only one it knows
	clear(cfg.RuntimeParams)
	return &Console{cfg: cfg}, nil
}

// Pools reads the figures, until ctx ends. It fails with store.ErrNotFound when the
// address is that of a database itself, and with store.ErrUnavailable otherwise; the next
// call connects anew.
func (c *Console) Pools(ctx context.Context) (store.Pools, error) {
	p, err := c.read(ctx)
	if err == nil {
		return p, nil
	}
	c.Close()
	if code(err) == databaseMissing {
		return store.Pools{}, fmt.Errorf("cannot find a PgBouncer at DATABASE_URL: %w", store.ErrNotFound)
	}
	return store.Pools{}, fmt.Errorf("cannot read PgBouncer's figures: %w", unavailable(err))
}

func (c *Console) read(ctx context.Context) (store.Pools, error) {
	if c.conn == nil {
		var err error
		if c.conn, err = pgx.ConnectConfig(ctx, c.cfg); err != nil {
			return store.Pools{}, err
		}
	}
	var p store.Pools
	if err := c.show(ctx, "SHOW POOLS", func(r figures) { addPool(&p, r) }); err != nil {
		return p, err
	}
	return p, c.show(ctx, "SHOW STATS", func(r figures) { addStats(&p, r) })
}

// figures are the numbers of one row by column name. Versions differ in which columns
// they have; what one does not have is 0.
type figures struct {
	database string
	numbers  map[string]int64
}

func addPool(p *store.Pools, r figures) {
	for _, state := range []string{"sv_active", "sv_active_cancel", "sv_being_canceled", "sv_tested", "sv_login"} {
		p.ServersUsed += int(r.numbers[state])
	}
	p.ServersIdle += int(r.numbers["sv_idle"] + r.numbers["sv_used"]) // "used" means idle since it was used
	p.ClientsActive += int(r.numbers["cl_active"])
	p.ClientsWaiting += int(r.numbers["cl_waiting"])
	wait := time.Duration(r.numbers["maxwait"])*time.Second + time.Duration(r.numbers["maxwait_us"])*time.Microsecond
	p.MaxWait = max(p.MaxWait, wait)
}

func addStats(p *store.Pools, r figures) {
	p.Transactions += r.numbers["total_xact_count"]
	p.Waited += time.Duration(r.numbers["total_wait_time"]) * time.Microsecond
}

// show runs a command and hands out its rows but for the console's own.
func (c *Console) show(ctx context.Context, command string, each func(figures)) error {
	rows, err := c.conn.Query(ctx, command)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if r := row(rows); r.database != consoleDatabase {
			each(r)
		}
	}
	return rows.Err()
}

// row reads the texts that the console answers with.
func row(rows pgx.Rows) figures {
	r := figures{numbers: map[string]int64{}}
	for i, f := range rows.FieldDescriptions() {
		text := string(rows.RawValues()[i])
		if f.Name == "database" {
			r.database = text
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			r.numbers[f.Name] = n
		}
	}
	return r
}

// Close ends the connection, if there is one.
func (c *Console) Close() {
	if c.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
	defer cancel()
	_ = c.conn.Close(ctx) // it is not used again either way
	c.conn = nil
}
