package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzScanChat checks the scanner against encoding/json: what is accepted must
// be valid JSON and mean the same there, and what is called broken must be
// broken.
func FuzzScanChat(f *testing.F) {
	for _, body := range []string{
		b1,
		with(`"stream":true,"stream_options":{"include_usage":true},"n":2,"tools":[{"a":1}],"tags":["x"]`),
		withMessages(`[{"role":"user","content":[{"type":"text","text":"a\n\ud83d\ude00"},{"type":"image_url","image_url":{"url":"data:"}}]}]`),
		withMessages(`[{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]`),
		`{"\u006dodel":"x","messages":[{"role":"a","name":"b"}],"max_tokens":null}`,
		`{"model":"m","model":"n","messages":[]}`,
		"{\"model\":\"\xff\"}",
	} {
		f.Add([]byte(body))
	}
	var reused Chat
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		err := reused.Scan(body, Limits{})
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		sound := json.Valid(body) && utf8.Valid(body)
		if err == nil {
			if !sound {
				t.Fatalf("accepted, but not valid: %q", body)
			}
			compare(t, body, &reused)
			return
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%v says nothing of the place", err)
		}
		broken := e.Field == "" && !strings.Contains(e.Msg, "deeper") && !strings.Contains(e.Msg, "must be an object") && !strings.Contains(e.Msg, "more than")
		if broken && sound {
			t.Fatalf("%v, but it is valid: %q", err, body)
		}
	})
}

// compare reads the body by maps, which keep the case of keys, unlike structs.
func compare(t *testing.T, body []byte, c *Chat) {
	t.Helper()
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		t.Fatal(err)
	}
	var model string
	var stream *bool
	var limit *int64
	for key, into := range map[string]any{"model": &model, "stream": &stream, "max_tokens": &limit} {
		if raw, ok := top[key]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
		}
	}
	if model != c.Model || !bytes.Equal(top["model"], c.ModelSpan.Of(body)) {
		t.Fatalf("model %q, want %q", c.Model, model)
	}
	if c.Stream != (stream != nil && *stream) || c.MaxTokens.Set != (limit != nil) || limit != nil && *limit != c.MaxTokens.Value {
		t.Fatalf("stream %v, cap %+v in %q", c.Stream, c.MaxTokens, body)
	}
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(top["messages"], &messages); err != nil {
		t.Fatal(err)
	}
	if len(messages) != len(c.Messages) {
		t.Fatalf("%d messages, want %d", len(c.Messages), len(messages))
	}
	for i, m := range messages {
		compareMessage(t, body, c, i, m)
	}
}

func compareMessage(t *testing.T, body []byte, c *Chat, i int, m map[string]json.RawMessage) {
	t.Helper()
	got := c.Messages[i]
	for _, member := range []struct {
		key  string
		span Span
	}{{"role", got.Role}, {"name", got.Name}, {"content", got.Content}} {
		raw := string(m[member.key])
		if member.key == "name" && raw == "null" {
			raw = ""
		}
		if s := string(member.span.Of(body)); s != raw {
			t.Fatalf("message %d, %s: %q, want %q", i, member.key, s, raw)
		}
	}
	var role string
	if err := json.Unmarshal(m["role"], &role); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, span := range c.Texts[got.FirstText:got.EndText] {
		text := string(AppendUnescaped(nil, body, span))
		var want string
		if err := json.Unmarshal(span.Of(body), &want); err != nil || text != want {
			t.Fatalf("text %q, want %q, %v", text, want, err)
		}
		all = append(all, text)
	}
	if !strings.Contains(fmt.Sprintf("%q", all), fmt.Sprintf("%q", role)) {
		t.Fatalf("message %d: role %q is not among its texts %q", i, role, all)
	}
}

// shapes has a body of each shape that is as full as can be.
var shapes = map[Shape][]string{
	Completions: {
		`{"model":"m","prompt":"a\n","suffix":"b","max_tokens":1,"n":2,"best_of":3}`,
		`{"model":"m","prompt":["a","\u00e9"]}`, `{"model":"m","prompt":[1,2,3]}`, `{"model":"m","prompt":[[1],[2,3],[]]}`,
	},
	Embeddings: {`{"model":"m","input":["a","b"],"dimensions":3}`, `{"model":"m","input":"a","encoding_format":"float"}`},
	Responses: {
		`{"model":"m","input":"a","instructions":"b","max_output_tokens":9,"text":{"format":{"type":"json_schema","schema":{"a":1}}},"previous_response_id":"x"}`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:","detail":"low"},{"type":"input_file","file_data":"d","filename":"f"}]},` +
			`{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},{"type":"function_call_output","output":"o","call_id":"c"},` +
			`{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"e"},{"type":"item_reference","id":"i"},` +
			`{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"u"}},{"type":"image_generation_call","result":"r"}]}`,
		`{"model":"m","prompt":{"id":"p","variables":{"a":"b"}}}`,
	},
	Messages: {
		`{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s"}],"metadata":{"user_id":"u"},"tools":[{"name":"f"}],"messages":[{"role":"user","content":[` +
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"d"}},{"type":"document","source":{"type":"text","data":"t"},"title":"x"},` +
			`{"type":"tool_result","tool_use_id":"i","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"u"}}]}]},` +
			`{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"g"},{"type":"redacted_thinking","data":"e"},{"type":"tool_use","id":"i","name":"f","input":{"a":1}}]}]}`,
	},
	TokenCounter: {
		`{"model":"m","prompt":"a","messages":null}`,
		`{"model":"m","contents":[{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"d"}},{"functionCall":{"name":"f","args":{"a":1}}}]}]}`,
		`{"model":"m","system":"s","messages":[{"role":"user","content":"a"}]}`,
	},
}

// FuzzScan checks every shape against a slow reading by encoding/json.
func FuzzScan(f *testing.F) {
	for shape, bodies := range shapes {
		for _, body := range bodies {
			f.Add([]byte(body), uint8(shape))
		}
	}
	f.Add([]byte(b1), uint8(ChatCompletions))
	var reused Request
	f.Fuzz(func(t *testing.T, body []byte, shape uint8) {
		shape %= uint8(TokenCounter) + 1
		err := reused.Scan(body, Shape(shape), Limits{MaxDepth: 1000})
		if err != nil {
			return
		}
		if !json.Valid(body) || !utf8.Valid(body) {
			t.Fatalf("accepted, but not valid: %q", body)
		}
		want, got := reference(t, body, Shape(shape)), summarize(t, body, &reused)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s in %q", diff, body)
		}
	})
}
