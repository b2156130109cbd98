package upstream

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// What a failed call failed of. Compare with errors.Is.
var (
	// ErrCanceled: Call.Cancel was called.
	ErrCanceled = errors.New("the call was canceled")
	// ErrClosed: the Client was closed.
	ErrClosed = errors.New("the upstream client is closed")
	// ErrInvalidCall: the call cannot be written as HTTP; nothing was sent.
	ErrInvalidCall = errors.New("the call is not valid HTTP")
	// ErrDialTimeout: no connection (with proxy and TLS) within DialTimeout.
	ErrDialTimeout = errors.New("DialTimeout passed")
	// ErrHeaderTimeout: no complete response header within HeaderTimeout.
	ErrHeaderTimeout = errors.New("HeaderTimeout passed")
	// ErrIdleTimeout: no byte moved for IdleTimeout.
	ErrIdleTimeout = errors.New("IdleTimeout passed")
	// ErrDeadline: the call's own Deadline passed.
	ErrDeadline = errors.New("the call's Deadline passed")
	// ErrUnexpectedEnd: the connection ended before the response did.
	ErrUnexpectedEnd = errors.New("the connection ended before the response did")
	// ErrHeaderTooLarge: the response header is larger than MaxResponseHeader.
	ErrHeaderTooLarge = errors.New("the response header is larger than MaxResponseHeader")
	// ErrBodyTooLarge: ReadAll met a body larger than MaxBody.
	ErrBodyTooLarge = errors.New("the response body is larger than MaxBody")
	// ErrProtocol: what came is not HTTP/1.1.
	ErrProtocol = errors.New("the answer is not valid HTTP/1.1")
	// ErrProxyRefused: the forward proxy would not open the tunnel.
	ErrProxyRefused = errors.New("the proxy refused the tunnel")
)

// Phase is the part of an exchange in which it failed.
type Phase uint8

// The phases in the order they happen.
const (
	PhaseDial Phase = iota
	PhaseWrite
	PhaseHeader
	PhaseBody
)

var phaseText = [...]string{"connect to", "send to", "read the response header of", "read the response body of"}

// Sent says how much of a request can have reached the upstream.
type Sent uint8

// SentPart is less than the whole: no upstream can have acted on it, because
// the length it was promised never came.
const (
	SentNothing Sent = iota
	SentPart
	SentAll
)

// Error is what Do and Response.Read fail with.
type Error struct {
	Phase Phase
	Sent  Sent
	// Reused: the connection had served an earlier call. With SentAll and no
	// answer it may have been closed under the request, or because of it.
	Reused bool
	// Addr is the base URL of the target; it holds no credentials.
	Addr string
	Err  error

	answered bool // at least one byte of a response came
}

func (e *Error) Error() string {
	return fmt.Sprintf("cannot %s upstream %s: %v", phaseText[e.Phase], e.Addr, e.Err)
}

// Unwrap gives the reason.
func (e *Error) Unwrap() error { return e.Err }

// NothingSent reports that no byte of the request left this process, so that
// it may be sent elsewhere.
func NothingSent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Sent == SentNothing
}

// RequestSent reports that the upstream may have read the whole request and
// acted on it. Sending it again can bill it twice. An error that is not this
// package's counts as sent.
func RequestSent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return !ok || e.Sent == SentAll
}

// TimedOut reports that the call failed by a time limit of any kind.
func TimedOut(err error) bool {
	return errors.Is(err, ErrDialTimeout) || errors.Is(err, ErrHeaderTimeout) ||
		errors.Is(err, ErrIdleTimeout) || errors.Is(err, ErrDeadline)
}

// classify turns an error of the socket or of the codec into one of the
// package's reasons. limit is the reason that a passed deadline stands for.
func classify(call *Call, err, limit error) error {
	switch {
	case call.Canceled():
		return ErrCanceled
	case errors.Is(err, os.ErrDeadlineExceeded):
		if !call.Deadline.IsZero() && !time.Now().Before(call.Deadline) {
			return ErrDeadline
		}
		return limit
	case errors.Is(err, ErrProtocol), errors.Is(err, ErrUnexpectedEnd):
		return err
	case errors.Is(err, io.EOF):
		return ErrUnexpectedEnd
	default:
		return fmt.Errorf("%w: %w", ErrUnexpectedEnd, err)
	}
}
