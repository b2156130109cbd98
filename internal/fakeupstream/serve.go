package fakeupstream

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// serveChat opens the row before the first byte and closes it after the last, whatever
// happens between.
func (s *Server) serveChat(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	req, words, err := readChat(w, r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	c, err := s.plan(r, req, words)
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	c.entry.Started, c.entry.ID = started, newID()
	if c.mode.Status != 0 {
		c.entry.Status = c.mode.Status
	}
	t := s.ledger.open(c.entry)
	defer func() {
		c.entry.Finished = time.Now()
		s.ledger.close(t, c.entry)
	}()
	c.serve(w, r)
}

// serve is the way of one answer: wait, fail, or answer.
func (c *chat) serve(w http.ResponseWriter, r *http.Request) {
	if !pause(r.Context(), c.mode.Delay) {
		c.entry.Status = 0
		return
	}
	switch {
	case c.mode.Fault == FaultSilent:
		c.entry.Status = 0
		<-r.Context().Done()
		return
	case c.mode.Fault == FaultReset:
		c.entry.Status = 0
		reset(w)
		return
	case c.mode.Status != 0:
		writeError(w, c.mode.Status, "the fake provider was told to answer "+strconv.Itoa(c.mode.Status))
		return
	}
	h := w.Header()
	h.Set("X-Request-Id", c.entry.ID)
	var out io.Writer = w
	if c.mode.Fault == FaultGzip {
		h.Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer func() { _ = z.Close() }() // fails only for a client that left
		out = z
	}
	if c.entry.Stream {
		h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
		h["Cache-Control"] = []string{"no-cache"}
		c.stream(r.Context(), w, out)
		return
	}
	h["Content-Type"] = []string{"application/json"}
	c.whole(r.Context(), w, out)
}

// pause waits; false: the client left meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reset drops the connection with a TCP reset, after what was written so far.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 has no connection to take; net/http resets the stream
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a connection that is gone already
	}
	conn.Close()
}

func newID() string {
	var raw [16]byte
	for i := range 2 {
		n := rand.Uint64()
		for j := range 8 {
			raw[i*8+j] = byte(n >> (8 * j))
		}
	}
	return "chatcmpl-" + hex.EncodeToString(raw[:])
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

func errorEnvelope(status int, message string) []byte {
	detail := errorDetail{Message: message, Type: "server_error", Code: "fake_error"}
	switch {
	case status == http.StatusTooManyRequests:
		detail.Type, detail.Code = "requests", "rate_limit_exceeded"
	case status == http.StatusUnauthorized:
		detail.Type, detail.Code = "invalid_request_error", "invalid_api_key"
	case status < 500:
		detail.Type, detail.Code = "invalid_request_error", "invalid_request"
	}
	b, err := json.Marshal(map[string]errorDetail{"error": detail})
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}

func writeError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = w.Write(errorEnvelope(status, message)) // a client that left needs no answer
}
