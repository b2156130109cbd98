package jsonscan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
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

func BenchmarkScanChat(b *testing.B) {
	prose := strings.Repeat("The gateway counts tokens before it forwards a request. ", 8000)
	code := strings.Repeat("if err != nil {\n\t\treturn fmt.Errorf(\"cannot %w\", err)\n\t}\n", 7500)
	quoted := string(AppendString(nil, code))
	for _, bench := range []struct{ name, body string }{
		{"prose", withMessages(`[{"role":"user","content":"` + prose + `"}]`)},
		{"code", withMessages(`[{"role":"user","content":` + quoted + `}]`)},
		{"chinese", withMessages(`[{"role":"user","content":"` + strings.Repeat("网关在转发请求之前会先计算令牌数量。", 8000) + `"}]`)},
		{"200 messages", withMessages(`[` + strings.Repeat(`{"role":"user","content":"`+prose[:2200]+`"},`, 199) + `{"role":"user"}]`)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			body := []byte(bench.body)
			var c Chat
			var buf []byte
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Scan(body, Limits{}); err != nil {
					b.Fatal(err)
				}
				for _, s := range c.Texts {
					Unescaped(body, s, &buf)
				}
			}
		})
	}
}
