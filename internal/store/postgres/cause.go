package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/penstock-gateway/penstock/internal/store"
)

// unavailable marks a failure that says nothing about the request, and says what is
// to be done about it where that is known.
func unavailable(err error) error { return &store.Unavailable{Cause: cause(err), Err: err} }

// cause is the one reason of a failure. The driver's own text lists every attempt, the
// refused TLS of a server that has none before what matters.
func cause(err error) string {
	var pe *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &pe):
		return said(pe)
	case errors.As(err, &connect):
		return "the database cannot be reached: " + lastAttempt(connect)
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return "the database did not answer in time"
	}
	return fmt.Sprintf("%v: %s", store.ErrUnavailable, withoutSource(err))
}

// said is what the database, or PgBouncer before it, answered: first in plain words, then
// in its own.
func said(pe *pgconn.PgError) string {
	return fmt.Sprintf("%s: %v", plainly(pe.Code), pe)
}

func plainly(c string) string {
	switch {
	case c == undefinedTable || c == undefinedColumn:
		return "the schema is missing or older: run 'penstock migrate' with a direct URL"
	case c == databaseMissing:
		return "there is no such database, see the name in DATABASE_URL"
	case c == readOnly:
		return "the database is read-only: a replica, or a failover that is under way"
	case c == tooManyConnections:
		return "the database has no connection left, see max_connections and the role's own limit"
	case c == diskFull:
		return "the database's disk is full"
	case c == cannotConnectNow:
		return "the database is starting or stopping"
	case c == adminShutdown || c == crashShutdown:
		return "the database ended the connection, it may be stopping"
	case c == queryCanceled || c == lockNotAvailable:
		return "the database did not answer in time"
	case len(c) == 5 && c[:2] == classLogin:
		return "the login is refused, see user and password in DATABASE_URL"
	case len(c) == 5 && c[:2] == classConnection:
		// What the server told it stands in its log only, or, since version 1.20, behind this.
		return "PgBouncer has no connection to the database, its log says why"
	}
	return store.ErrUnavailable.Error()
}

// lastAttempt is why the last address or kind of connection failed: an attempt with
// TLS comes before the one without.
func lastAttempt(connect *pgconn.ConnectError) string {
	err := connect.Unwrap()
	if errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) {
		return "no answer in time"
	}
	var attempts interface{ Unwrap() []error }
	if errors.As(err, &attempts) {
		all := attempts.Unwrap()
		err = all[len(all)-1]
	}
	return withoutSource(err)
}

// withoutSource drops the port that the system gave this connection: with it, each
// attempt would read as a new trouble.
func withoutSource(err error) string {
	var op *net.OpError
	if !errors.As(err, &op) {
		return err.Error()
	}
	short := *op
	short.Source = nil
	return short.Error()
}
