package fakeupstream

import (
	"sync"
	"time"
)

// Entry is one request as this provider saw it.
type Entry struct {
	N                int64     `json:"n"` // position, from 1; for ?after=
	ID               string    `json:"id"`
	RequestID        string    `json:"request_id,omitempty"` // x-client-request-id, if the gateway sent one
	Model            string    `json:"model"`
	Stream           bool      `json:"stream"`
	MaxTokens        int       `json:"max_tokens"` // the cap that was received; 0: none
	Status           int       `json:"status"`     // 0: no answer was begun
	Fault            Fault     `json:"fault,omitempty"`
	PromptTokens     int       `json:"prompt_tokens"`     // as reported, or as it would have been
	CompletionTokens int       `json:"completion_tokens"` // as planned
	SentTokens       int       `json:"sent_tokens"`       // deltas handed to the network
	Complete         bool      `json:"complete"`          // all was sent and the client was still there
	Started          time.Time `json:"started"`
	Finished         time.Time `json:"finished,omitzero"`
}

// Summary adds up the ledger since the last reset, rows that were dropped included.
type Summary struct {
	Requests         int64 `json:"requests"`
	InFlight         int64 `json:"in_flight"`
	Served           int64 `json:"served"`   // finished with status 200
	Complete         int64 `json:"complete"` // of those, the client stayed to the end
	Errors           int64 `json:"errors"`   // answered with an error status, or not at all
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	SentTokens       int64 `json:"sent_tokens"`
	RowsKept         int64 `json:"rows_kept"`
	RowsDropped      int64 `json:"rows_dropped"`
}

const chunkRows = 4096

// ledger keeps rows in chunks, so that a long run never copies what it has.
type ledger struct {
	maxRows int

	mu      sync.Mutex
	chunks  [][]Entry // all full but the last
	dropped int64     // rows before chunks[0]
	life    int64     // counts resets, so that a request from before one is not written into it
	totals  Summary
}

func newLedger(maxRows int) *ledger {
	if maxRows <= 0 {
		maxRows = 2_000_000
	}
	return &ledger{maxRows: maxRows}
}

// ticket is a row's place.
type ticket struct{ n, life int64 }

// open writes a request's row before anything is answered.
func (l *ledger) open(e Entry) ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) == chunkRows {
		l.chunks = append(l.chunks, make([]Entry, 0, chunkRows))
		last++
	}
	l.totals.Requests++
	l.totals.InFlight++
	e.N = l.totals.Requests
	l.chunks[last] = append(l.chunks[last], e)
	if (last-1)*chunkRows >= l.maxRows {
		l.dropped += chunkRows
		l.chunks[0] = nil
		l.chunks = l.chunks[1:]
	}
	return ticket{n: e.N, life: l.life}
}

// close completes a row.
func (l *ledger) close(t ticket, e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.life != l.life {
		return
	}
	e.N = t.n
	if row := l.row(t.n); row != nil {
		*row = e
	}
	l.totals.InFlight--
	if e.Status != 200 {
		l.totals.Errors++
		return
	}
	l.totals.Served++
	if e.Complete {
		l.totals.Complete++
	}
	l.totals.PromptTokens += int64(e.PromptTokens)
	l.totals.CompletionTokens += int64(e.CompletionTokens)
	l.totals.SentTokens += int64(e.SentTokens)
}

// row finds a kept row by its position; nil when it is gone.
func (l *ledger) row(n int64) *Entry {
	at := n - 1 - l.dropped
	if at < 0 || at >= l.kept() {
		return nil
	}
	return &l.chunks[at/chunkRows][at%chunkRows]
}

func (l *ledger) kept() int64 { return l.totals.Requests - l.dropped }

// after copies up to limit rows whose position is above n.
func (l *ledger) after(n int64, limit int) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := max(n, l.dropped, 0)
	count := min(l.totals.Requests-first, int64(limit))
	if count <= 0 {
		return nil
	}
	rows := make([]Entry, 0, count)
	for i := range count {
		rows = append(rows, *l.row(first + i + 1))
	}
	return rows
}

func (l *ledger) summary() Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.totals
	s.RowsKept, s.RowsDropped = l.kept(), l.dropped
	return s
}

func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chunks, l.dropped, l.totals = nil, 0, Summary{}
	l.life++
}
