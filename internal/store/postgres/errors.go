package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/penstock-gateway/penstock/internal/store"
)

// SQLSTATEs that have a meaning here.
const (
	uniqueViolation    = "23505"
	diskFull           = "53100"
	tooManyConnections = "53300"
	queryCanceled      = "57014"
	adminShutdown      = "57P01"
	crashShutdown      = "57P02"
	cannotConnectNow   = "57P03"
	serialization      = "40001"
	deadlock           = "40P01"
	readOnly           = "25006" // a former primary, or a server that is about to change
	lockNotAvailable   = "55P03"
	undefinedTable     = "42P01"
	undefinedColumn    = "42703"
	databaseMissing    = "3D000"
	classData          = "22"
	classConstraint    = "23"
	classLimit         = "54" // e.g. a value too long for an index
	classConnection    = "08" // PgBouncer's own errors have 08P01
	classResources     = "53"
	classIntervention  = "57" // shutdown, start-up, cancelled, statement_timeout
	classSystem        = "58"
	classLogin         = "28"
)

// failure says whether an error is about the request or about the database.
func failure(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrUnavailable):
		return fmt.Errorf("cannot %s: %w", what, err)
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("cannot %s: %w", what, store.ErrNotFound)
	case code(err) == uniqueViolation:
		return fmt.Errorf("cannot %s: %w", what, store.ErrConflict)
	case away(err):
		return fmt.Errorf("cannot %s: %w", what, unavailable(err))
	}
	return fmt.Errorf("cannot %s: %w", what, err)
}

// again says whether a transaction lost to another one and can be run anew.
func again(err error) bool {
	c := code(err)
	return c == serialization || c == deadlock || errors.Is(err, errAgain)
}

// away says whether an error tells nothing about the request. A login that is
// refused and a schema that is not migrated yet count: both end without a change
// of the request, and a record must wait for them, not be dropped.
func away(err error) bool {
	if c := code(err); c != "" {
		switch c[:2] {
		case classConnection, classResources, classIntervention, classSystem, classLogin:
			return true
		}
		return c == readOnly || c == lockNotAvailable || c == undefinedTable || c == undefinedColumn || c == databaseMissing
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) || ended(err)
}

// ended says whether the connection or the caller's time is gone.
func ended(err error) bool {
	for _, e := range []error{
		context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded,
		syscall.EPIPE, syscall.ECONNRESET, pgconn.ErrConnClosed,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refused says whether the database refuses the row itself.
func refused(err error) bool {
	c := code(err)
	return strings.HasPrefix(c, classData) || strings.HasPrefix(c, classConstraint) || strings.HasPrefix(c, classLimit)
}

func code(err error) string {
	var pe *pgconn.PgError
	if errors.As(err, &pe) && len(pe.Code) == 5 {
		return pe.Code
	}
	return ""
}
