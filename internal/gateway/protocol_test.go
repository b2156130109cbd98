package gateway_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/store"
)

// TestFraming: a request whose end two readers could see in different places is refused,
// the connection ends, and what stands behind it is never run.
func TestFraming(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("1", nil)
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + "\r\n"
	hidden := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + "\r\nContent-Length: " +
		fmt.Sprint(len(hello)) + "\r\n\r\n" + hello
	for _, c := range []struct{ why, request string }{
		{"a length and chunks", head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden},
		{"two lengths", head + "Content-Length: 0\r\nContent-Length: " + fmt.Sprint(len(hidden)) + "\r\n\r\n" + hidden},
		{"a list of lengths", head + "Content-Length: 3, 3\r\n\r\n{} " + hidden},
		{"a signed length", head + "Content-Length: +3\r\n\r\n{} " + hidden},
		{"a negative length", head + "Content-Length: -1\r\n\r\n" + hidden},
		{"a length beyond int64", head + "Content-Length: 99999999999999999999\r\n\r\n" + hidden},
		{"an unknown coding", head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden},
		{"two codings", head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + hidden},
		{"a space before the colon", head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden},
		{"a chunk size in the wrong notation", head + "Transfer-Encoding: chunked\r\n\r\n0x3\r\n{} \r\n0\r\n\r\n" + hidden},
		{"a chunk size that overflows", head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{} \r\n0\r\n\r\n" + hidden},
		{"a chunk longer than its size", head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{} \r\n0\r\n\r\n" + hidden},
		{"NUL in a header", head + "X-A: a\x00b\r\n\r\n" + hidden},
		{"no host", strings.Replace(head, "Host: x\r\n", "", 1) + "Content-Length: 0\r\n\r\n" + hidden},
		{"two hosts", head + "Host: y\r\nContent-Length: 0\r\n\r\n" + hidden},
		{"no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n" + hidden},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			w := s.on(t).wire().send("%s", c.request)
			a, err := w.tryAnswer("POST")
			if err == nil && (a.status < 400 || a.status >= 500 && a.status != 501) {
				t.Errorf("got %d: %s", a.status, a.body)
			}
			w.ended()
		})
	}
	t.Cleanup(func() { // after the parallel cases
		if n := s.fake.Summary().Requests; n != 0 {
			t.Errorf("%d hidden requests reached the provider", n)
		}
	})
}

// TestRefusedBodyIsNotTheNextRequest: after a refusal that did not read the body the
// connection ends, or goes on with what is really the next request.
func TestRefusedBodyIsNotTheNextRequest(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	smuggled := strings.Repeat(post(key, hello), 4) // as a body it is no request
	large := smuggled + strings.Repeat(" ", 300_000)
	tooLarge := smuggled + strings.Repeat(" ", 1_000_000)
	for _, c := range []struct {
		why, request string
		status       int
		kept         bool // the connection can be used further
	}{
		{"unknown key", post("sk-wrong", smuggled), 401, true},
		{"no route", postTo("/v1/nothing", key, smuggled), 404, true},
		{"wrong method", strings.Replace(postTo("/v1/models", key, smuggled), "GET", "POST", 1), 405, true},
		{"not JSON: the body was read", post(key, smuggled), 400, true},
		{"unknown model: the body was read", post(key, strings.Replace(hello, "m-o", "no-such", 1)), 404, true},
		{"unknown key, large body", post("sk-wrong", large), 401, false},
		{"no route, large body", postTo("/v1/nothing", key, large), 404, false},
		{"a body over the limit", post(key, tooLarge), 413, false},
		{"a compressed body", post(key, smuggled, "Content-Encoding: gzip"), 415, false},
		{"an expectation that nobody knows", post(key, smuggled, "Expect: banana"), 417, false},
		{"the admin API with a virtual key", postTo("/key/generate", key, `{"x":"`+strings.Repeat("a", 1000)+`"}`), 403, true},
		{"the admin API and a compressed body", postTo("/key/generate", key, smuggled, "Content-Encoding: br"), 415, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			w := s.on(t).wire()
			go w.send("%s", c.request+alive)
			if a := w.answer(); a.status != c.status || !bytes.Contains(a.body, []byte(`"error"`)) {
				t.Fatalf("got %d, want %d: %.200s", a.status, c.status, a.body)
			}
			if !c.kept {
				w.ended()
				return
			}
			if a := w.answer(); a.status != 200 || !bytes.Contains(a.body, []byte("alive")) {
				t.Errorf("the next request on the connection got %d: %.200s", a.status, a.body)
			}
		})
	}
	t.Cleanup(func() {
		if n := s.fake.Summary().Requests; n != 0 {
			t.Errorf("%d bodies of refused requests were run", n)
		}
	})
}

// TestRefusalReachesABusyClient: a client that writes its whole body before it reads gets
// the refusal, not a reset.
func TestRefusalReachesABusyClient(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	body := strings.Repeat("x", 8<<20) // more than socket buffers take
	for _, c := range []struct {
		why, request string
		status       int
	}{
		{"too large", post(key, body), 413},
		{"too large in chunks", "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key +
			"\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("10000\r\n"+strings.Repeat("x", 0x10000)+"\r\n", 64) + "0\r\n\r\n", 413},
		{"a header that never ends", "GET /health/liveliness HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 4000), 431},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			w := s.on(t).wire()
			if _, err := io.WriteString(w.conn, c.request); err != nil {
				t.Fatalf("reset while sending: %v", err)
			}
			if a := w.answer(); a.status != c.status || a.code() == "" {
				t.Errorf("got %d, want %d: %.200s", a.status, c.status, a.body)
			}
			w.ended()
		})
	}
}

// TestExpect: what the headers condemn is refused without 100 Continue, so that the body
// is never sent.
func TestExpect(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("1", nil)
	pad := `{"pad":"` + strings.Repeat("p", 1_000_000-len(hello)-len(`{"pad":"",`)+1) + `",` + hello[1:]
	if len(pad) != 1_000_000 {
		t.Fatalf("the body has %d bytes", len(pad))
	}
	head := func(key string, length int, more string) string {
		return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n%s\r\n", key, length, more)
	}
	const expect = "Expect: 100-continue\r\n"
	for _, c := range []struct {
		why, head string
		status    int
		code      string
	}{
		{"over the limit", head(key, 1_000_001, expect), 413, "request_too_large"},
		{"unknown key", head("sk-wrong", 1000, expect), 401, "invalid_api_key"},
		{"no key", strings.Replace(head("", 1000, expect), "Authorization: Bearer \r\n", "", 1), 401, "missing_api_key"},
		{"compressed", head(key, 1000, expect+"Content-Encoding: gzip\r\n"), 415, "unsupported_encoding"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			w := s.on(t).wire().send("%s", c.head)
			if a := w.answer(); a.status != c.status || a.code() != c.code {
				t.Errorf("got %d %q, want %d %q", a.status, a.code(), c.status, c.code)
			}
			w.ended()
		})
	}
	t.Run("a good one, exactly at the limit", func(t *testing.T) {
		t.Parallel()
		w := s.on(t).wire().send("%s", head(key, len(pad), "expect: 100-Continue\r\n"))
		if line, err := w.r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
			t.Fatalf("got %q %v", line, err)
		}
		if _, err := w.r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if a := w.send("%s", pad).answer(); a.status != 200 {
			t.Errorf("got %d: %.200s", a.status, a.body)
		}
	})
	t.Run("exactly at the limit, in chunks", func(t *testing.T) {
		t.Parallel()
		w := s.on(t).wire().send("%s", strings.Replace(head(key, 0, "Transfer-Encoding: chunked\r\n"), "Content-Length: 0\r\n", "", 1))
		go w.send("%x\r\n%s\r\n0\r\n\r\n", len(pad), pad)
		if a := w.answer(); a.status != 200 {
			t.Errorf("got %d: %.200s", a.status, a.body)
		}
	})
	t.Run("one byte over the limit, in chunks", func(t *testing.T) {
		t.Parallel()
		w := s.on(t).wire().send("%s", strings.Replace(head(key, 0, "Transfer-Encoding: chunked\r\n"), "Content-Length: 0\r\n", "", 1))
		go w.send("%x\r\n%s\r\n0\r\n\r\n", len(pad)+1, pad+" ")
		if a := w.answer(); a.status != 413 || a.code() != "request_too_large" {
			t.Errorf("got %d: %.200s", a.status, a.body)
		}
	})
}

// TestCompressedBodies are refused before anything is unpacked: 415, never a bomb.
func TestCompressedBodies(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	var valid bytes.Buffer
	z := gzip.NewWriter(&valid)
	_, _ = z.Write([]byte(hello))
	check(t, z.Close())
	for _, coding := range []string{"gzip", "GZIP", "x-gzip", "gzip, gzip", "br", "zstd", "deflate", "identity, gzip"} {
		a := s.do("POST", "/v1/chat/completions", key, valid.String(), "Content-Encoding", coding)
		if a.status != 415 || a.code() != "unsupported_encoding" {
			t.Errorf("%s: got %d %q", coding, a.status, a.code())
		}
	}
	if a := s.do("POST", "/v1/chat/completions", key, hello, "Content-Encoding", "identity"); a.status != 200 {
		t.Errorf("identity: got %d", a.status)
	}
	if n := s.fake.Summary().Requests; n != 1 {
		t.Errorf("%d requests reached the provider", n)
	}
}

// TestTargets: no spelling of a path leads to a route that a rule before us keeps shut.
func TestTargets(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	for _, c := range []struct {
		target, key string
		status      int
	}{
		{"/v1/../key/list", masterKey, 404},
		{"/v1/%2e%2e/key/list", masterKey, 404},
		{"/v1//..//key/list", masterKey, 404},
		{"/v1/..%2fkey/list", masterKey, 404},
		{"/key/../key/list", masterKey, 404},
		{"/key//list", masterKey, 404},
		{"//key/list", masterKey, 404},
		{"/key/%6cist", masterKey, 404},
		{"/KEY/list", masterKey, 404},
		{"/V1/models", key, 404},
		{"//v1/models", key, 404},
		{"/v1/models/../../metrics", key, 404},
		{"/v1/models/", key, 404},
		{"/v1/models?x=1", key, 200},
		{"http://elsewhere.example/v1/models", key, 200},
		{"http://elsewhere.example/key/list", masterKey, 200},
		{"http://elsewhere.example/key/list", key, 403},
		{"/key/list?key_alias=a%20b&page=1", masterKey, 200},
		{"/key/list?key_alias=\xc3\xbc", masterKey, 400},
		{"*", key, 400},
	} {
		t.Run(c.target, func(t *testing.T) {
			t.Parallel()
			w := s.on(t).wire().send("GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", c.target, c.key)
			a, err := w.tryAnswer("GET")
			if err != nil || a.status != c.status {
				t.Errorf("got %d (%v), want %d: %.200s", a.status, err, c.status, a.body)
			}
		})
	}
}

// TestKeyHeaders: where the key may stand, and that a key in the wrong place is none.
func TestKeyHeaders(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	for _, c := range []struct {
		why    string
		lines  []string
		status int
		code   string
	}{
		{"bearer", []string{"Authorization: Bearer " + key}, 200, ""},
		{"bearer in another case, with spaces", []string{"authorization:   bearer   " + key + "  "}, 200, ""},
		{"Anthropic's header", []string{"X-Api-Key: " + key}, 200, ""},
		{"Azure's header", []string{"api-key: " + key}, 200, ""},
		{"LiteLLM's header", []string{"x-litellm-api-key: " + key}, 200, ""},
		{"LiteLLM's header with a scheme", []string{"x-litellm-api-key: Bearer " + key}, 200, ""},
		{"without a scheme", []string{"Authorization: " + key}, 401, "missing_api_key"},
		{"another scheme", []string{"Authorization: Basic " + key}, 401, "missing_api_key"},
		{"a scheme only", []string{"Authorization: Bearer "}, 401, "missing_api_key"},
		{"a header of nobody", []string{"X-Key: " + key}, 401, "missing_api_key"},
		{"in a cookie", []string{"Cookie: token=" + key}, 401, "missing_api_key"},
		{"with something behind it", []string{"Authorization: Bearer " + key + " x"}, 401, "invalid_api_key"},
		{"its hash instead", []string{"Authorization: Bearer " + keyID(key)}, 401, "invalid_api_key"},
		{"its hash with a prefix", []string{"Authorization: Bearer sk-" + keyID(key)}, 401, "invalid_api_key"},
		{"bytes", []string{"Authorization: Bearer sk-\xff\xfe"}, 401, "invalid_api_key"},
		{"an empty header", []string{"Authorization:"}, 401, "missing_api_key"},
		{"twice the same", []string{"Authorization: Bearer " + key, "Authorization: Bearer " + key}, 200, ""},
		{"a wrong one first: the first counts", []string{"Authorization: Bearer sk-wrong", "Authorization: Bearer " + key}, 401, "invalid_api_key"},
		{"a wrong one in Authorization is not made up for", []string{"Authorization: Bearer sk-wrong", "x-api-key: " + key}, 401, "invalid_api_key"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			w := s.on(t).wire().send("GET /v1/models HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", strings.Join(c.lines, "\r\n"))
			a, err := w.tryAnswer("GET")
			if err != nil || a.status != c.status || a.code() != c.code {
				t.Errorf("got %d %q (%v): %.200s", a.status, a.code(), err, a.body)
			}
		})
	}
	for _, header := range []string{"x-api-key", "api-key", "x-litellm-api-key"} {
		if a := s.do("GET", "/key/list", "", "", header, masterKey); a.status != 200 {
			t.Errorf("the admin API with %s: got %d: %s", header, a.status, a.body)
		}
	}
}

// TestConnections: keep-alive, pipelining, old clients and HEAD.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	stream := `{"stream":true,` + hello[1:]
	t.Run("pipelined requests are answered in order", func(t *testing.T) {
		t.Parallel()
		w := s.on(t).wire().send("%s", post(key, hello)+post(key, stream)+post("sk-wrong", hello)+alive+post(key, hello))
		for i, want := range []struct {
			status   int
			contains string
		}{{200, `"usage"`}, {200, "[DONE]"}, {401, "invalid_api_key"}, {200, "alive"}, {200, `"usage"`}} {
			if a := w.answer(); a.status != want.status || !strings.Contains(string(a.body), want.contains) {
				t.Fatalf("answer %d is %d: %.300s", i, a.status, a.body)
			}
		}
	})
	t.Run("HTTP/1.0 gets its whole answer and a closed connection", func(t *testing.T) {
		t.Parallel()
		for body, contains := range map[string]string{hello: `"usage"`, stream: "data: [DONE]\n\n"} {
			w := s.on(t).wire().send("%s", strings.Replace(post(key, body), "HTTP/1.1", "HTTP/1.0", 1))
			if a := w.answer(); a.status != 200 || !strings.Contains(string(a.body), contains) {
				t.Errorf("got %d: %.300s", a.status, a.body)
			}
			w.ended()
		}
	})
	t.Run("HTTP/1.0 with chunks is refused", func(t *testing.T) {
		t.Parallel()
		w := s.on(t).wire().send("POST /v1/chat/completions HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", key, len(hello), hello)
		if a, err := w.tryAnswer("POST"); err == nil && a.status < 400 {
			t.Errorf("got %d", a.status)
		}
		w.ended()
	})
	t.Run("HEAD has no body", func(t *testing.T) {
		t.Parallel()
		w := s.on(t).wire()
		for _, target := range []string{"/health/liveliness", "/health/readiness", "/v1/models", "/v1/nothing", "/v1/chat/completions", "/key/list"} {
			w.send("HEAD %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", target, masterKey)
			if _, err := w.tryAnswer("HEAD"); err != nil {
				t.Fatalf("%s: %v", target, err)
			}
		}
		if a, err := w.send("%s", alive).tryAnswer("GET"); err != nil || a.status != 200 {
			t.Errorf("after HEADs: %d %v", a.status, err)
		}
	})
	t.Run("many and odd headers", func(t *testing.T) {
		t.Parallel()
		w := s.on(t).wire()
		flood := strings.Repeat("X-A: b\r\n", 1500)
		w.send("GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Empty:\r\nX-Umlaut: \xfc\r\n%s\r\n", key, flood)
		if a := w.answer(); a.status != 200 {
			t.Errorf("got %d", a.status)
		}
		w.send("GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Huge: %s\r\n\r\n", key, strings.Repeat("h", 17<<10))
		if a := w.answer(); a.status != 431 || a.code() != "header_too_large" {
			t.Errorf("got %d %s", a.status, a.body)
		}
		w.ended()
	})
	t.Run("a body that ends early is neither run nor booked", func(t *testing.T) {
		t.Parallel()
		own := s.on(t).newKey("1", nil)
		w := s.on(t).wire().send("%s", post(own, hello)[:len(post(own, hello))-5])
		check(t, w.conn.(*net.TCPConn).CloseWrite())
		if a, err := w.tryAnswer("POST"); err == nil && a.status < 400 {
			t.Errorf("got %d", a.status)
		}
		s.on(t).records(own, 0)
	})
}

// TestSlowHeaders: a header has ten seconds from the opening of the connection, however
// its bytes dribble in.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	started := time.Now()
	w := s.wire()
	go func() {
		for _, b := range []byte("GET /health/liveliness HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", 100)) {
			if _, err := w.conn.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(300 * time.Millisecond)
		}
	}()
	a, err := w.tryAnswer("GET")
	if took := time.Since(started); took < 9*time.Second || took > 12*time.Second {
		t.Errorf("ended after %s (%d, %v)", took, a.status, err)
	}
	if err == nil && a.status != http.StatusRequestTimeout {
		t.Errorf("got %d", a.status)
	}
	if s.do("GET", "/health/liveliness", "", "").status != 200 {
		t.Error("nobody else is served")
	}
}

// TestCapacity: above a cap a request is refused before its body is read, health goes on,
// and every kind of end gives its place back.
func TestCapacity(t *testing.T) {
	t.Parallel()
	gate, arrived := make(chan struct{}), make(chan struct{}, 2)
	c := build(t, plan{extra: "max_in_flight: 2", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case bytes.Contains(body, []byte("gpt-4o")): // m-o waits
			arrived <- struct{}{}
			select {
			case <-gate:
			case <-r.Context().Done():
				return
			}
		case bytes.Contains(body, []byte("fake-reset")):
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`)
	})})
	key := c.newKey("", nil)
	other := strings.Replace(hello, "m-o", "fake-x", 1)
	free := func(why string) {
		t.Helper()
		// Two requests take both places and wait for the rest of their bodies.
		c.eventually(func() bool {
			a, b := c.wire(), c.wire()
			defer a.conn.Close()
			defer b.conn.Close()
			whole := post(key, other)
			a.send("%s", whole[:len(whole)-1])
			b.send("%s", whole[:len(whole)-1])
			// A third may come before one of them and take its place: the next try shows.
			full := false
			for range 10 {
				if full = c.chatWhile(key, other) == 503; full {
					break
				}
			}
			for _, w := range []*wire{a, b} {
				if got, err := w.send("%s", whole[len(whole)-1:]).tryAnswer("POST"); err != nil || got.status != 200 {
					return false
				}
			}
			return full
		}, "two free places after "+why)
	}
	free("the start")
	one, two := c.wire().send("%s", post(key, hello)), c.wire().send("%s", post(key, hello))
	<-arrived
	<-arrived
	third := c.wire().send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 900000\r\n\r\n{", key)
	if a := third.answer(); a.status != 503 || a.code() != "overloaded" || a.header.Get("Retry-After") != "1" {
		t.Errorf("the third got %d %q, Retry-After %q", a.status, a.code(), a.header.Get("Retry-After"))
	}
	third.ended()
	expecting := c.wire().send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 900\r\nExpect: 100-continue\r\n\r\n", key)
	if a := expecting.answer(); a.status != 503 {
		t.Errorf("a full gateway asks for a body: %d", a.status)
	}
	for _, path := range []string{"/health/liveliness", "/health/readiness"} {
		if a := c.do("GET", path, "", ""); a.status != 200 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	close(gate)
	for _, w := range []*wire{one, two} {
		if a := w.answer(); a.status != 200 {
			t.Errorf("got %d", a.status)
		}
	}
	free("answers")
	for why, request := range map[string]string{
		"an unknown key": post("sk-wrong", other), "bad JSON": post(key, "{"), "an unknown model": post(key, strings.Replace(hello, "m-o", "no", 1)),
		"an upstream that resets": post(key, strings.Replace(hello, "m-o", "fake-reset", 1)), "a dead upstream": post(key, strings.Replace(hello, "m-o", "dead", 1)),
		"an admin call": postTo("/key/generate", "sk-wrong", "{}"), "too large": post(key, strings.Repeat("x", 1_000_001)),
	} {
		for range 3 {
			w := c.wire()
			go w.send("%s", request)
			if _, err := w.tryAnswer("POST"); err != nil {
				t.Errorf("%s: %v", why, err)
			}
		}
		free(why)
	}
	for range 3 { // clients that leave in the middle of their bodies
		c.wire().send("%s", post(key, other)[:200]).conn.Close()
	}
	free("clients that leave")
}

func (s *stack) chatWhile(key, body string) int {
	w := s.wire()
	defer w.conn.Close()
	a, err := w.send("%s", post(key, body)).tryAnswer("POST")
	if err != nil {
		return 0
	}
	return a.status
}

// TestBodyBytesInFlight: announced bytes count before they come, bytes without a length as
// they come, and all of them are given back.
func TestBodyBytesInFlight(t *testing.T) {
	t.Parallel()
	c := build(t, plan{adjust: func(s *config.Settings) { s.MaxBodyBytesInFlight = 300_000 }}) // below one body, so that one is enough
	key := c.newKey("", nil)
	if a := c.chat(key, `{"pad":"`+strings.Repeat("p", 310_000)+`",`+hello[1:]); a.status != 503 || a.code() != "overloaded" {
		t.Errorf("a body over the cap: %d %s", a.status, a.body)
	}
	w := c.wire().send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n", key)
	go w.send("%x\r\n%s\r\n0\r\n\r\n", 600_000, strings.Repeat(" ", 600_000))
	if a := w.answer(); a.status != 503 || a.code() != "overloaded" {
		t.Errorf("a body without a length over the cap: %d %s", a.status, a.body)
	}
	pad := `{"pad":"` + strings.Repeat("p", 200_000) + `",` + hello[1:]
	for i := range 20 { // each takes two thirds: nothing may stay behind
		if a := c.chat(key, pad); a.status != 200 {
			t.Fatalf("request %d: %d %s", i, a.status, a.body)
		}
		w := c.wire().send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n", key)
		go w.send("%x\r\n%s\r\n0\r\n\r\n", len(pad), pad)
		if a := w.answer(); a.status != 200 {
			t.Fatalf("request %d in chunks: %d %s", i, a.status, a.body)
		}
		c.wire().send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", key, len(pad), pad[:5000]).conn.Close()
	}
	c.eventually(func() bool { return c.chat(key, `{"pad":"`+strings.Repeat("p", 290_000)+`",`+hello[1:]).status == 200 }, "the whole cap is free")
}

// TestBlockedWhileRunning: a key that is blocked is refused soon, also where it is cached.
func TestBlockedWhileRunning(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", func(k *store.Key) { k.Alias = "to-be-blocked" })
	if a := s.chat(key, hello); a.status != 200 {
		t.Fatalf("got %d", a.status)
	}
	if a := s.do("POST", "/key/block", masterKey, `{"key":"`+key+`"}`); a.status != 200 {
		t.Fatalf("got %d: %s", a.status, a.body)
	}
	s.eventually(func() bool { return s.chat(key, hello).code() == "blocked_api_key" }, "blocked")
}
