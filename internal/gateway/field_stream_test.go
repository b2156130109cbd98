package gateway_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// sse is S1 of the field cases with the given text.
func sse(parts ...string) string {
	b := roleEvent
	for _, p := range parts {
		b += delta(p)
	}
	return b + stopEvent + usageEvent + doneEvent
}

// rawAnswer is a provider that answers with bytes, cut into writes of a size of their own.
func rawAnswer(head, body string, cut int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, head)
		for cut = max(cut, 1); len(body) > 0; body = body[min(cut, len(body)):] {
			if _, err := io.WriteString(conn, body[:min(cut, len(body))]); err != nil {
				return
			}
			if cut < 8 {
				time.Sleep(20 * time.Microsecond) // lets the reader see most cuts
			}
		}
	}
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

func chunked(body string, size int) string {
	var b strings.Builder
	for len(body) > 0 {
		n := min(size, len(body))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return b.String() + "0\r\n\r\n"
}

// texts joins what the events' choices say.
func texts(body []byte) string {
	text := ""
	for _, e := range events(body) {
		var c struct {
			Choices []struct {
				Delta struct{ Content string }
			}
		}
		if json.Unmarshal([]byte(e), &c) == nil {
			for _, choice := range c.Choices {
				text += choice.Delta.Content
			}
		}
	}
	return text
}

// TestStreamsPassByteForByte whatever the cuts of the network (F04, F06, F07).
func TestStreamsPassByteForByte(t *testing.T) {
	t.Parallel()
	b := &board{}
	shared := setup(t, b)
	unicode := sse("Größe 你好 ", "👩‍👩‍👧‍👦")
	odd := ": ping\n\n" + roleEvent + "\n" + "event: message\nid: 7\nretry: 3000\n" + delta("Hel") +
		strings.Replace(delta("lo"), "data: ", "data:", 1) + strings.TrimSuffix(stopEvent, "\n") + ": x\n\n" + usageEvent + doneEvent
	lines := roleEvent + delta("Hello") + stopEvent + "data: {\"id\":\"c1\",\"choices\":[],\ndata: \"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"total_tokens\":11}}\n\n" + doneEvent
	crlf := strings.ReplaceAll(unicode, "\n", "\r\n")
	for _, c := range []struct{ why, body string }{
		{"text outside of ASCII", unicode}, {"comments and other fields", odd}, {"an event of two lines", lines},
		{"CRLF", crlf}, {"CR", strings.ReplaceAll(unicode, "\n", "\r")}, {"a byte order mark", "\ufeff" + unicode},
	} {
		for _, cut := range []int{1, 2, 3, 7, 1460} {
			t.Run(fmt.Sprintf("%s, cut at %d", c.why, cut), func(t *testing.T) {
				t.Parallel()
				handler := rawAnswer(streamHead, c.body, cut)
				if cut%2 == 1 { // framed as well, in chunks that fit with nothing
					handler = rawAnswer("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n", chunked(c.body, 5), cut)
				}
				s := shared.on(t)
				key := s.newKey("1", nil)
				a := s.chat(key, b.add(handler, strings.Replace(streamBody, "{", `{"stream_options":{"include_usage":true},`, 1)))
				// The last event is always ours.
				want := c.body[:strings.Index(c.body, "data: [DONE]")] + doneEvent
				if a.status != 200 || string(a.body) != want {
					t.Errorf("got %d\n%q\nwant\n%q", a.status, a.body, want)
				}
				if rec := s.records(key, 1)[0]; rec.Usage.Input != 9 || rec.Usage.Output != 2 || rec.Estimated || rec.Cost != 1_100_000 {
					t.Errorf("record %+v", rec)
				}
			})
		}
	}
}

// TestUsageEvent: once, without choices, last, and only for those who ask (F01, F02, F39).
func TestUsageEvent(t *testing.T) {
	t.Parallel()
	b := &board{}
	shared := setup(t, b)
	words := roleEvent + strings.Repeat(delta("word "), 50)
	for _, c := range []struct {
		why, body, options string
		events             int // JSON events at the client
		cost               int64
		estimated          bool
	}{
		{"asked", sse("Hel", "lo"), `"stream_options":{"include_usage":true},`, 5, 1_100_000, false},
		{"not asked", sse("Hel", "lo"), "", 4, 1_100_000, false},
		{"declined", sse("Hel", "lo"), `"stream_options":{"include_usage":false},`, 4, 1_100_000, false},
		{"null", sse("Hel", "lo"), `"stream_options":null,`, 4, 1_100_000, false},
		{"asked and never told", strings.Replace(sse("Hel", "lo"), usageEvent, "", 1), `"stream_options":{"include_usage":true},`, 5, 1_000_000, true},
		{"never told: 9 and 51 tokens", words + stopEvent + doneEvent, "", 52, 6_000_000, true},
		{"usage in the last chunk with a choice passes", strings.Replace(sse("Hel", "lo"), stopEvent+usageEvent,
			strings.Replace(stopEvent, `"choices":`, `"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11},"choices":`, 1), 1), "", 4, 1_100_000, false},
		{"usage told in each chunk: the last counts", roleEvent + strings.Replace(delta("Hel"), `"choices":`, `"usage":{"prompt_tokens":9,"completion_tokens":1},"choices":`, 1) +
			strings.Replace(delta("lo"), `"choices":`, `"usage":{"prompt_tokens":9,"completion_tokens":2},"choices":`, 1) + stopEvent + doneEvent, "", 4, 1_100_000, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			var asked bool
			raw := rawAnswer(streamHead, c.body, 1460)
			s := shared.on(t)
			key := s.newKey("1", nil)
			a := s.chat(key, b.add(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = strings.Contains(string(body), `"include_usage":true`)
				raw(w, r)
			}, strings.Replace(streamBody, "{", "{"+c.options, 1)))
			all := events(a.body)
			if a.status != 200 || len(all) != c.events+1 || all[len(all)-1] != "[DONE]" || !asked {
				t.Fatalf("got %d, %d events, asked upstream: %v\n%s", a.status, len(all), asked, a.body)
			}
			wanted := strings.Contains(c.options, "true")
			if last := all[len(all)-2]; strings.Contains(last, `"choices":[]`) != wanted {
				t.Errorf("last event %s", last)
			}
			if n := strings.Count(string(a.body), `"choices":[]`); n > 1 || n == 1 && !wanted {
				t.Errorf("%d usage events", n)
			}
			if rec := s.records(key, 1)[0]; rec.Cost != c.cost || rec.Estimated != c.estimated || rec.Status != store.StatusSuccess {
				t.Errorf("record %+v", rec)
			}
		})
	}
}

// TestAbusedStreams: half answers and errors are told as such (F09, F11, F39, F72).
func TestAbusedStreams(t *testing.T) {
	t.Parallel()
	b := &board{}
	shared := setup(t, b)
	quota := `data: {"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}` + "\n\n"
	refused := `data: {"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}` + "\n\n"
	unfinished := strings.TrimSuffix(chunked(roleEvent+delta("Hel")+delta("lo"), 4096), "0\r\n\r\n")
	chunkHead := strings.Replace(streamHead, "Connection: close", "Transfer-Encoding: chunked", 1)
	for _, c := range []struct {
		why, head, body string
		status          int
		code, text      string
		cost            int64
	}{
		{"an error first: its own status", streamHead, quota + doneEvent, 429, "insufficient_quota", "", 900_000},
		{"an error behind the role", streamHead, roleEvent + quota + doneEvent, 429, "insufficient_quota", "", 900_000},
		{"our credential refused in a stream is not the client's fault", streamHead, refused, 502, "upstream_credential", "", 900_000},
		{"an error in the middle", streamHead, roleEvent + delta("Hel") + quota + doneEvent, 200, "insufficient_quota", "Hel", 1_000_000},
		{"an error, and then as if nothing had been", streamHead, roleEvent + delta("Hel") + quota + delta("lo") + stopEvent + usageEvent + doneEvent, 200, "insufficient_quota", "Hel", 1_000_000},
		{"chunks without an end", chunkHead, unfinished, 200, "upstream_error", "Hello", 1_000_000},
		{"the end of the connection in an event", streamHead, roleEvent + delta("Hello") + `data: {"id":"c1","cho`, 200, "upstream_error", "Hello", 1_000_000},
		{"no event at all", streamHead, "", 502, "upstream_error", "", 900_000},
		{"broken framing", chunkHead, "zz\r\n", 502, "upstream_error", "", 900_000},
		{"50 words and an abort: 9 and 51 tokens", streamHead, roleEvent + strings.Repeat(delta("word "), 50), 200, "upstream_error", strings.Repeat("word ", 50), 6_000_000},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := shared.on(t)
			key := s.newKey("1", nil)
			status, body := s.rawChat(key, b.add(rawAnswer(c.head, c.body, 1<<20), streamBody))
			if status != c.status || !strings.Contains(body, `"code":"`+c.code+`"`) || strings.Contains(body, "[DONE]") || strings.Contains(body, `"stop"`) {
				t.Errorf("got %d: %s", status, body)
			}
			if status == 200 {
				if got := texts([]byte(body)); got != c.text {
					t.Errorf("text %q, want %q", got, c.text)
				}
				if n := strings.Count(body, `"error"`); n != 1 {
					t.Errorf("%d error events: %s", n, body)
				}
			}
			if rec := s.records(key, 1)[0]; rec.Cost != c.cost || !rec.Estimated || rec.Status == store.StatusSuccess {
				t.Errorf("record %+v", rec)
			}
			s.whole(key, c.cost)
		})
	}
}

// whole checks that all of a budget of 1.0 but spent can be held: nothing is reserved.
func (s *stack) whole(key string, spent int64) {
	s.t.Helper()
	rest := (1_000_000_000 - spent) / 100_000 // tokens
	body := fmt.Sprintf(`{"model":"dead","messages":[{"role":"user","content":"Hello!"}],"max_tokens":%d}`, rest-9)
	s.eventually(func() bool { return s.chat(key, body).code() == "upstream_error" }, "the whole rest of %d tokens can be held", rest)
}

// TestLongLines pass unchanged, far beyond the limits of line readers (F12).
func TestLongLines(t *testing.T) {
	t.Parallel()
	for _, size := range []int{65_500, 65_537, 1_048_577, 8_388_608} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			want := roleEvent + delta(strings.Repeat("word ", size/5+1)[:size]) + stopEvent + doneEvent
			s := setup(t, rawAnswer(streamHead, want, 100_000))
			key := s.newKey("", nil)
			if a := s.chat(key, streamBody); a.status != 200 || string(a.body) != want {
				t.Errorf("got %d and %d bytes, want %d", a.status, len(a.body), len(want))
			}
		})
	}
	t.Run("beyond the limit it is told", func(t *testing.T) {
		t.Parallel()
		s := setup(t, rawAnswer(streamHead, roleEvent+delta("Hel")+"data: "+strings.Repeat("x", 17<<20), 1<<20))
		key := s.newKey("1", nil)
		status, body := s.rawChat(key, streamBody)
		if status != 200 || !strings.Contains(body, `"error"`) || strings.Contains(body, "[DONE]") {
			t.Errorf("got %d: %.300s", status, body)
		}
		s.records(key, 1)
	})
}

// TestGzipThoughIdentityWasAsked: it is undone, so that usage is read and the client need
// not know (F19).
func TestGzipThoughIdentityWasAsked(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	for _, c := range []struct{ why, body string }{
		{"whole", `{"model":"fake-gzip-in-9-out-2","messages":[{"role":"user","content":"Hello!"}],"max_tokens":91}`},
		{"stream", `{"model":"fake-gzip-in-9-out-2","messages":[{"role":"user","content":"Hello!"}],"max_tokens":91,"stream":true}`},
	} {
		for _, accept := range []string{"gzip, br", "identity"} {
			t.Run(c.why+" for "+accept, func(t *testing.T) {
				t.Parallel()
				s := s.on(t)
				key := s.newKey("1", nil)
				a := s.do("POST", "/v1/chat/completions", key, c.body, "Accept-Encoding", accept)
				if a.status != 200 || a.header.Get("Content-Encoding") != "" || !bytes.Contains(a.body, []byte(`"choices"`)) {
					t.Errorf("got %d %v: %.200q", a.status, a.header, a.body)
				}
				if rec := s.records(key, 1)[0]; rec.Usage.Input != 9 || rec.Usage.Output != 2 || rec.Cost != 1_100_000 || rec.Estimated {
					t.Errorf("record %+v", rec)
				}
			})
		}
	}
}

func TestCodedErrorsAndForeignCodings(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(`{"error":{"message":"slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}`))
	check(t, z.Close())
	head := func(status, coding string, length int) string {
		return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n", status, coding, length)
	}
	for _, c := range []struct {
		why, head, body string
		status          int
		code            string
	}{
		{"a gzipped error is passed on readable", head("429 Too Many Requests", "gzip", zipped.Len()), zipped.String(), 429, "rate_limit_exceeded"},
		{"our credential refused, gzipped", head("401 Unauthorized", "gzip", zipped.Len()), zipped.String(), 502, "upstream_credential"},
		{"br cannot be undone", head("200 OK", "br", 4), "\x0b\x01\x80x", 502, "upstream_error"},
		{"gzip that is none", head("200 OK", "gzip", 11), `{"id":"c1"}`, 502, "upstream_error"},
		{"gzip that ends early", head("200 OK", "gzip", zipped.Len()-10), zipped.String()[:zipped.Len()-10], 502, "upstream_error"},
		{"gzip of nothing", head("200 OK", "gzip", 0), "", 502, "upstream_error"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := setup(t, rawAnswer(c.head, c.body, 1460))
			key := s.newKey("1", nil)
			a := s.chat(key, hello)
			if a.status != c.status || a.code() != c.code || a.header.Get("Content-Encoding") != "" {
				t.Errorf("got %d %q %v: %.200q", a.status, a.code(), a.header, a.body)
			}
			s.records(key, 1)
		})
	}
	t.Run("events come one by one", func(t *testing.T) {
		t.Parallel()
		next := make(chan struct{})
		s := setup(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for _, e := range []string{roleEvent, delta("Hel"), delta("lo"), stopEvent + usageEvent + doneEvent} {
				_, _ = z.Write([]byte(e))
				_ = z.Flush()
				w.(http.Flusher).Flush()
				<-next
			}
			_ = z.Close()
		}))
		w := s.wire().send("%s", post(s.newKey("", nil), streamBody))
		resp, err := http.ReadResponse(w.r, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		for _, want := range []string{roleEvent, delta("Hel"), delta("lo"), stopEvent} {
			got, err := lines.ReadString('\n')
			if err != nil || got != strings.TrimSuffix(want, "\n") {
				t.Fatalf("got %q %v, want %q", got, err, want)
			}
			_, _ = lines.ReadString('\n')
			next <- struct{}{}
		}
	})
}

// TestWrongForms: an answer that the client cannot use is a 502 in OpenAI's shape (F83).
func TestWrongForms(t *testing.T) {
	t.Parallel()
	b := &board{}
	shared := setup(t, b)
	const complete = `{"id":"c1","object":"chat.completion","created":1,"model":"m-o","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`
	const bad = `{"error":{"message":"bad tool","type":"invalid_request_error","param":"tools","code":null}}`
	whole := func(status, kind, body string) string {
		return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", status, kind, len(body), body)
	}
	html := "<html>" + strings.Repeat("secret.internal ", 1200) + "</html>"
	for _, c := range []struct {
		why, raw string
		stream   bool
		status   int
		body     string // exactly; "" for our own error
		cost     int64
	}{
		{"(a) a whole answer to a stream: it is paid", whole("200 OK", "application/json", complete), true, 502, "", 1_100_000},
		{"(b) a page of a middle box", whole("502 Bad Gateway", "text/html", html), true, 502, "", 0},
		{"(c) nothing", whole("200 OK", "text/event-stream", ""), true, 502, "", 900_000},
		{"(c) nothing of no type", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true, 502, "", 0},
		{"(d) a text", whole("200 OK", "text/plain", "ok"), true, 502, "", 0},
		{"(e) a stream that nobody asked for", whole("200 OK", "text/event-stream", sse("Hello")), false, 502, "", 900_000},
		{"(f) a byte order mark", whole("200 OK", "application/json", "\ufeff"+complete), false, 200, complete, 1_100_000},
		{"(g) JSON that ends in the middle", whole("200 OK", "application/json", complete[:100]), false, 502, "", 0},
		{"(g) JSON that ends behind its usage", whole("200 OK", "application/json", complete[:len(complete)-1]), false, 502, "", 1_100_000},
		{"a JSON text that is no object", whole("200 OK", "application/json", `"ok"`), false, 502, "", 0},
		{"(h) no content", "HTTP/1.1 204 No Content\r\n\r\n", false, 502, "", 0},
		{"a redirect", "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n", false, 502, "", 0},
		{"an error under 200", whole("200 OK", "application/json", bad), false, 400, bad, 0},
		{"(i) an error to a stream", whole("422 Unprocessable Entity", "application/json", bad), true, 422, bad, 0},
		{"(j) the same in chunks", "HTTP/1.1 422 Unprocessable Entity\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(bad, 7), true, 422, bad, 0},
		{"an error in the provider's own JSON", whole("418 Teapot", "application/json", `{"detail":"no"}`), false, 418, `{"detail":"no"}`, 0},
		{"500 and nothing", "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", false, 500, "", 0},
		{"no HTTP", "SSH-2.0-OpenSSH_9.6\r\n\r\n", false, 502, "", 900_000},
		{"a header that is too large", "HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", false, 502, "", 900_000},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := shared.on(t)
			key := s.newKey("1", nil)
			body := streamBody
			if !c.stream {
				body = strings.Replace(body, `,"stream":true`, "", 1)
			}
			a := s.chat(key, b.add(rawAnswer("", c.raw, 1460), body))
			if a.status != c.status || c.body != "" && string(a.body) != c.body {
				t.Errorf("got %d: %.300q", a.status, a.body)
			}
			var e struct{ Error map[string]any }
			if c.body == "" {
				_ = json.Unmarshal(a.body, &e)
				if len(e.Error) != 4 || e.Error["message"] == "" || a.header.Get("Content-Type") != "application/json" {
					t.Errorf("not OpenAI's shape: %v %s", a.header, a.body)
				}
			}
			if bytes.Contains(a.body, []byte("secret")) || a.header.Get("Location") != "" {
				t.Error("something of the provider's page is passed on")
			}
			if rec := s.records(key, 1)[0]; rec.Cost != c.cost {
				t.Errorf("record %+v", rec)
			}
			s.whole(key, c.cost)
		})
	}
}

// TestAbsurdUsage never tops a budget up and never costs what cannot be (F38).
func TestAbsurdUsage(t *testing.T) {
	t.Parallel()
	b := &board{}
	shared := setup(t, b)
	for _, usage := range []string{
		`{"prompt_tokens":-1000000,"completion_tokens":-1,"total_tokens":-1000001}`,
		`{"prompt_tokens":9,"completion_tokens":"91","total_tokens":100}`,
		`{"prompt_tokens":9,"completion_tokens":91,"total_tokens":1e18}`,
		`{"prompt_tokens":9,"completion_tokens":91e30,"total_tokens":100}`,
		`{"prompt_tokens":9.7,"completion_tokens":91,"total_tokens":100.7}`,
		`{"prompt_tokens":9,"completion_tokens":9223372036854775808,"total_tokens":9}`,
		`{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens":1}`,
		`"lots"`, `[]`, `{}`,
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", usage, stream), func(t *testing.T) {
				t.Parallel()
				s := shared.on(t)
				handler := func(w http.ResponseWriter, _ *http.Request) {
					if stream {
						script([]string{roleEvent, delta("Hello"), stopEvent, strings.Replace(usageEvent, `{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}`, usage, 1), doneEvent}, false)(w, nil)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":%s}`, usage)
				}
				key := s.newKey("1", nil)
				body := streamBody
				if !stream {
					body = strings.Replace(body, `,"stream":true`, "", 1)
				}
				if a := s.chat(key, b.add(handler, body)); a.status != 200 {
					t.Errorf("got %d: %s", a.status, a.body)
				}
				if rec := s.records(key, 1)[0]; rec.Cost != 1_000_000 || !rec.Estimated || rec.Status != store.StatusSuccess {
					t.Errorf("record %+v", rec)
				}
			})
		}
	}
}

// TestManyChoices: the prompt once, the completion n times (F32).
func TestManyChoices(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"prompt_tokens":9,"completion_tokens":24,"total_tokens":33}`
	want := roleEvent
	for _, i := range []int{2, 0, 1, 0, 2, 1} {
		want += strings.Replace(delta("a"), `"index":0`, fmt.Sprintf(`"index":%d`, i), 1)
	}
	want += stopEvent + strings.Replace(usageEvent, `"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}`, usage, 1) + doneEvent
	s := setup(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); bytes.Contains(b, []byte(`"stream":true`)) {
			rawAnswer(streamHead, want, 1460)(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","choices":[],%s}`, usage)
	}))
	body := func(n string) string {
		return `{"model":"m-o","messages":[{"role":"user","content":"Hello!"}],"max_tokens":10,"n":` + n + `}`
	}
	exact, short := s.newKey("0.0039", nil), s.newKey("0.0038", nil)
	if a := s.chat(short, body("3")); a.code() != "budget_exceeded" {
		t.Errorf("38 tokens of budget: %d %s", a.status, a.body)
	}
	if a := s.chat(exact, body("3")); a.status != 200 {
		t.Errorf("39 tokens of budget: %d %s", a.status, a.body)
	}
	if rec := s.records(exact, 1)[0]; rec.Hold != 3_900_000 || rec.Cost != 3_300_000 {
		t.Errorf("record %+v", rec)
	}
	streamed := s.newKey("0.0039", nil)
	if a := s.chat(streamed, strings.Replace(body("3"), "{", `{"stream":true,"stream_options":{"include_usage":true},`, 1)); string(a.body) != want {
		t.Errorf("got %s\nwant %s", a.body, want)
	}
	rich := s.newKey("1", nil)
	for _, n := range []string{"0", `"2"`, "-1", "129", "1.5", "9223372036854775808", "[]"} {
		if a := s.chat(rich, body(n)); a.status != 400 || !bytes.Contains(a.body, []byte(`"param":"n"`)) {
			t.Errorf("n=%s: %d %s", n, a.status, a.body)
		}
	}
	for _, n := range []string{"1.0", "1e0"} {
		if a := s.chat(rich, body(n)); a.status != 200 && a.status != 400 {
			t.Errorf("n=%s: %d %s", n, a.status, a.body)
		}
	}
	for _, limit := range []string{"-1", "1e400", "9223372036854775807", `"10"`, "10.5", "4294967296"} {
		if a := s.chat(rich, strings.Replace(body("1"), "10", limit, 1)); a.status != 400 {
			t.Errorf("max_tokens=%s: %d %s", limit, a.status, a.body)
		}
	}
}

// TestClientStopsReading: it is dropped after client_write_idle, the provider is stopped,
// little is buffered, and one record is booked (F18).
func TestClientStopsReading(t *testing.T) {
	t.Parallel()
	sent, stopped := make(chan int, 1), make(chan struct{})
	c := build(t, plan{extra: "client_write_idle: 1s", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		n, err := 0, error(nil)
		event := delta(strings.Repeat("word ", 800))
		for err == nil && n < 200<<20 {
			if _, err = io.WriteString(w, event); err == nil {
				err = http.NewResponseController(w).Flush()
			}
			n += len(event)
		}
		sent <- n
		close(stopped)
	})})
	key := c.newKey("100", nil)
	conn := c.send(key, streamBody)
	defer conn.Close()
	check(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	select {
	case <-stopped:
	case <-time.After(15 * time.Second):
		t.Fatal("the provider goes on for ever")
	}
	if n := <-sent; n > 32<<20 { // what the kernels of three hops buffer
		t.Errorf("%d bytes were taken of the provider", n)
	}
	if rec := c.records(key, 1)[0]; rec.Status != store.StatusClientClosed || !rec.Estimated || rec.Usage.Output == 0 {
		t.Errorf("record %+v", rec)
	}
}
