package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// lane is one way to the database, with connections of its own, so that a slow
// statement of one kind holds up no other kind.
type lane struct {
	pool    *pgxpool.Pool
	gate    *gate
	timeout time.Duration
	long    bool // its reads may take long, so they too get a time limit at the server
}

// errAgain asks for the transaction to be run again: what it read has moved.
var errAgain = errors.New("a row was replaced meanwhile")

// attempts is how often a transaction is run that lost to another one.
const attempts = 10

// tx runs do in one transaction, again when it lost to another one, so do must
// set its results anew each time.
func (l *lane) tx(ctx context.Context, what string, do func(*tx) error) error {
	var err error
	for range attempts {
		if err = l.once(ctx, do); !again(err) {
			break
		}
	}
	if again(err) {
		err = unavailable(err)
	}
	return failure(what, err)
}

func (l *lane) once(ctx context.Context, do func(*tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	c, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	defer release(c)
	t, err := c.BeginTx(ctx, pgx.TxOptions{BeginQuery: beginQuery(ctx)})
	l.gate.tried(ctx, err)
	if err != nil {
		return unavailable(err) // whatever it was, nothing has been asked of the database yet
	}
	if err = do(&tx{conn: t, ctx: ctx}); err == nil {
		err = t.Commit(ctx)
	}
	if err != nil {
		leave(ctx, c.Conn(), t, err)
	}
	return err
}

// goodbyeTime bounds the end of a transaction that failed.
const goodbyeTime = time.Second

// leave ends a transaction that failed, also when its caller's time is over.
func leave(ctx context.Context, c *pgx.Conn, t pgx.Tx, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTime)
	defer cancel()
	if code(why) == readOnly {
		// The server is a replica by now. Leaving in the middle of the transaction makes
		// PgBouncer close its connection to it as well, instead of giving it to the next.
		_ = c.Close(ctx)
		return
	}
	_ = t.Rollback(ctx) // a connection that cannot roll back is not used again
}

// read runs one query: outside a transaction, so one round trip, where it cannot take long.
func (l *lane) read(ctx context.Context, what string, do func(*tx) error) error {
	if l.long {
		return l.tx(ctx, what, do)
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	c, err := l.acquire(ctx)
	if err != nil {
		return failure(what, err)
	}
	defer release(c)
	err = do(&tx{conn: c, ctx: ctx})
	if err == nil || c.Conn().IsClosed() {
		l.gate.tried(ctx, err)
	}
	return failure(what, err)
}

// acquire waits for a connection of the lane. Its errors say nothing about the request.
func (l *lane) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	c, err := l.pool.Acquire(ctx)
	if err != nil {
		l.gate.tried(ctx, err)
		return nil, unavailable(err)
	}
	return c, nil
}

// release gives a connection back. One that broke is not the pool's any more: the driver
// says goodbye for up to 15 s to a server that does not listen, and the pool would count
// it for as long, which is the whole lane.
func release(c *pgxpool.Conn) {
	if c.Conn().IsClosed() {
		c.Hijack()
		return
	}
	c.Release()
}

// beginQuery opens a transaction whose settings end with it. An acknowledged record is
// on the disk whatever the server's default for synchronous_commit, and a statement ends
// at the server when its caller's time does. So cancels, which PgBouncer 1.18 does not
// always survive, are sent only for a caller that leaves early.
func beginQuery(ctx context.Context) string {
	deadline, _ := ctx.Deadline() // once sets one
	left := max(time.Until(deadline).Milliseconds(), 1)
	return fmt.Sprintf("begin isolation level read committed; set local synchronous_commit = on; set local statement_timeout = %d", left)
}
