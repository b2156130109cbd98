package sidecar

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes bounds what is rendered at once.
const maxScrapes = 8

func (s *Server) routes() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{s})
	// The usual go_ and process_ names would be taken for the gateway's.
	own := prometheus.WrapRegistererWithPrefix(ownFamilyPrefix, registry)
	own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // one bad series must not hide the others
		MaxRequestsInFlight: maxScrapes,
	}))
	mux.HandleFunc("GET /rates", s.serveRates)
	mux.HandleFunc("GET /health", s.serveHealth)
	return mux
}

// settled tells whether workers have had the time to report to this sidecar.
func (s *Server) settled() bool { return s.rates.settled(time.Now()) }

// serveRates answers 503 while nothing is known: a reader must not take that for zero.
func (s *Server) serveRates(w http.ResponseWriter, _ *http.Request) {
	rates, known := s.rates.read()
	if !known || !s.settled() {
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "no rates are known yet"})
		return
	}
	writeJSON(w, http.StatusOK, rates)
}

// serveHealth is 200 as long as the process answers; workers come and go.
func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		Status  string `json:"status"`
		Workers int    `json:"workers"`
	}{"ok", s.merger.stats().workers})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a reader that left needs no answer
}
