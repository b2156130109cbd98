package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

const roleEvent = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-o","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"

func delta(text string) string {
	return fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-o","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, text) + "\n\n"
}

const (
	stopEvent  = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-o","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageEvent = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-o","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}` + "\n\n"
	doneEvent  = "data: [DONE]\n\n"
	streamBody = `{"model":"m-o","messages":[{"role":"user","content":"Hello!"}],"max_tokens":91,"stream":true}`
)

// script is a provider that streams what it is given and then ends or dies.
func script(parts []string, die bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range parts {
			fmt.Fprint(w, part)
			w.(http.Flusher).Flush()
		}
		if die {
			panic(http.ErrAbortHandler)
		}
	}
}

// TestStreamEndings walks through the ways in which a provider's stream can end.
func TestStreamEndings(t *testing.T) {
	t.Parallel()
	text := []string{roleEvent, delta("Hel"), delta("lo")}
	with := func(more ...string) []string { return append(append([]string{}, text...), more...) }
	for _, c := range []struct {
		why    string
		parts  []string
		die    bool
		status int
		clean  bool // ends with [DONE]
		cost   int64
		record store.Status
		guess  bool // estimated
	}{
		{"as it should be", with(stopEvent, usageEvent, doneEvent), false, 200, true, 1_100_000, store.StatusSuccess, false},
		{"no [DONE]: the client gets one", with(stopEvent, usageEvent), false, 200, true, 1_100_000, store.StatusSuccess, false},
		{"no newline behind [DONE]", with(stopEvent, usageEvent, "data: [DONE]"), false, 200, true, 1_100_000, store.StatusSuccess, false},
		{"no usage and no [DONE]: the text is counted", with(stopEvent), false, 200, true, 1_000_000, store.StatusSuccess, true},
		{"comments and blank lines between", []string{": ping\n\n", roleEvent, "\n", delta("Hel"), "id: 7\n" + delta("lo"), stopEvent, usageEvent, doneEvent}, false, 200, true, 1_100_000, store.StatusSuccess, false},
		{"dies in the middle: never a clean end", text, true, 200, false, 1_000_000, store.StatusUpstreamAborted, true},
		{"ends without a finish_reason: half an answer", text, false, 200, false, 1_000_000, store.StatusUpstreamAborted, true},
		{"dies before the first event: a status of its own", nil, true, 502, false, 900_000, store.StatusFailure, true},
		{"an error as the first event: a status of its own", []string{`data: {"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}` + "\n\n"}, false, 429, false, 900_000, store.StatusUpstreamAborted, true},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := setup(t, script(c.parts, c.die))
			key := s.newKey("1", nil)
			status, body := s.rawChat(key, streamBody)
			if status != c.status {
				t.Fatalf("status %d, want %d: %s", status, c.status, body)
			}
			if clean := strings.Contains(body, "data: [DONE]\n\n"); clean != c.clean {
				t.Errorf("clean end %v, want %v: %s", clean, c.clean, body)
			}
			if c.status == 200 && !c.clean && !strings.Contains(body, `"error"`) {
				t.Errorf("half an answer without an error event: %s", body)
			}
			rec := s.records(key, 1)[0]
			if rec.Cost != c.cost || rec.Status != c.record || rec.Estimated != c.guess {
				t.Errorf("cost %d status %s estimated %v, want %d %s %v", rec.Cost, rec.Status, rec.Estimated, c.cost, c.record, c.guess)
			}
		})
	}
}

// rawChat reads what comes until the connection ends, however it ends.
func (s *stack) rawChat(key, body string) (status int, text string) {
	s.t.Helper()
	conn := s.send(key, body)
	defer conn.Close()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return resp.StatusCode, b.String()
		}
	}
}

func (s *stack) send(key, body string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
	return conn
}

// TestClientLeaves: the provider is told within a second, whatever the request was
// doing, one record is booked, and no goroutine stays.
func TestClientLeaves(t *testing.T) {
	for _, c := range []struct {
		why    string
		stream bool
		first  bool // the client reads a first event before it leaves
	}{
		{"in the middle of a stream", true, true},
		{"before a stream has begun", true, false},
		{"while a whole answer is awaited", false, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			arrived, left := make(chan struct{}, 1), make(chan time.Time, 1)
			s := setup(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				// net/http watches for the end of the connection only once the body is read.
				_, _ = io.Copy(io.Discard, r.Body)
				if c.first {
					script([]string{roleEvent, delta("Hel")}, false)(w, r)
				}
				arrived <- struct{}{}
				<-r.Context().Done()
				left <- time.Now()
			}))
			key := s.newKey("1", nil)
			body := streamBody
			if !c.stream {
				body = strings.Replace(body, `,"stream":true`, "", 1)
			}
			s.chat(key, strings.Replace(hello, "m-o", "canned", 1)) // now everything that a worker starts is there
			before := runtime.NumGoroutine()                        // and no other test runs beside this one
			conn := s.send(key, body)
			<-arrived
			if c.first {
				if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			gone := time.Now()
			conn.Close()
			if d := (<-left).Sub(gone); d > time.Second {
				t.Errorf("the provider saw it after %s", d)
			}
			rec := s.records(key, 2)[0]
			if rec.Status != store.StatusClientClosed || !rec.Estimated || rec.Cost < 900_000 {
				t.Errorf("record %+v", rec)
			}
			s.eventually(func() bool { return runtime.NumGoroutine() <= before+5 }, "goroutines back to %d", before)
		})
	}
}

func TestReservedMoneyComesBack(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	for _, model := range []string{"fake-500", "fake-429", "fake-reset", "fake-reset-mid", "fake-invalid-json", "fake-error-envelope", "fake-negative-usage", "fake-no-done", "fake-no-usage"} {
		t.Run(model, func(t *testing.T) {
			s := *s
			s.t = t
			key := s.newKey("1", nil)
			for _, stream := range []string{"true", "false"} {
				s.rawChat(key, `{"model":"`+model+`","messages":[{"role":"user","content":"Hello!"}],"max_tokens":91,"stream":`+stream+`}`)
			}
			spent := int64(0)
			for _, rec := range s.records(key, 2) {
				if rec.Cost < 0 {
					t.Errorf("negative cost: %+v", rec)
				}
				spent += rec.Cost
			}
			// With every hold settled and its lease returned, all that was not spent can be held again.
			s.eventually(func() bool {
				k, err := s.store.Key(t.Context(), keyID(key))
				check(t, err)
				return k.Spend == spent
			}, "spend equal to the records' %d", spent)
		})
	}
}
