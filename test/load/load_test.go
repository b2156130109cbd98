package load_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-gateway/penstock/test/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server that answers with do and gives its host and port.
func serve(t *testing.T, do http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(do)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

const usage = `"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`

// A yardstick that takes a broken answer for a good one measures nothing.
func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why     string
		stream  bool
		chunked bool
		status  int
		body    string
		fault   string // "": good; "error": Do fails
	}{
		{"a whole answer", false, false, 200, `{` + usage + `}`, ""},
		{"a whole answer in chunks", false, true, 200, `{` + usage + `}`, ""},
		{"a stream", true, true, 200, "data: {" + usage + "}\n\ndata: [DONE]\n\n", ""},
		{"a stream of known length, as the mock sends it", true, false, 200, "data: {" + usage + "}\n\ndata: [DONE]\n\n", ""},
		{"a stream that ends early", true, true, 200, "data: {" + usage + "}\n\n", "no [DONE]"},
		{"a stream that hides the usage that was asked for", true, true, 200, "data: {}\n\ndata: [DONE]\n\n", "no usage"},
		{"usage that is null", false, false, 200, `{"usage":null}`, "no usage"},
		{"a refusal", false, false, 429, `{}`, "status 429"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Penstock-Request-Id", "an-id")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
				if c.chunked {
					_ = http.NewResponseController(w).Flush()
				}
			})
			conn := load.Dial(address)
			defer conn.Close()
			for range 2 { // the second one on the same connection
				a, err := conn.Do(load.Chat(load.ChatOptions{Model: "m", Prompt: "p", Stream: c.stream}), 0)
				if err != nil || a.Fault() != c.fault || a.RequestID != "an-id" || string(a.Body) != c.body {
					t.Fatalf("fault %q, error %v, answer %+v", a.Fault(), err, a)
				}
			}
		})
	}
}

// A connection that breaks is an error, and the next request has a new one.
func TestBrokenAnswerIsAnError(t *testing.T) {
	t.Parallel()
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
	})
	conn := load.Dial(address)
	defer conn.Close()
	for range 2 {
		if a, err := conn.Do(load.Chat(load.ChatOptions{}), 0); err == nil {
			t.Errorf("half an answer was taken: %+v", a)
		}
	}
}

// No two requests are the same where that is asked for: a cache would be measured.
func TestSerialsDiffer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]bool{}
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a short body is found out by its length
		mu.Lock()
		defer mu.Unlock()
		seen[string(body)] = true
		fmt.Fprintf(w, `{%s}`, usage)
	})
	result := load.Run(t.Context(), load.Config{
		Address: address, Concurrency: 4, Total: 50,
		Requests: []*load.Request{load.Chat(load.ChatOptions{Model: "m", Prompt: "p", Serial: true})},
	})
	if result.OK != 50 || len(seen) != 50 {
		t.Errorf("%d answers, %d different bodies, faults %v", result.OK, len(seen), result.Faults)
	}
}

// At a fixed rate the time a request waits to be sent counts: a server that stalls
// makes all that were due meanwhile slow, not only the one that it kept.
func TestFixedRateCountsTheWait(t *testing.T) {
	t.Parallel()
	first := make(chan struct{}, 1)
	first <- struct{}{}
	const stall = 200 * time.Millisecond
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-first:
			time.Sleep(stall)
		default:
		}
		fmt.Fprintf(w, `{%s}`, usage)
	})
	result := load.Run(t.Context(), load.Config{
		Address: address, Total: 20, Rate: 1000, // all due within 20 ms
		Requests: []*load.Request{load.Chat(load.ChatOptions{Model: "m", Prompt: "p"})},
	})
	if result.OK != 20 || result.Percentile(0) < stall/2 {
		t.Errorf("%d answers, the fastest after %s: %v", result.OK, result.Percentile(0), result.Faults)
	}
}
