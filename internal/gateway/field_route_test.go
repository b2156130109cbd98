package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// TestCredentialsStayHere: nothing that a client sends beside its body reaches the provider (F66).
func TestCredentialsStayHere(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []http.Header
	s := setup(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Clone())
		mu.Unlock()
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	key := s.newKey("", nil)
	a := s.do("POST", "/v1/chat/completions?api_base=http://127.0.0.1:9/&key="+key, key,
		`{"api_base":"http://127.0.0.1:9/","base_url":"http://127.0.0.1:9/","api_key":"sk-x","extra_body":{"api_base":"http://127.0.0.1:9/"},`+hello[1:],
		"x-api-key", key, "api-key", key, "x-goog-api-key", key, "Cookie", "token="+key, "X-Forwarded-For", "10.0.0.1",
		"OpenAI-Organization", "org", "X-Secret", "1", "X-Api-Base", "http://127.0.0.1:9/", "X-Client-Request-Id", "chosen", "traceparent", key)
	if a.status != 502 {
		t.Errorf("a redirect of the provider: got %d %s", a.status, a.body)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 {
		t.Fatalf("the provider was called %d times", len(seen))
	}
	for name, values := range seen[0] {
		switch name {
		case "Authorization", "Content-Type", "Content-Length", "User-Agent", "Accept-Encoding", "X-Client-Request-Id":
		default:
			t.Errorf("%s: %v at the provider", name, values)
		}
		if strings.Contains(strings.Join(values, ""), key) || strings.Contains(strings.Join(values, ""), "chosen") {
			t.Errorf("%s: %v at the provider", name, values)
		}
	}
}

// namedModels serves every model from the fake provider.
const namedModels = `
model_list:
- model_name: "p/*"
  litellm_params: {model: "openai/*", api_base: "%[1]s/v1", api_key: sk-provider}
- model_name: "q/*"
  litellm_params: {model: "openai/*", api_base: "%[1]s/v1", api_key: sk-provider}
- model_name: 模型-1
  litellm_params: {model: openai/gpt-4o, api_base: "%[1]s/v1", api_key: sk-provider, input_cost_per_token: 1e-4, output_cost_per_token: 1e-4}
  model_info: {id: "部署-1"}
router_settings: {model_group_alias: {alias-2: 模型-1}}
general_settings: {master_key: ` + masterKey + `}
penstock_settings: {max_body_bytes: 1000000}
`

// TestAllowLists: prefix, case and alias (F67).
func TestAllowLists(t *testing.T) {
	t.Parallel()
	c := build(t, plan{models: namedModels})
	key := c.newKey("", func(k *store.Key) {
		k.Models = []string{"p/*", "alias-1"}
		k.Aliases = map[string]string{"alias-1": "q/small", "alias-3": "q/big"}
	})
	served := 0
	for model, status := range map[string]int{
		"p/a": 200, "p/a/b": 200, "alias-1": 200, "p/../q/big": 403, "p/a%2f..%2fq": 403, // no spelling leaves p/
		"pz/a": 403, "P/A": 403, "p": 403, "p/": 403, "ALIAS-1": 403, "alias-1 ": 403, " p/a": 403, "q/small": 403, "q/big": 403,
		"alias-3": 403, "alias-2": 403, "模型-1": 403, "*": 403, "p/*": 404, "": 400, strings.Repeat("m", 5000): 403, "q/p/a": 403,
	} {
		a := c.chat(key, `{"model":`+strconv.Quote(model)+`,"messages":[{"role":"user","content":"Hello!"}]}`)
		if model == "p/" && a.status == 404 {
			a.status = 403
		}
		if a.status != status {
			t.Errorf("%.30q: got %d, want %d: %.200s", model, a.status, status, a.body)
		}
		if status == 200 {
			served++
		} else if model != "" && strings.Contains(string(a.body), model) && len(model) > 3 {
			t.Errorf("%.30q: the answer repeats it: %s", model, a.body)
		}
	}
	rows := c.fake.Ledger()
	if len(rows) != served {
		t.Errorf("the provider served %d, want %d", len(rows), served)
	}
	for _, row := range rows {
		if row.Model == "big" || row.Model == "q/big" {
			t.Errorf("the provider was asked for %q", row.Model)
		}
	}
}

// TestNamesOutsideASCII reach no header and fail no request (F68).
func TestNamesOutsideASCII(t *testing.T) {
	t.Parallel()
	c := build(t, plan{models: namedModels})
	key := c.newKey("1", func(k *store.Key) { k.Alias = "Schlüssel-中文-🙂" })
	for _, stream := range []string{"false", "true"} {
		a := c.do("POST", "/v1/chat/completions", key, `{"model":"模型-1","user":"ż\r\nX-Evil: 1","max_tokens":5,"messages":[{"role":"user","content":"Hello!"}],"stream":`+stream+`}`,
			"x-litellm-customer-id", "k\xffunde")
		if a.status != 200 {
			t.Fatalf("got %d: %s", a.status, a.body)
		}
		for name, values := range a.header {
			for _, c := range name + strings.Join(values, "") {
				if c < ' ' || c > '~' {
					t.Errorf("%s: %q", name, values)
				}
			}
			if name == "X-Evil" {
				t.Error("a header of the client's making")
			}
		}
	}
	for _, rec := range c.records(key, 2) {
		if rec.KeyAlias != "Schlüssel-中文-🙂" || rec.RequestedModel != "模型-1" || rec.EndUser != "k\uFFFDunde" {
			t.Errorf("record %+v", rec)
		}
	}
	for _, alias := range []string{`a\r\nX-Evil: 1`, `a\u0000b`, `a\u001b[31m`} {
		if a := c.do("POST", "/key/generate", masterKey, `{"key_alias":"`+alias+`"}`); a.status != 400 {
			t.Errorf("alias %s: got %d: %s", alias, a.status, a.body)
		}
	}
}

// TestWhichFailuresAreRepeated (F69): what cannot have been billed, no other, and never
// more often than configured.
func TestWhichFailuresAreRepeated(t *testing.T) {
	t.Parallel()
	const askedToWait = "a longer wait is asked for than ours: the client decides"
	b := &board{}
	shared := build(t, plan{models: strings.Replace(models, "num_retries: 0", "num_retries: 2", 1), handler: b})
	for _, c := range []struct {
		why     string
		status  int // of the provider; 0: it reads and resets
		hits    int
		shown   int
		retries string
	}{
		{"bad request", 400, 1, 400, "0"}, {"our credential", 401, 1, 502, "0"}, {"our rights", 403, 1, 502, "0"},
		{"not found", 404, 1, 404, "0"}, {"timeout", 408, 3, 408, "2"}, {"conflict", 409, 3, 409, "2"},
		{"too large", 413, 1, 413, "0"}, {"unprocessable", 422, 1, 422, "0"}, {"rate limit", 429, 3, 429, "2"},
		{"bug", 500, 3, 500, "2"}, {"bad gateway", 502, 3, 502, "2"}, {"overload", 503, 3, 503, "2"},
		{"gateway timeout", 504, 3, 504, "2"}, {"Anthropic's overload", 529, 3, 529, "2"},
		{"read and reset: it may have been billed", 0, 1, 502, "0"},
		{askedToWait, 429, 1, 429, "0"},
	} {
		after := "0"
		if c.why == askedToWait {
			after = "7"
		}
		for _, stream := range []string{"false", "true"} {
			t.Run(c.why+" "+stream, func(t *testing.T) {
				t.Parallel()
				hits := &counter{}
				s := shared.on(t)
				body := b.add(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					hits.add()
					if c.status == 0 {
						panic(http.ErrAbortHandler)
					}
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Retry-After", after)
					w.WriteHeader(c.status)
					fmt.Fprint(w, `{"error":{"message":"m","type":"t","param":null,"code":"c"}}`)
				}, strings.Replace(b1, "{", `{"stream":`+stream+`,`, 1))
				key := s.newKey("1", nil)
				a := s.do("POST", "/v1/chat/completions", key, body, "x-stainless-retry-count", "2")
				if a.status != c.shown || hits.value() != c.hits || a.header.Get("x-litellm-attempted-retries") != c.retries {
					t.Errorf("got %d after %d calls, header %q: %s", a.status, hits.value(), a.header.Get("x-litellm-attempted-retries"), a.body)
				}
				if c.shown == c.status && (a.code() != "c" || a.header.Get("Retry-After") != after) {
					t.Errorf("not passed on: %v %s", a.header, a.body)
				}
				rec := s.records(key, 1)[0]
				if rec.Attempts != c.hits || c.status != 0 && rec.Cost != 0 || c.status == 0 && rec.Cost != 900_000 {
					t.Errorf("record %+v", rec)
				}
			})
		}
	}
}

// TestRepeatedUntilItWorks: a repeated request that is answered in the end is booked once.
func TestRepeatedUntilItWorks(t *testing.T) {
	t.Parallel()
	hits := &counter{}
	c := build(t, plan{models: strings.Replace(models, "num_retries: 0", "num_retries: 2", 1), handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hits.add(); hits.value() < 3 {
			w.Header().Set("Content-Encoding", "gzip")
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		script([]string{sse("Hel", "lo")}, false)(w, r)
	})})
	key := c.newKey("1", nil)
	a := c.chat(key, streamBody)
	if a.status != 200 || texts(a.body) != "Hello" || a.header.Get("x-litellm-attempted-retries") != "2" {
		t.Errorf("got %d %v: %s", a.status, a.header, a.body)
	}
	if rec := c.records(key, 1)[0]; rec.Attempts != 3 || rec.Cost != 1_100_000 {
		t.Errorf("record %+v", rec)
	}
}

// TestStaleConnections: a provider that closes its idle connections makes no request
// arrive twice; with an upstream_keep_alive below its limit none fails either (F71).
func TestStaleConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, extra string
		idle       time.Duration // of the provider
		failures   int           // at most: where the request and the end cross, nobody knows what was read
	}{
		{"at the same moment", "", 5 * time.Millisecond, 10},
		{"a limit of our own below it", "upstream_keep_alive: 1ms", 50 * time.Millisecond, 0},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			hits := &counter{}
			provider := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				hits.add()
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`)
			}))
			provider.Config.IdleTimeout = c.idle
			provider.Start()
			t.Cleanup(provider.Close)
			s := &stack{t: t, dir: t.TempDir()}
			s.start(strings.Replace(fmt.Sprintf(models, provider.URL), "max_body_bytes: 1000000", "max_body_bytes: 1000000, "+c.extra, 1))
			key := s.newKey("1", nil)
			const requests = 60
			served := 0
			for i := range requests {
				time.Sleep(time.Duration(4000+i*40) * time.Microsecond) // sweeps over the moment of the close
				if a := s.chat(key, b1); a.status == 200 {
					served++
				} else if a.status != 502 {
					t.Fatalf("request %d: %d %s", i, a.status, a.body)
				}
			}
			if n := hits.value(); n < served || n > requests || served < requests-c.failures {
				t.Errorf("%d of %d served, the provider was called %d times", served, requests, n)
			}
			s.records(key, requests)
		})
	}
}

// TestSilentProviders: no wait is endless (F74).
func TestSilentProviders(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	closed := make(chan time.Time, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go dribble(conn, closed)
		}
	}()
	c := build(t, plan{
		models: strings.ReplaceAll(models, "%[1]s", "http://"+l.Addr().String()) + "#%[1]s", extra: "upstream_header: 300ms, upstream_stream_idle: 300ms",
	})
	key := c.newKey("1", nil)
	for _, v := range []struct {
		why, model string
		stream     bool
		status     int
	}{
		{"never answers", "fake-silent", false, 504}, {"never answers a stream", "fake-silent", true, 504},
		{"one byte of header at a time", "fake-slowhead", false, 504}, {"silent after the header", "fake-head", true, 504},
		{"silent in the body", "fake-half", false, 504},
	} {
		t.Run(v.why, func(t *testing.T) {
			s := c.on(t)
			started := time.Now()
			a := s.chat(key, strings.Replace(strings.Replace(b1, "m-o", v.model, 1), "{", fmt.Sprintf(`{"stream":%v,`, v.stream), 1))
			if took := time.Since(started); a.status != v.status || a.code() != "upstream_timeout" || took > 2*time.Second {
				t.Errorf("got %d %s after %s", a.status, a.body, took)
			}
			select {
			case <-closed:
			case <-time.After(2 * time.Second):
				t.Error("the connection to the provider stays open")
			}
		})
	}
}

// dribble is a provider that answers as its request's model says, or rather does not.
func dribble(conn net.Conn, closed chan<- time.Time) {
	defer conn.Close()
	buf := make([]byte, 64<<10)
	n, _ := conn.Read(buf)
	mode := string(buf[:n])
	switch {
	case strings.Contains(mode, "slowhead"):
		go func() {
			for _, b := range []byte(streamHead + strings.Repeat(" ", 1000)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
	case strings.Contains(mode, "fake-head"):
		_, _ = io.WriteString(conn, streamHead)
	case strings.Contains(mode, "fake-half"):
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	}
	for {
		if _, err := conn.Read(buf); err != nil {
			closed <- time.Now()
			return
		}
	}
}
