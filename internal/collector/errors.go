package collector

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-gateway/penstock/internal/store"
)

// errStopping ends what the collector can no longer serve. Workers reconnect.
var errStopping = status.Error(codes.Unavailable, "the collector is stopping")

// invalid is a request that no retry makes right: a fault of the caller.
type invalid struct{ msg string }

func (e invalid) Error() string { return e.msg }

func invalidf(format string, args ...any) error {
	return invalid{msg: fmt.Sprintf(format, args...)}
}

// retryable tells a database that is away from a database that said no. A deadline
// counts as away: the collector sets one on every statement, so that a connection
// that hangs is given up.
func retryable(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// rpcError is what a worker is told. Everything that has no meaning of its own is
// Internal, and logged, because a worker can do nothing about it.
func (c *Collector) rpcError(method string, err error) error {
	var bad invalid
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		c.stats.refused.Add(1)
		c.log.Warn("refused an invalid call", "method", method, "error", bad.msg)
		return status.Error(codes.InvalidArgument, bad.msg)
	case errors.Is(err, store.ErrInvalid):
		c.stats.refused.Add(1)
		return status.Error(codes.InvalidArgument, err.Error())
	case isStatus(err):
		return err
	case errors.Is(err, context.Canceled):
		return status.FromContextError(err).Err()
	case retryable(err):
		c.stats.unavailable.Add(1)
		return status.Error(codes.Unavailable, "the database is unavailable")
	case errors.Is(err, store.ErrGap):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, store.ErrNotFound):
		return status.Error(codes.NotFound, err.Error())
	}
	c.log.Error("cannot answer a worker", "method", method, "error", err)
	return status.Error(codes.Internal, err.Error())
}

// isStatus says that err comes from gRPC itself, or from a place that chose its code.
func isStatus(err error) bool {
	_, ok := status.FromError(err)
	return ok
}
