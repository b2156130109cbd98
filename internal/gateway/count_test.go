package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/penstock-gateway/penstock/internal/store"
)

// counted reads what a count route answered.
func counted(t *testing.T, a answer) int64 {
	t.Helper()
	var n struct {
		Total *int64 `json:"total_tokens"`
		Input *int64 `json:"input_tokens"`
	}
	if err := json.Unmarshal(a.body, &n); err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	if n.Total != nil {
		return *n.Total
	}
	if n.Input == nil {
		t.Fatalf("no count in %s", a.body)
	}
	return *n.Input
}

func TestCountRoutes(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	const hello = `[{"role":"user","content":"Hello!"}]`
	for _, c := range []struct {
		why, path, body string
		tokens          int64
		count           string
	}{
		{"LiteLLM's, with messages", "/utils/token_counter", `{"model":"m-o","messages":` + hello + `}`, 9, "exact"},
		{"with a plain prompt", "/utils/token_counter", `{"model":"m-o","prompt":"Hello!"}`, 2, "exact"},
		{"with Gemini's contents", "/utils/token_counter", `{"model":"m-o","contents":[{"role":"user","parts":[{"text":"Hello!"}]}]}`, 9, ""},
		{"for a model that is not configured", "/utils/token_counter", `{"model":"gpt-3.5-turbo","messages":` + hello + `}`, 9, "exact"},
		{"for one that nobody knows", "/utils/token_counter", `{"model":"whatever-7b","prompt":"Hello!"}`, 2, "estimated"},
		{"OpenAI's, one string", "/v1/responses/input_tokens", `{"model":"m-o","input":"Hello!"}`, 9, ""},
		{"without the version", "/responses/input_tokens", `{"model":"m-o","input":` + hello + `}`, 9, ""},
		{"Anthropic's", "/v1/messages/count_tokens", `{"model":"m-o","messages":` + hello + `}`, 9, "estimated"},
	} {
		a := s.do(http.MethodPost, c.path, key, c.body)
		if n := counted(t, a); n != c.tokens {
			t.Errorf("%s: %d tokens, want %d", c.why, n, c.tokens)
		}
		if got := a.header.Get("x-penstock-count"); c.count != "" && got != c.count {
			t.Errorf("%s: the count is %q, want %q", c.why, got, c.count)
		}
	}
	// Nothing was sent anywhere, and nothing is booked.
	s.records(key, 0)
}

// What is counted is what a request is held and booked with.
func TestCountIsWhatARequestIsBookedWith(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	const prompt = `[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Wie spät ist es?"},{"type":"text","text":"It's \"late\"\n"}]}]`
	const simple = `[{"role":"user","content":"Wie spät ist es?"}]`
	for _, c := range []struct {
		why, path, model, field, messages string
		count                             string
		permille                          int64 // of the count that money is held for
	}{
		{"a model of OpenAI's", "/utils/token_counter", "m-o", "messages", prompt, "exact", 1000},
		{"a model whose tokenizer is not known", "/utils/token_counter", "fake-x", "messages", prompt, "estimated", 1300},
		{"OpenAI's route", "/v1/responses/input_tokens", "fake-x", "input", simple, "estimated", 1300},
		{"Anthropic's route", "/v1/messages/count_tokens", "fake-x", "messages", simple, "estimated", 1300},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := s.on(t)
			key := s.newKey("1", nil)
			a := s.do(http.MethodPost, c.path, key, fmt.Sprintf(`{"model":%q,%q:%s}`, c.model, c.field, c.messages))
			n := counted(t, a)
			if got := a.header.Get("x-penstock-count"); got != c.count {
				t.Errorf("the count is %q, want %q", got, c.count)
			}
			s.chat(key, fmt.Sprintf(`{"model":%q,"max_tokens":5,"messages":%s}`, c.model, c.messages))
			const token = 100_000 // nano-dollars
			if want := ((n*c.permille+999)/1000 + 5) * token; s.records(key, 1)[0].Hold != want {
				t.Errorf("held %d, want %d for %d tokens", s.records(key, 1)[0].Hold, want, n)
			}
		})
	}
}

// The mock reports the count, and the record says whether it is an estimate.
func TestMockReportsTheCount(t *testing.T) {
	t.Parallel()
	s := &stack{t: t, dir: t.TempDir()}
	s.start(strings.Replace(fmt.Sprintf(models, "http://127.0.0.1:1"), "model_list:\n",
		"model_list:\n- {model_name: canned-other, litellm_params: {model: openai/whatever-7b, mock_response: Hello}}\n", 1))
	const messages = `[{"role":"user","name":"ada","content":"Wie spät ist es?"}]`
	for model, estimated := range map[string]bool{"canned": false, "canned-other": true} {
		key := s.newKey("", nil)
		n := counted(t, s.do(http.MethodPost, "/utils/token_counter", key, fmt.Sprintf(`{"model":%q,"messages":%s}`, model, messages)))
		a := s.chat(key, fmt.Sprintf(`{"model":%q,"messages":%s}`, model, messages))
		if want := map[bool]string{false: "exact", true: "estimated"}[estimated]; a.header.Get("x-penstock-count") != want {
			t.Errorf("%s: the count is %q, want %q", model, a.header.Get("x-penstock-count"), want)
		}
		var completion struct {
			Usage struct {
				Prompt int64 `json:"prompt_tokens"`
			} `json:"usage"`
		}
		if err := json.Unmarshal(a.body, &completion); err != nil || completion.Usage.Prompt != n {
			t.Errorf("%s reports %d prompt tokens, the counter %d: %s", model, completion.Usage.Prompt, n, a.body)
		}
		if row := s.records(key, 1)[0]; row.Usage.Input != n || row.Estimated != estimated {
			t.Errorf("%s is booked with %d input tokens, estimated %v, want %d, %v", model, row.Usage.Input, row.Estimated, n, estimated)
		}
	}
}

func TestCountRoutesRefuse(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	narrow := s.newKey("", func(k *store.Key) { k.Models = []string{"canned"} })
	for _, c := range []struct {
		why, path, key, body string
		status               int
		code                 string
	}{
		{"no key", "/utils/token_counter", "", `{"model":"m-o","prompt":"x"}`, 401, "missing_api_key"},
		{"a wrong key", "/v1/responses/input_tokens", "sk-wrong", `{"model":"m-o","input":"x"}`, 401, "invalid_api_key"},
		{"a model that the key may not use", "/utils/token_counter", narrow, `{"model":"m-o","prompt":"x"}`, 403, "model_not_allowed"},
		{"an unknown model, where one is asked for a provider's count", "/v1/responses/input_tokens", key, `{"model":"none","input":"x"}`, 404, "model_not_found"},
		{"both a prompt and messages", "/utils/token_counter", key, `{"model":"m-o","prompt":"x","messages":[]}`, 400, "invalid_body"},
		{"broken JSON", "/utils/token_counter", key, `{"model":`, 400, "invalid_body"},
		{"too large", "/utils/token_counter", key, `{"model":"m-o","prompt":"` + strings.Repeat("x", 1_100_000) + `"}`, 413, "request_too_large"},
	} {
		if a := s.do(http.MethodPost, c.path, c.key, c.body); a.status != c.status || a.code() != c.code {
			t.Errorf("%s: %d %q, want %d %q: %s", c.why, a.status, a.code(), c.status, c.code, a.body)
		}
	}
	if a := s.do(http.MethodGet, "/utils/token_counter", key, ""); a.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", a.status)
	}
}

// Anthropic's clients read errors in Anthropic's shape, and send the key in x-api-key.
func TestCountTokensSpeaksAnthropic(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	if n := counted(t, s.do(http.MethodPost, "/v1/messages/count_tokens", "", `{"model":"m-o","messages":[{"role":"user","content":"Hello!"}]}`, "x-api-key", key)); n != 9 {
		t.Errorf("%d tokens, want 9", n)
	}
	for status, c := range map[int]struct{ key, body, kind string }{
		400: {key, `{"model":"m-o"}`, "invalid_request_error"},
		401: {"sk-wrong", `{"model":"m-o","messages":[]}`, "authentication_error"},
		404: {key, `{"model":"none","messages":[{"role":"user","content":"x"}]}`, "not_found_error"},
	} {
		a := s.do(http.MethodPost, "/v1/messages/count_tokens", "", c.body, "x-api-key", c.key)
		var e struct {
			Type  string
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal(a.body, &e); err != nil || a.status != status || e.Type != "error" || e.Error.Type != c.kind || e.Error.Message == "" {
			t.Errorf("%d %s, want %d with the type %s", a.status, a.body, status, c.kind)
		}
	}
	// Also where the request is refused before it is one.
	if a := s.do(http.MethodGet, "/v1/messages/count_tokens", key, ""); a.status != http.StatusMethodNotAllowed ||
		!strings.HasPrefix(string(a.body), `{"type":"error","error":{"type":"invalid_request_error"`) {
		t.Errorf("GET: %d %s", a.status, a.body)
	}
}

// A flood of large prompts: all are counted, and a place is always given back.
func TestLargePromptsTakeTurns(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	body := fmt.Sprintf(`{"model":"m-o","prompt":"%s"}`, strings.Repeat("Hello, world. ", 60_000))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if n := counted(t, s.do(http.MethodPost, "/utils/token_counter", key, body)); n != 240_001 {
				t.Errorf("%d tokens, want 240,001", n)
			}
		})
		wg.Go(func() {
			s.do(http.MethodPost, "/utils/token_counter", key, body[:len(body)-1]) // refused in its place
		})
	}
	wg.Wait()
	if n := counted(t, s.do(http.MethodPost, "/utils/token_counter", key, body)); n != 240_001 {
		t.Errorf("afterwards: %d tokens, want 240,001", n)
	}
}
