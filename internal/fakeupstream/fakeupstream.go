// Package fakeupstream is a provider that speaks OpenAI's chat API for tests and
// benchmarks: it behaves and misbehaves as told, and keeps its own ledger of what it
// served, to be compared with the gateway's.
package fakeupstream

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Config sets what a server does when a request does not say otherwise.
type Config struct {
	Mode Mode // zero fields take the defaults of DefaultMode
	// LedgerRows is how many rows are kept at least (default 2,000,000); beyond it the
	// oldest go, and the summary tells how many.
	LedgerRows int
}

// Mode is how a request is answered. The settings' names, for headers, model names and
// POST /mode, are in Settings.
type Mode struct {
	OutputTokens int           // deltas, one token each, before the request's cap clips them; default 16
	DeltaBytes   int           // least size of a delta's text; 0: one short word
	PromptTokens int           // reported prompt tokens; 0: the body's words are counted
	Delay        time.Duration // before the response's headers
	Pace         time.Duration // before each delta of a stream
	Status       int           // answer with this error status; 0: serve
	Fault        Fault         // how to misbehave; empty: not at all
}

// Fault is a way to misbehave.
type Fault string

// The faults. Where a fault is about streams, the nearest thing happens without one.
const (
	FaultReset         Fault = "reset"          // TCP reset before the headers
	FaultResetMid      Fault = "reset-mid"      // TCP reset after half of the answer
	FaultNoDone        Fault = "no-done"        // ends without [DONE]
	FaultNoUsage       Fault = "no-usage"       // usage never comes
	FaultSilent        Fault = "silent"         // no byte until the client leaves
	FaultStall         Fault = "stall"          // half of the answer, then no byte until the client leaves
	FaultInvalidJSON   Fault = "invalid-json"   // one event, or the body, is cut off
	FaultErrorEnvelope Fault = "error-envelope" // status 200, then an error object
	FaultGzip          Fault = "gzip"           // gzip, asked for or not
	FaultNegativeUsage Fault = "negative-usage" // usage below zero
)

// DefaultMode is a well-behaved, fast provider.
func DefaultMode() Mode { return Mode{OutputTokens: 16} }

// Server answers, and remembers. It is safe for concurrent use.
type Server struct {
	mux    *http.ServeMux
	mode   atomic.Pointer[Mode]
	ledger *ledger
}

// New makes a server; it has nothing to start or stop.
func New(cfg Config) *Server {
	s := &Server{mux: http.NewServeMux(), ledger: newLedger(cfg.LedgerRows)}
	s.SetMode(cfg.Mode)
	s.mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	s.mux.HandleFunc("GET /ledger", s.serveLedger)
	s.mux.HandleFunc("GET /ledger/summary", s.serveSummary)
	s.mux.HandleFunc("POST /ledger/reset", s.serveReset)
	s.mux.HandleFunc("GET /mode", s.serveMode)
	s.mux.HandleFunc("POST /mode", s.serveSetMode)
	s.mux.HandleFunc("/", s.serveUnknown)
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The hot route goes past the mux.
	if r.Method == http.MethodPost && (r.URL.Path == "/v1/chat/completions" || r.URL.Path == "/chat/completions") {
		s.serveChat(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Ledger is every row that is kept, oldest first. Rows of running requests have no
// Finished time yet.
func (s *Server) Ledger() []Entry { return s.ledger.after(0, int(^uint(0)>>1)) }

// Summary adds up the ledger since the last reset.
func (s *Server) Summary() Summary { return s.ledger.summary() }

// Reset forgets every row.
func (s *Server) Reset() { s.ledger.reset() }

// SetMode changes the defaults for requests that come from now on.
func (s *Server) SetMode(m Mode) {
	if m.OutputTokens == 0 {
		m.OutputTokens = DefaultMode().OutputTokens
	}
	s.mode.Store(&m)
}

func (s *Server) serveUnknown(w http.ResponseWriter, r *http.Request) {
	writeError(w, http.StatusNotFound, "unknown route "+r.Method+" "+r.URL.Path)
}
