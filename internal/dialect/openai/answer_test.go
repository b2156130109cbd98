package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/sse"
)

// answer is a completion with this usage member.
func answer(usage string) string {
	return `{"id":"c1","object":"chat.completion","model":"m-o","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":` + usage + `}`
}

func TestUsage(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, usage string
		report     Report
		want       money.Usage
	}{
		{"plain", `{"prompt_tokens":9,"completion_tokens":91,"total_tokens":100}`, Reported, money.Usage{Input: 9, Output: 91}},
		{"explicit zeros are figures", `{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, Reported, money.Usage{}},
		{
			"parts are parts, not additions",
			`{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":40}}`,
			Reported, money.Usage{Input: 100, Output: 50, Cached: 64, Reasoning: 40},
		},
		{"null parts", `{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}}`, Reported, money.Usage{Input: 1, Output: 2}},
		{"an embedding has no completion", `{"prompt_tokens":8,"total_tokens":8}`, Reported, money.Usage{Input: 8}},
		{"unknown members", `{"prompt_tokens":1,"completion_tokens":2,"cost":0.1,"x":{"prompt_tokens":-5}}`, Reported, money.Usage{Input: 1, Output: 2}},
		{"null", `null`, NoReport, money.Usage{}},
		{"negative", `{"prompt_tokens":-1000000,"completion_tokens":-1,"total_tokens":-1000001}`, Rejected, money.Usage{}},
		{"a string", `{"prompt_tokens":9,"completion_tokens":"91","total_tokens":100}`, Rejected, money.Usage{}},
		{"a huge total", `{"prompt_tokens":9,"completion_tokens":91,"total_tokens":1e18}`, Rejected, money.Usage{}},
		{"a huge total in digits", `{"prompt_tokens":9,"completion_tokens":91,"total_tokens":1000000000000000000}`, Rejected, money.Usage{}},
		{"beyond int64", `{"prompt_tokens":99999999999999999999,"completion_tokens":1}`, Rejected, money.Usage{}},
		{"fractions", `{"prompt_tokens":9.7,"completion_tokens":91,"total_tokens":100.7}`, Rejected, money.Usage{}},
		{"true", `{"prompt_tokens":true,"completion_tokens":91}`, Rejected, money.Usage{}},
		{"half of it is missing", `{"prompt_tokens":9,"total_tokens":100}`, Rejected, money.Usage{}},
		{"empty", `{}`, Rejected, money.Usage{}},
		{"a list", `[]`, Rejected, money.Usage{}},
		{"more cached than sent", `{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":10}}`, Rejected, money.Usage{}},
		{"negative part", `{"prompt_tokens":9,"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":-1}}`, Rejected, money.Usage{}},
		{"more reasoning than output", `{"prompt_tokens":9,"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":2}}`, Rejected, money.Usage{}},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			body := []byte(answer(tc.usage))
			a, err := ReadAnswer(body)
			if err != nil {
				t.Fatal(err)
			}
			if a.Report != tc.report || a.Usage != tc.want || a.ID != "c1" || a.Model != "m-o" {
				t.Errorf("%+v", a)
			}
			if n := a.CountOutput(body, words); n != 1 {
				t.Errorf("%d words of output, want 1", n)
			}
			// The same figures in a stream must be taken the same way.
			o := NewObserver(words)
			o.Observe([]byte(`{"id":"c1","choices":[],"usage":` + tc.usage + `}`))
			u, ok := o.Usage()
			if u != tc.want || ok != (tc.report == Reported) || o.UsageRejected() != (tc.report == Rejected) {
				t.Errorf("in a stream: %+v %v, rejected %v", u, ok, o.UsageRejected())
			}
		})
	}
}

func words(text []byte) int { return len(strings.Fields(string(text))) }

func TestAnswerThatIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `<html>`, answer(`{"prompt_tokens":NaN}`), answer(`null`) + "x"} {
		if _, err := ReadAnswer([]byte(body)); err == nil {
			t.Errorf("%q is taken for JSON", body)
		}
	}
	if a, err := ReadAnswer([]byte(`[1]`)); err != nil || a.Report != NoReport {
		t.Errorf("an array: %+v %v", a, err)
	}
}

func TestAnswerOutput(t *testing.T) {
	t.Parallel()
	body := []byte(`{"choices":[{"message":{"content":"one two","reasoning_content":"three","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\": 1}"}}]}},` +
		`{"message":{"content":null,"refusal":"no"}},{"text":"legacy"},7]}`)
	a, err := ReadAnswer(body)
	if err != nil {
		t.Fatal(err)
	}
	if n := a.CountOutput(body, words); n != 8 {
		t.Errorf("%d words, want 8", n)
	}
}

func TestErrorBody(t *testing.T) {
	t.Parallel()
	full := Error{Status: 400, Message: "bad <b> \"x\"\n", Type: "invalid_request_error", Param: "n", Code: "c"}
	want := `{"error":{"message":"bad <b> \"x\"\n","type":"invalid_request_error","param":"n","code":"c"}}`
	if got := string(full.Body()); got != want {
		t.Errorf("%s", got)
	}
	bare := Error{Message: "m", Type: "t"}
	if got := string(bare.Body()); got != `{"error":{"message":"m","type":"t","param":null,"code":null}}` {
		t.Errorf("%s", got)
	}
	s := sse.NewScanner(sse.Config{})
	s.Feed(full.Event())
	ev, ok := s.Next()
	if !ok || string(ev.Data) != want {
		t.Errorf("event %q", ev.Raw)
	}
	back, ok := ReadError(full.Body())
	if diff := cmp.Diff(&full, back); !ok || diff != "" {
		t.Error(diff)
	}
}

func TestReadError(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, body string
		status    int
	}{
		{"quota", `{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}`, http.StatusTooManyRequests},
		{"the status is in code, as a number", `{"error":{"message":"x","code":503}}`, http.StatusServiceUnavailable},
		{"only a type", `{"error":{"message":"x","type":"overloaded_error","code":null}}`, http.StatusServiceUnavailable},
		{"a string", `{"error":"boom"}`, http.StatusBadGateway},
		{"nobody knows", `{"error":{"message":"x","type":"weird"}}`, http.StatusBadGateway},
		{"too long a prompt", `{"error":{"message":"x","type":"invalid_request_error","code":"context_length_exceeded"}}`, http.StatusBadRequest},
		{"a code that is no status", `{"error":{"code":7}}`, http.StatusBadGateway},
	}
	for _, tc := range cases {
		e, ok := ReadError([]byte(tc.body))
		if !ok || e.Status != tc.status {
			t.Errorf("%s: %+v %v, want status %d", tc.why, e, ok, tc.status)
		}
	}
	for _, body := range []string{`{"error":null}`, `{}`, `[]`, `{"error":{`, `{"choices":[{"error":{}}]}`} {
		if e, ok := ReadError([]byte(body)); ok {
			t.Errorf("%s: %+v, want none", body, e)
		}
	}
}

func TestUsageEvent(t *testing.T) {
	t.Parallel()
	head := Head{ID: `c"1`, Model: "m-o", Created: 1}
	b := AppendUsageEvent(nil, head, money.Usage{Input: 9, Output: 2, Cached: 4, Reasoning: 1})
	o := NewObserver(words)
	s := sse.NewScanner(sse.Config{})
	s.Feed(append(b, DoneEvent...))
	ev, _ := s.Next()
	var decoded struct {
		ID, Object, Model string
		Created           int64
		Choices           []any
		Usage             struct {
			Total int64 `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal(ev.Data, &decoded); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(decoded); got != `{c"1 chat.completion.chunk m-o 1 [] {11}}` || decoded.Choices == nil {
		t.Error(got)
	}
	if kind := o.Observe(ev.Data).Kind; kind != UsageOnly {
		t.Errorf("kind %d", kind)
	}
	if u, ok := o.Usage(); !ok || u != (money.Usage{Input: 9, Output: 2, Cached: 4, Reasoning: 1}) {
		t.Errorf("%+v", u)
	}
	if ev, _ = s.Next(); o.Observe(ev.Data).Kind != Done || !o.Done() {
		t.Error("no [DONE]")
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte(answer(`{"prompt_tokens":9,"completion_tokens":91,"total_tokens":100}`)))
	f.Add([]byte(answer(`{"prompt_tokens":-9,"prompt_tokens_details":{"cached_tokens":1e5}}`)))
	f.Add([]byte(`{"error":{"message":1,"code":429}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := ReadAnswer(body)
		if err == nil && !json.Valid(body) {
			t.Fatalf("%q is taken for JSON", body)
		}
		if a.Usage.Input < 0 || a.Usage.Output < 0 || a.Usage.Cached > a.Usage.Input || a.Usage.Reasoning > a.Usage.Output {
			t.Fatalf("%+v from %q", a.Usage, body)
		}
		if err == nil {
			a.CountOutput(body, words)
		}
		_, _ = ReadError(body) // only that it does not panic
		NewObserver(words).Observe(body)
	})
}
