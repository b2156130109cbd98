package fakeupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// pageRows is the default, and the most, of one page of the ledger.
const pageRows = 10_000

// serveLedger answers JSON lines, oldest first: rows with n above ?after=, at most
// ?limit=. A page that is shorter than the limit is the last one for now.
func (s *Server) serveLedger(w http.ResponseWriter, r *http.Request) {
	after, err := queryNumber(r, "after", 0)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	limit, err := queryNumber(r, "limit", pageRows)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	for _, row := range s.ledger.after(after, int(min(limit, pageRows))) {
		if lines.Encode(row) != nil {
			return // the reader left
		}
	}
}

func queryNumber(r *http.Request, name string, fallback int64) (int64, error) {
	value := r.URL.Query().Get(name)
	if value == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("cannot read ?%s=%s: not a number from 0 up", name, value)
	}
	return n, nil
}

func (s *Server) serveSummary(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Summary()) }

func (s *Server) serveReset(w http.ResponseWriter, _ *http.Request) {
	s.Reset()
	writeJSON(w, s.Summary())
}

func (s *Server) serveMode(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, s.mode.Load().Show())
}

// serveSetMode takes a JSON object of settings and changes those, all or none.
func (s *Server) serveSetMode(w http.ResponseWriter, r *http.Request) {
	var values map[string]any
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16))
	body.UseNumber() // 1000000 must not come out as 1e+06
	if err := body.Decode(&values); err != nil {
		writeError(w, http.StatusBadRequest, "cannot read the mode: "+err.Error())
		return
	}
	mode := *s.mode.Load()
	for name, value := range values {
		if err := mode.Set(name, fmt.Sprint(value)); err != nil {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	s.SetMode(mode)
	writeJSON(w, mode.Show())
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a reader that left needs no answer
}
