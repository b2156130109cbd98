// Package admin is the HTTP API by which keys are made and spend is read, in
// LiteLLM's shapes, so that its clients work unchanged. Money goes in and out as
// exact decimals, and nothing a caller sets is ignored in silence.
package admin

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock-gateway/penstock/internal/store"
)

// callTimeout bounds one call's work in the database.
const callTimeout = 30 * time.Second

// Config is what the API needs.
type Config struct {
	Store           store.Store
	MasterKeySHA256 [32]byte // of the key that may do everything
	Logger          *slog.Logger
}

// New builds the API's handler. It is safe for concurrent use and keeps no state.
func New(cfg Config) http.Handler {
	return &api{store: cfg.Store, master: cfg.MasterKeySHA256, log: cfg.Logger}
}

type api struct {
	store  store.Store
	master [32]byte
	log    *slog.Logger
}

// route is one call. Its handler returns what is answered as JSON.
type route struct {
	method string
	access access
	handle func(*api, http.ResponseWriter, *http.Request, caller) (any, error)
	also   string // another method that does the same; "": none
}

// access says who may make a call.
type access int

const (
	masterOnly access = iota
	viewers           // administrators who may only read, too
	anyKey            // the handler limits a key to what is its own
)

func routeOf(path string) (route, bool) {
	switch strings.TrimRight(path, "/") {
	case "/key/generate":
		return route{method: http.MethodPost, access: anyKey, handle: (*api).generate}, true
	case "/key/update":
		return route{method: http.MethodPost, access: anyKey, handle: (*api).update}, true
	case "/key/delete":
		return route{method: http.MethodPost, access: anyKey, handle: (*api).delete}, true
	case "/key/block":
		return route{method: http.MethodPost, access: anyKey, handle: (*api).block}, true
	case "/key/unblock":
		return route{method: http.MethodPost, access: anyKey, handle: (*api).unblock}, true
	case "/key/info":
		return route{method: http.MethodGet, access: anyKey, handle: (*api).info}, true
	case "/key/list":
		return route{method: http.MethodGet, access: anyKey, handle: (*api).list}, true
	case "/spend/logs":
		return route{method: http.MethodGet, access: masterOnly, handle: (*api).spendLogs}, true
	case "/spend/correct":
		return route{method: http.MethodPost, access: masterOnly, handle: (*api).correct}, true
	}
	return directoryRoute(strings.TrimRight(path, "/"))
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	answer, err := a.answer(w, r.WithContext(ctx))
	if err != nil {
		a.writeError(w, r, err)
		return
	}
	a.writeJSON(w, http.StatusOK, answer)
}

func (a *api) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	call, ok := routeOf(r.URL.Path)
	if !ok {
		return nil, &apiError{status: http.StatusNotFound, kind: "not_found_error", msg: "no such path"}
	}
	if r.Method != call.method && (call.also == "" || r.Method != call.also) {
		w.Header().Set("Allow", call.method)
		return nil, &apiError{status: http.StatusMethodNotAllowed, kind: "method_not_allowed",
			msg: "this path takes " + call.method}
	}
	who, err := a.identify(r)
	if err != nil {
		return nil, err
	}
	if call.access != anyKey && !who.master && (call.access != viewers || !who.viewer) {
		return nil, forbidden("this call needs the master key")
	}
	if r.Method != http.MethodGet && !who.master && who.key.UserID == "" && call.access == anyKey {
		return nil, forbidden("this call needs the master key") // nobody stands behind the key who could have rights
	}
	if err := checkQuery(r); err != nil {
		return nil, err
	}
	return call.handle(a, w, withActor(r, who), who)
}

// checkQuery refuses what no database takes as text.
func checkQuery(r *http.Request) error {
	for name, values := range r.URL.Query() {
		for _, v := range values {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return badField(name, "must be UTF-8 without NUL")
			}
		}
	}
	return nil
}

// warnUnused names query parameters that have no effect here.
func warnUnused(w http.ResponseWriter, r *http.Request, used ...string) {
	for name := range r.URL.Query() {
		if !slices.Contains(used, name) {
			w.Header().Add("x-penstock-warning", "a query parameter has no effect: "+printable(name))
		}
	}
}
