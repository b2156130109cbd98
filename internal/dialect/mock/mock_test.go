package mock

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/sse"
	"github.com/penstock-gateway/penstock/internal/tokens"
)

func o200k(t testing.TB) func([]byte) int {
	t.Helper()
	c, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return func(text []byte) int { return c.Count(tokens.O200kBase, text) }
}

// completion is what a client decodes.
type completion struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index          int
		Message, Delta struct{ Role, Content string }
		FinishReason   *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Total      int64 `json:"total_tokens"`
	}
}

func decode(t testing.TB, b []byte) completion {
	t.Helper()
	var c completion
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatalf("%v in %q", err, b)
	}
	return c
}

// play is the whole stream, event by event.
func play(r *Reply) (events []string) {
	for b, more := r.AppendEvent(nil); more; b, more = r.AppendEvent(nil) {
		events = append(events, string(b))
	}
	return events
}

// joined is the text of each choice in a stream.
func joined(t testing.TB, events []string) map[int]string {
	t.Helper()
	all := map[int]string{}
	for _, e := range events {
		data, ok := strings.CutPrefix(strings.TrimSuffix(e, "\n\n"), "data: ")
		if !ok {
			t.Fatalf("not an event: %q", e)
		}
		if data == "[DONE]" {
			continue
		}
		for _, c := range decode(t, []byte(data)).Choices {
			all[c.Index] += c.Delta.Content
		}
	}
	return all
}

var head = openai.Head{ID: "chatcmpl-1", Model: `m"o`, Created: 7}

func TestCompletion(t *testing.T) {
	t.Parallel()
	count := o200k(t)
	cases := []struct {
		why    string
		req    Request
		text   string
		finish string
		usage  money.Usage
	}{
		{"a given text", Request{Text: "Hello!", PromptTokens: 9, Count: count}, "Hello!", "stop", money.Usage{Input: 9, Output: 2}},
		{"n counts each choice", Request{Text: "Hello!", PromptTokens: 9, N: 3, Count: count}, "Hello!", "stop", money.Usage{Input: 9, Output: 6}},
		{"cut to the cap", Request{Text: "one two three four", MaxTokens: 3, Count: count}, "one two three", "length", money.Usage{Output: 3}},
		{"a cap that just fits", Request{Text: "one two three", MaxTokens: 3, Count: count}, "one two three", "stop", money.Usage{Output: 3}},
		{"a word over the cap is left out whole", Request{Text: "antidisestablishmentarianism", MaxTokens: 1, Count: count}, "", "length", money.Usage{}},
		{"words without a counter", Request{Text: "one two three", MaxTokens: 2}, "one two", "length", money.Usage{Output: 2}},
		{"odd spaces", Request{Text: "  a   b ", MaxTokens: 100, Count: count}, "  a   b ", "stop", money.Usage{Output: int64(count([]byte("  a   b ")))}},
		{"quotes, controls, scripts", Request{Text: "a\"\\\n\x01 é 你好", Count: count}, "a\"\\\n\x01 é 你好", "stop", money.Usage{Output: int64(count([]byte("a\"\\\n\x01 é 你好")))}},
		{"the built-in text", Request{Count: count}, DefaultText, "stop", money.Usage{Output: int64(count([]byte(DefaultText)))}},
		{"the built-in text, cut", Request{MaxTokens: 4, Count: count}, "This is a mock", "length", money.Usage{Output: 4}},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			tc.req.Head = head
			r := NewReply(tc.req)
			if r.Usage != tc.usage || r.Finish != tc.finish || r.Text != tc.text {
				t.Errorf("%q, %s, %+v", r.Text, r.Finish, r.Usage)
			}
			c := decode(t, r.AppendCompletion(nil))
			if c.ID != head.ID || c.Model != head.Model || c.Created != 7 || c.Object != "chat.completion" || len(c.Choices) != max(1, int(tc.req.N)) {
				t.Errorf("%+v", c)
			}
			for i, choice := range c.Choices {
				if choice.Index != i || choice.Message.Role != "assistant" || choice.Message.Content != tc.text || *choice.FinishReason != tc.finish {
					t.Errorf("choice %d: %+v", i, choice)
				}
			}
			if c.Usage.Prompt != tc.usage.Input || c.Usage.Completion != tc.usage.Output || c.Usage.Total != tc.usage.Input+tc.usage.Output {
				t.Errorf("usage %+v, want %+v", c.Usage, tc.usage)
			}
			// The stream says the same.
			for i, text := range joined(t, play(NewReply(tc.req))) {
				if text != tc.text {
					t.Errorf("stream of choice %d: %q", i, text)
				}
			}
		})
	}
}

func TestStreamSequence(t *testing.T) {
	t.Parallel()
	events := play(NewReply(Request{Head: head, Text: "Hi there", PromptTokens: 9, IncludeUsage: true}))
	chunk := func(rest string) string {
		return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m\"o","choices":[` + rest + "}\n\n"
	}
	want := []string{
		chunk(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]`),
		chunk(`{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]`),
		chunk(`{"index":0,"delta":{"content":" there"},"finish_reason":null}]`),
		chunk(`{"index":0,"delta":{},"finish_reason":"stop"}]`),
		chunk(`],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}`),
		"data: [DONE]\n\n",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
	without := play(NewReply(Request{Head: head, Text: "Hi there", PromptTokens: 9}))
	if diff := cmp.Diff(append(want[:4:4], want[5]), without); diff != "" {
		t.Errorf("usage not asked for: %s", diff)
	}
}

// The gateway must read the mock as it reads any provider.
func TestStreamAsObserved(t *testing.T) {
	t.Parallel()
	r := NewReply(Request{Head: head, Text: "one two", PromptTokens: 9, N: 2, IncludeUsage: true})
	o := openai.NewObserver(countWords)
	s := sse.NewScanner(sse.Config{})
	for b, more := r.AppendEvent(nil); more; b, more = r.AppendEvent(b[:0]) {
		s.Feed(b)
		for ev, ok := s.Next(); ok; ev, ok = s.Next() {
			o.Observe(ev.Data)
		}
	}
	u, ok := o.Usage()
	if !ok || u != r.Usage || o.OutputTokens() != r.Usage.Output || !o.Done() || !o.Finished() || o.Deltas() != 4 {
		t.Errorf("%+v %v, counted %d", u, ok, o.OutputTokens())
	}
	if _, more := r.AppendEvent(nil); more {
		t.Error("events behind [DONE]")
	}
}

func TestSpecialResponses(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"litellm.RateLimitError":             `429 {"error":{"message":"this is a mock rate limit error","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`,
		"litellm.ContextWindowExceededError": `400 {"error":{"message":"this is a mock context window exceeded error","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
		"litellm.InternalServerError":        `500 {"error":{"message":"this is a mock internal server error","type":"server_error","param":null,"code":"internal_server_error"}}`,
	}
	for text, shape := range want {
		e, ok := ErrorFor(text)
		if !ok {
			t.Errorf("%s is no error", text)
			continue
		}
		if got := fmt.Sprintf("%d %s", e.Status, e.Body()); got != shape {
			t.Error(got)
		}
	}
	for _, text := range []string{"", "Hello", "litellm.RateLimitError!", "RateLimitError"} {
		if _, ok := ErrorFor(text); ok {
			t.Errorf("%q is an error", text)
		}
	}
}

func TestNetworkMock(t *testing.T) {
	t.Parallel()
	got := string(AppendNetworkMock(nil, "gpt-4o", 7, 0x00abcdef))
	want := `{"id":"chatcmpl-mock-00abcdef","object":"chat.completion","created":7,"model":"gpt-4o","choices":[{"index":0,` +
		`"message":{"role":"assistant","content":"Mock response"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEventsDoNotAllocate(t *testing.T) {
	r := NewReply(Request{Head: head, Text: strings.Repeat("word ", 1000)})
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(500, func() { buf, _ = r.AppendEvent(buf[:0]) }); n > 0 {
		t.Errorf("%v allocations for an event, want 0", n)
	}
}

func FuzzReply(f *testing.F) {
	f.Add("Hello there", int64(1), int64(2))
	f.Add(" \xff \"", int64(3), int64(0))
	f.Fuzz(func(t *testing.T, text string, n, limit int64) {
		if n < 0 || n > 5 || limit < 0 {
			return
		}
		req := Request{Head: head, Text: text, N: n, MaxTokens: limit, IncludeUsage: true}
		r := NewReply(req)
		if limit > 0 && r.Usage.Output > limit*max(1, n) {
			t.Fatalf("%d tokens, cap %d", r.Usage.Output, limit)
		}
		c := decode(t, r.AppendCompletion(nil))
		for i, streamed := range joined(t, play(NewReply(req))) {
			if i > len(c.Choices) || streamed != c.Choices[i].Message.Content {
				t.Fatalf("choice %d: %q streamed, %q whole", i, streamed, c.Choices[i].Message.Content)
			}
		}
	})
}
