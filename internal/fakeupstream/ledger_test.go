package fakeupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

func call(s *Server, method, target, body string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest(method, target, strings.NewReader(body)))
	return answer
}

func TestLedgerPagesThroughManyRows(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	const each, clients = 30_000, 4
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for i := range each {
				place := s.ledger.open(Entry{ID: fmt.Sprintf("%d-%d", client, i), Status: 200, CompletionTokens: 2})
				s.ledger.close(place, Entry{ID: fmt.Sprintf("%d-%d", client, i), Status: 200, CompletionTokens: 2, Complete: true})
			}
		})
	}
	all.Wait()
	seen, after := map[string]bool{}, int64(0)
	for {
		lines := json.NewDecoder(call(s, http.MethodGet, fmt.Sprintf("/ledger?after=%d", after), "").Body)
		page := 0
		for ; lines.More(); page++ {
			var row Entry
			if err := lines.Decode(&row); err != nil {
				t.Fatal(err)
			}
			if row.N != after+1 || seen[row.ID] || !row.Complete {
				t.Fatalf("row %+v after %d", row, after)
			}
			seen[row.ID], after = true, row.N
		}
		if page < pageRows {
			break
		}
	}
	sum := s.Summary()
	if len(seen) != each*clients || sum.Requests != each*clients || sum.CompletionTokens != 2*each*clients || sum.InFlight != 0 {
		t.Errorf("%d rows read, summary %+v", len(seen), sum)
	}
}

func TestLedgerIsBounded(t *testing.T) {
	t.Parallel()
	l := newLedger(chunkRows)
	old := l.open(Entry{Status: 200})
	for range 5 * chunkRows {
		l.close(l.open(Entry{Status: 200}), Entry{Status: 200})
	}
	l.close(old, Entry{Status: 200}) // its row is gone; the sums are not
	sum := l.summary()
	if sum.RowsKept < chunkRows || sum.RowsKept > 3*chunkRows || sum.RowsKept+sum.RowsDropped != sum.Requests || sum.Served != sum.Requests {
		t.Errorf("summary %+v", sum)
	}
	if rows := l.after(0, 10); len(rows) != 10 || rows[0].N != sum.RowsDropped+1 {
		t.Errorf("reading from the start must begin with the oldest kept: %+v", rows)
	}
}

func TestResetForgetsRunningRequests(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	running := s.ledger.open(Entry{Status: 200})
	if answer := call(s, http.MethodPost, "/ledger/reset", ""); answer.Code != http.StatusOK {
		t.Fatal(answer.Code)
	}
	s.ledger.open(Entry{ID: "new", Status: 200})
	s.ledger.close(running, Entry{ID: "old", Status: 200})
	if rows := s.Ledger(); len(rows) != 1 || rows[0].ID != "new" || s.Summary().InFlight != 1 {
		t.Errorf("a request from before the reset wrote into the new ledger: %+v", rows)
	}
}

func TestModeChangesAtRunTime(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	for _, c := range []struct {
		why, body string
		status    int
	}{
		{"settings by name, numbers as such", `{"output-tokens":1000000,"delay":"5ms","fault":"no-done"}`, 200},
		{"all or none", `{"output-tokens":7,"fault":"nonsense"}`, 400},
		{"an unknown name", `{"speed":1}`, 400},
		{"out of range", `{"status":200}`, 400},
		{"no object", `[]`, 400},
	} {
		if answer := call(s, http.MethodPost, "/mode", c.body); answer.Code != c.status {
			t.Errorf("%s: %d %s", c.why, answer.Code, answer.Body)
		}
	}
	var shown map[string]string
	if err := json.NewDecoder(call(s, http.MethodGet, "/mode", "").Body).Decode(&shown); err != nil {
		t.Fatal(err)
	}
	if shown["output-tokens"] != "1000000" || shown["delay"] != "5ms" || shown["fault"] != "no-done" || len(shown) != len(Settings()) {
		t.Errorf("mode %v", shown)
	}
	for path, want := range map[string]int{"/health": 200, "/ledger/summary": 200, "/ledger?after=x": 400, "/ledger?limit=-1": 400, "/v1/unknown": 404} {
		if answer := call(s, http.MethodGet, path, ""); answer.Code != want {
			t.Errorf("GET %s answers %d, want %d", path, answer.Code, want)
		}
	}
}

func FuzzModelNames(f *testing.F) {
	for _, name := range []string{"fake-429", "openai/fake-slow-2s-out-100", "fake-reset-mid", "fake--", "fake-status-", "fake-out-x-pace-1ms", "gpt-5"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		m := DefaultMode()
		m.applyModel(name)
		for _, s := range Settings() { // whatever a name says is a mode that could be set
			if err := m.Set(s.Name, s.show(&m)); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
		}
	})
}
