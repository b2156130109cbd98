package fakeupstream_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/penstock-gateway/penstock/internal/fakeupstream"
)

// provider is one server and a client of its own.
type provider struct {
	t      *testing.T
	fake   *fakeupstream.Server
	http   *httptest.Server
	client *http.Client
}

func setup(t *testing.T, cfg fakeupstream.Config) *provider {
	t.Helper()
	fake := fakeupstream.New(cfg)
	server := httptest.NewServer(fake)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return &provider{t: t, fake: fake, http: server, client: &http.Client{Transport: transport}}
}

func (p *provider) post(ctx context.Context, path, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.http.URL+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return p.client.Do(req)
}

// chat asks and reads all; the error is that of the body, or of the request.
func (p *provider) chat(body string, headers ...string) (int, []byte, error) {
	answer, err := p.post(p.t.Context(), "/v1/chat/completions", body, headers...)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	return answer.StatusCode, b, err
}

// until polls the ledger, which is how every user of this package watches it.
func (p *provider) until(why string, reached func(fakeupstream.Summary) bool) {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !reached(p.fake.Summary()); {
		if time.Now().After(deadline) {
			p.t.Fatalf("never: %s", why)
		}
		time.Sleep(time.Millisecond)
	}
}

// row waits until the only request is over and returns its row.
func (p *provider) row() fakeupstream.Entry {
	p.t.Helper()
	p.until("the request ends", func(s fakeupstream.Summary) bool { return s.InFlight == 0 })
	rows := p.fake.Ledger()
	if len(rows) != 1 {
		p.t.Fatalf("%d rows, want 1", len(rows))
	}
	return rows[0]
}

func ask(model, more string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content":"one two three"}]` + more + `}`
}

// events splits a stream's data fields.
func events(b []byte) []string {
	var all []string
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			all = append(all, data)
		}
	}
	return all
}

func TestTheOfficialClientUnderstandsIt(t *testing.T) {
	t.Parallel()
	p := setup(t, fakeupstream.Config{})
	client := openai.NewClient(option.WithBaseURL(p.http.URL+"/v1"), option.WithAPIKey("x"), option.WithHTTPClient(p.client))
	params := openai.ChatCompletionNewParams{Model: "fake-gpt", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("one two three")}}

	whole, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if whole.Usage.CompletionTokens != 16 || whole.Usage.TotalTokens != whole.Usage.PromptTokens+16 || whole.Choices[0].FinishReason != "stop" {
		t.Errorf("usage %+v, finish %q", whole.Usage, whole.Choices[0].FinishReason)
	}

	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	all := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Error("a chunk does not fit the others")
		}
	}
	if stream.Err() != nil {
		t.Fatal(stream.Err())
	}
	if all.Choices[0].Message.Content != whole.Choices[0].Message.Content || all.Usage.CompletionTokens != 16 || all.Choices[0].Message.Role != "assistant" {
		t.Errorf("streamed %q with %+v", all.Choices[0].Message.Content, all.Usage)
	}
	rows := p.fake.Ledger()
	if len(rows) != 2 || rows[0].ID != whole.ID || rows[1].ID != all.ID || !rows[1].Stream || rows[0].ID == rows[1].ID {
		t.Errorf("the ledger must have both by their ids: %+v", rows)
	}
}

func TestStreamsAreShapedLikeAProviders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, body string
		events    int // role, deltas, finish, usage, [DONE]
		usage     bool
		finish    string
	}{
		{"usage only when asked for", ask("fake-out-3", `,"stream":true`), 1 + 3 + 1 + 1, false, "stop"},
		{"usage in an event of its own", ask("fake-out-3", `,"stream":true,"stream_options":{"include_usage":true}`), 1 + 3 + 1 + 1 + 1, true, "stop"},
		{"the cap clips", ask("fake-out-30", `,"stream":true,"max_tokens":2`), 1 + 2 + 1 + 1, false, "length"},
		{"the newer cap wins", ask("fake-out-30", `,"stream":true,"max_tokens":9,"max_completion_tokens":4`), 1 + 4 + 1 + 1, false, "length"},
		{"a fault of usage alone leaves the rest", ask("fake-no-usage-out-3", `,"stream":true,"stream_options":{"include_usage":true}`), 1 + 3 + 1 + 1, false, "stop"},
		{"no [DONE]", ask("fake-no-done-out-3", `,"stream":true`), 1 + 3 + 1, false, "stop"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			p := setup(t, fakeupstream.Config{})
			status, b, err := p.chat(c.body)
			if err != nil || status != http.StatusOK {
				t.Fatal(status, err)
			}
			all := events(b)
			if len(all) != c.events {
				t.Fatalf("%d events, want %d:\n%s", len(all), c.events, b)
			}
			for _, e := range all {
				if e != "[DONE]" && !json.Valid([]byte(e)) {
					t.Errorf("not JSON: %s", e)
				}
			}
			if got := strings.Contains(string(b), `"usage":{`); got != c.usage {
				t.Errorf("usage is there: %v", got)
			}
			if !strings.Contains(string(b), `"finish_reason":"`+c.finish+`"`) {
				t.Errorf("want finish reason %s in\n%s", c.finish, b)
			}
			if row := p.row(); !row.Complete || row.SentTokens != row.CompletionTokens {
				t.Errorf("the row must say that all was taken: %+v", row)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const streamed = `,"stream":true`
	for _, c := range []struct {
		why, model, more string
		check            func(status int, b []byte, err error) bool
		complete         bool
	}{
		{"an error status has OpenAI's envelope", "fake-429", "", func(s int, b []byte, _ error) bool {
			return s == 429 && strings.Contains(string(b), `"code":"rate_limit_exceeded"`)
		}, false},
		{"so has a server's error", "fake-500", streamed, func(s int, b []byte, _ error) bool {
			return s == 500 && strings.HasPrefix(string(b), `{"error":{`)
		}, false},
		{"reset before the headers", "fake-reset", "", func(_ int, _ []byte, err error) bool { return errors.Is(err, syscall.ECONNRESET) }, false},
		{"reset in a stream", "fake-reset-mid", streamed, func(s int, _ []byte, err error) bool { return s == 200 && err != nil }, false},
		{"reset in an answer", "fake-reset-mid", "", func(s int, _ []byte, err error) bool { return s == 200 && err != nil }, false},
		{"a cut-off event, then on as if nothing had been", "fake-invalid-json", streamed, func(_ int, b []byte, err error) bool {
			bad := 0
			for _, e := range events(b) {
				if e != "[DONE]" && !json.Valid([]byte(e)) {
					bad++
				}
			}
			return err == nil && bad == 1
		}, true},
		{"a cut-off answer", "fake-invalid-json", "", func(s int, b []byte, err error) bool { return s == 200 && err == nil && !json.Valid(b) }, true},
		{"an error in a stream of status 200", "fake-error-envelope", streamed, func(s int, b []byte, err error) bool {
			all := events(b)
			return s == 200 && err == nil && strings.HasPrefix(all[len(all)-1], `{"error":{`)
		}, false},
		{"an error in an answer of status 200", "fake-error-envelope", "", func(s int, b []byte, _ error) bool {
			return s == 200 && strings.HasPrefix(string(b), `{"error":{`)
		}, true},
		{"usage below zero", "fake-negative-usage", "", func(_ int, b []byte, _ error) bool { return strings.Contains(string(b), `"completion_tokens":-16`) }, true},
		{"no usage", "fake-no-usage", "", func(_ int, b []byte, _ error) bool { return json.Valid(b) && !strings.Contains(string(b), `"usage"`) }, true},
		{"gzip that nobody asked for", "fake-gzip", streamed, func(_ int, b []byte, _ error) bool {
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return false
			}
			plain, err := io.ReadAll(z)
			return err == nil && strings.HasSuffix(string(plain), "data: [DONE]\n\n")
		}, true},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			p := setup(t, fakeupstream.Config{})
			status, b, err := p.chat(ask(c.model, c.more))
			if !c.check(status, b, err) {
				t.Errorf("status %d, error %v, body:\n%s", status, err, b)
			}
			if row := p.row(); row.Complete != c.complete {
				t.Errorf("complete is %v in %+v", row.Complete, row)
			}
		})
	}
}

func TestAClientThatLeavesIsInTheLedger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, model, more string }{
		{"before the headers", "fake-silent", ""},
		{"during a delay", "fake-slow-10m", ""},
		{"in a slow stream", "fake-pace-20ms-out-100000", `,"stream":true`},
		{"in a stalled stream", "fake-stall", `,"stream":true`},
		{"in a stalled answer", "fake-stall", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			p := setup(t, fakeupstream.Config{})
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				if answer, err := p.post(ctx, "/chat/completions", ask(c.model, c.more)); err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}()
			p.until("the request is there", func(s fakeupstream.Summary) bool { return s.InFlight == 1 })
			leave()
			<-done
			row := p.row()
			if row.Complete || row.Finished.IsZero() || row.SentTokens >= row.CompletionTokens {
				t.Errorf("the row must say that the client left: %+v", row)
			}
		})
	}
}

func TestRequestsAreJudgedLikeAProviderDoes(t *testing.T) {
	t.Parallel()
	p := setup(t, fakeupstream.Config{})
	for why, body := range map[string]string{
		"no JSON":                       `{"model":"m","messages":[`,
		"text after the object":         ask("m", "") + "x",
		"no model":                      `{"messages":[]}`,
		"messages of another type":      `{"model":"m","messages":"x"}`,
		"a cap below zero":              ask("m", `,"max_tokens":-1`),
		"a cap that is text":            ask("m", `,"max_tokens":"1"`),
		"an unknown setting in headers": ask("m", ""),
	} {
		status, b, err := p.chat(body, "X-Fake-Nonsense", "1")
		if err != nil || status != http.StatusBadRequest || !strings.HasPrefix(string(b), `{"error":{`) {
			t.Errorf("%s: status %d, %v\n%s", why, status, err, b)
		}
	}
	if n := len(p.fake.Ledger()); n != 0 {
		t.Errorf("%d rows for requests that were never served", n)
	}
}

func TestHeadersWinAndCorrelate(t *testing.T) {
	t.Parallel()
	p := setup(t, fakeupstream.Config{Mode: fakeupstream.Mode{OutputTokens: 5}})
	status, b, err := p.chat(ask("fake-out-7-in-1000", ""), "X-Fake-Output-Tokens", "9", "X-Client-Request-Id", "req-1")
	if err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	var answer struct {
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		t.Fatal(err)
	}
	row := p.row()
	if answer.Usage.Completion != 9 || answer.Usage.Prompt != 1000 || row.RequestID != "req-1" || row.PromptTokens != 1000 || row.CompletionTokens != 9 {
		t.Errorf("usage %+v, row %+v", answer.Usage, row)
	}
}
