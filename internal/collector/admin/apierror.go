package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/penstock-gateway/penstock/internal/store"
)

// apiError is what a caller is told.
type apiError struct {
	status int
	kind   string // "type" in the envelope
	msg    string
	param  string // the field at fault, where there is one
}

func (e *apiError) Error() string { return e.msg }

// badField is a fault of one field, which the message names first.
func badField(field, format string, args ...any) error {
	return &apiError{
		status: http.StatusBadRequest,
		kind:   "bad_request_error",
		msg:    field + " " + fmt.Sprintf(format, args...),
		param:  field,
	}
}

func badRequest(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: "bad_request_error", msg: fmt.Sprintf(format, args...)}
}

func unauthorized(kind, msg string) error {
	return &apiError{status: http.StatusUnauthorized, kind: kind, msg: msg}
}

func notFound(msg string) *apiError {
	return &apiError{status: http.StatusNotFound, kind: "not_found_error", msg: msg, param: "key"}
}

// asAPIError gives every error its status. A database that is away is 503 and never
// 401: a client would throw its key away.
func asAPIError(err error) *apiError {
	var e *apiError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &apiError{status: http.StatusServiceUnavailable, kind: "no_db_connection", msg: "the database is unavailable"}
	case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrInUse):
		return badRequest("%v", err)
	case errors.Is(err, store.ErrNotFound):
		return notFound("key not found")
	}
	return &apiError{status: http.StatusInternalServerError, kind: "internal_server_error", msg: "internal error"}
}

func (a *api) writeError(w http.ResponseWriter, r *http.Request, err error) {
	e := asAPIError(err)
	switch e.status {
	case http.StatusInternalServerError:
		a.log.Error("cannot answer an admin call", "path", r.URL.Path, "error", err)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
		a.log.Warn("the database is away, an admin call was refused", "path", r.URL.Path, "error", err)
	}
	var param any
	if e.param != "" {
		param = e.param
	}
	a.writeJSON(w, e.status, map[string]any{"error": map[string]any{
		"message": e.msg,
		"type":    e.kind,
		"param":   param,
		"code":    strconv.Itoa(e.status),
	}})
}

// writeJSON answers with v. The whole answer is built first, so that a value that
// cannot be encoded does not leave half of one.
func (a *api) writeJSON(w http.ResponseWriter, status int, v any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		a.log.Error("cannot encode an answer", "error", err)
		http.Error(w, `{"error":{"message":"internal error","type":"internal_server_error","param":null,"code":"500"}}`,
			http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // the caller has gone: nobody is left to tell
}
