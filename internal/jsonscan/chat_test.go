package jsonscan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const b1 = `{"model":"m-o","messages":[{"role":"user","content":"Hello!"}],"max_tokens":91}`

func scanChat(t testing.TB, body string) *Chat {
	t.Helper()
	c, err := ScanChat([]byte(body), Limits{})
	if err != nil {
		t.Fatalf("%v in %.300s", err, body)
	}
	return c
}

// texts are the texts of a chat, unescaped.
func texts(body string, c *Chat) []string {
	all := []string{}
	for _, s := range c.Texts {
		all = append(all, string(AppendUnescaped(nil, []byte(body), s)))
	}
	return all
}

// withMessages is a request with this array of messages.
func withMessages(messages string) string {
	return `{"model":"m-o","messages":` + messages + `}`
}

// with is a small request with further members.
func with(members string) string {
	return `{"model":"m-o",` + members + `,"messages":[{"role":"user","content":"Hello!"}]}`
}

func TestPlainRequest(t *testing.T) {
	t.Parallel()
	c := scanChat(t, b1)
	at := func(s Span) string { return string(s.Of([]byte(b1))) }
	if c.Model != "m-o" || at(c.ModelSpan) != `"m-o"` || c.Insert != 1 || c.N != 1 || c.Stream {
		t.Errorf("%+v", c)
	}
	if c.MaxTokens.Value != 91 || at(c.MaxTokens.Span) != "91" || at(c.MaxTokens.Key) != `"max_tokens"` {
		t.Errorf("max_tokens: %+v", c.MaxTokens)
	}
	if limit, ok := c.OutputCap(); limit != 91 || !ok {
		t.Errorf("output cap %d %v", limit, ok)
	}
	m := c.Messages[0]
	if at(m.Span) != `{"role":"user","content":"Hello!"}` || at(m.Role) != `"user"` || at(m.Content) != `"Hello!"` || m.EndText != 2 {
		t.Errorf("message: %+v", m)
	}
	if diff := cmp.Diff([]string{"user", "Hello!"}, texts(b1, c)); diff != "" {
		t.Error(diff)
	}
}

func TestWhichTextsAreCounted(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why      string
		messages string
		want     []string
		items    int
	}{
		{
			why:      "null and missing content, null and empty calls (history that vendors accept)",
			messages: `[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":null},{"role":"user"},{"role":"user","content":"","tool_calls":[],"function_call":null},{"role":"user","content":[]}]`,
			want:     []string{"user", "Hi", "assistant", "user", "user", "", "user"},
		},
		{
			why:      "roles are not a closed list",
			messages: `[{"role":"developer","content":"a"},{"role":"critic","content":"b"}]`,
			want:     []string{"developer", "a", "critic", "b"},
		},
		{
			why:      "names",
			messages: `[{"role":"user","name":"ada","content":"Hello!"},{"role":"user","name":null,"content":"x"}]`,
			want:     []string{"user", "ada", "Hello!", "user", "x"},
		},
		{
			why:      "names and arguments of calls, not their ids",
			messages: `[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"city\":\"Ulm\"}"}},{"id":"b","type":"custom","custom":{"name":"g","input":"in"}}]},{"role":"assistant","function_call":{"name":"h","arguments":"{}"}},{"role":"tool","tool_call_id":"a","content":"sunny"}]`,
			want:     []string{"assistant", "f", `{"city":"Ulm"}`, "g", "in", "assistant", "h", "{}", "tool", "sunny"},
		},
		{
			why:      "text parts, the type at any place or missing",
			messages: `[{"role":"user","content":[{"type":"text","text":"a"},{"text":"b","type":"text"},{"text":"c"},{"type":"refusal","refusal":"no"}]}]`,
			want:     []string{"user", "a", "b", "c", "no"},
		},
		{
			why:      "reasoning that clients send back; other shapes of it are theirs",
			messages: `[{"role":"assistant","reasoning_content":"hm","content":"x","refusal":null},{"role":"assistant","reasoning_content":[1],"content":"y"}]`,
			want:     []string{"assistant", "hm", "x", "assistant", "y"},
		},
		{
			why:      "images, audio and files are items, never text, also in a tool's answer and whatever else the part has",
			messages: `[{"role":"tool","content":[{"type":"image_url","image_url":{"url":"data:AAAA","detail":"low"}},{"image_url":"data:BBBB","type":"image_url"},{"type":"input_audio","input_audio":{"data":"CCCC","format":"wav"}},{"type":"file","file":{"file_data":"DDDD"}},{"type":"new_thing","blob":"EEEE"}]}]`,
			want:     []string{"tool"},
			items:    5,
		},
		{
			why:      "escaped keys are the keys they mean",
			messages: `[{"\u0072ole":"user","cont\u0065nt":"a"}]`,
			want:     []string{"user", "a"},
		},
		{
			why:      "lone surrogates are replaced",
			messages: `[{"role":"user","content":"a\ud800"}]`,
			want:     []string{"user", "a\ufffd"},
		},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			body := withMessages(tc.messages)
			c := scanChat(t, body)
			if diff := cmp.Diff(tc.want, texts(body, c)); diff != "" {
				t.Error(diff)
			}
			if len(c.Items) != tc.items {
				t.Errorf("%d items, want %d", len(c.Items), tc.items)
			}
		})
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	body := withMessages(`[{"role":"user","content":[` +
		`{"type":"image_url","image_url":{"detail":"low","url":"data:AAAA"}},` +
		`{"type":"input_audio","input_audio":{"data":"CCCC","format":"wav"}},` +
		`{"type":"file","file":{"file_id":"f1","file_data":null}},{"type":"image","source":{}}]}]`)
	c := scanChat(t, body)
	at := func(s Span) string { return string(s.Of([]byte(body))) }
	var got []string
	for _, i := range c.Items {
		got = append(got, fmt.Sprint(i.Kind, " ", at(i.Data), " ", at(i.Detail)))
	}
	want := []string{
		fmt.Sprint(Image, ` "data:AAAA" "low"`),
		fmt.Sprint(Audio, ` "CCCC" `),
		fmt.Sprint(File, `  `),
		fmt.Sprint(Image, `  `),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	body := with(`"stream":true,"stream_options":{"include_usage":true,"x":1},"max_completion_tokens":5,"max_tokens":7,"n":3,` +
		`"user":"u1","tags":["a"],"metadata":{"k":"v","tags":["b","c\n"]},"mock_response":"hi","tools":[{"type":"function"}],` +
		`"functions":[],"response_format":{"type":"json_schema","json_schema":{"name":"s"}},"seed":9007199254740993,"temperature":1e0`)
	c := scanChat(t, body)
	at := func(s Span) string { return string(s.Of([]byte(body))) }
	if !c.Stream || !c.StreamOptions.IncludeUsage || at(c.StreamOptions.Span) != `{"include_usage":true,"x":1}` || at(c.StreamOptions.IncludeUsageSpan) != "true" {
		t.Errorf("stream: %+v", c.StreamOptions)
	}
	if c.N != 3 || at(c.User) != `"u1"` || at(c.MockResponse) != `"hi"` {
		t.Errorf("n %d, user %s, mock_response %s", c.N, at(c.User), at(c.MockResponse))
	}
	if limit, ok := c.OutputCap(); limit != 7 || !ok {
		t.Errorf("output cap %d %v, want the larger one", limit, ok)
	}
	var tags, schemas []string
	for _, s := range c.Tags {
		tags = append(tags, at(s))
	}
	for _, s := range c.Schemas {
		schemas = append(schemas, at(s))
	}
	if diff := cmp.Diff([]string{`"a"`, `"b"`, `"c\n"`}, tags); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`[{"type":"function"}]`, `[]`, `{"name":"s"}`}, schemas); diff != "" {
		t.Error(diff)
	}
}

// null is what clients write for "not given".
func TestNullMembers(t *testing.T) {
	t.Parallel()
	body := with(`"stream":null,"stream_options":null,"max_tokens":null,"n":null,"user":null,"tools":null,"metadata":null,"response_format":null,"mock_response":null,"tags":null`)
	c := scanChat(t, body)
	if _, ok := c.OutputCap(); ok || c.Stream || c.N != 1 || c.StreamOptions.Object || !c.User.IsZero() || len(c.Schemas)+len(c.Tags) != 0 {
		t.Errorf("%+v", c)
	}
	if c.MaxTokens.Span.IsZero() || c.StreamOptions.Span.IsZero() {
		t.Error("the nulls must be known, to be replaced")
	}
}

func TestEscapedModelKeyAndName(t *testing.T) {
	t.Parallel()
	c := scanChat(t, `{"\u006dodel":"m\u002do","Model":"other","messages":[{"role":"user"}],"max\u005ftokens":3}`)
	if c.Model != "m-o" || c.MaxTokens.Value != 3 {
		t.Errorf("model %q, cap %d", c.Model, c.MaxTokens.Value)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	cases := []struct{ why, body, field string }{
		{"no JSON", `hello`, ""},
		{"an array", `[]`, ""},
		{"a string", `"x"`, ""},
		{"nothing", ``, ""},
		{"data behind it", b1 + `{}`, ""},
		{"no model", `{"messages":[{"role":"user"}]}`, "model"},
		{"null model", `{"model":null,"messages":[{"role":"user"}]}`, "model"},
		{"empty model", `{"model":"","messages":[{"role":"user"}]}`, "model"},
		{"model is a number", `{"model":1,"messages":[{"role":"user"}]}`, "model"},
		{"only a key in other case", `{"Model":"m","messages":[{"role":"user"}]}`, "model"},
		{"no messages", `{"model":"m"}`, "messages"},
		{"empty messages", withMessages(`[]`), "messages"},
		{"messages is an object", withMessages(`{}`), "messages"},
		{"messages is a string", withMessages(`"Hi"`), "messages"},
		{"a message is a string", withMessages(`[{"role":"user"},"Hi"]`), "messages[1]"},
		{"no role", withMessages(`[{"content":"x"}]`), "messages[0].role"},
		{"role is null", withMessages(`[{"role":null}]`), "messages[0].role"},
		{"role is a number", withMessages(`[{"role":1}]`), "messages[0].role"},
		{"name is a number", withMessages(`[{"role":"user","name":1}]`), "messages[0].name"},
		{"content is a number", withMessages(`[{"role":"user","content":1}]`), "messages[0].content"},
		{"content is an object", withMessages(`[{"role":"user","content":{"type":"text"}}]`), "messages[0].content"},
		{"a part is a string", withMessages(`[{"role":"user","content":["x"]}]`), "messages[0].content[0]"},
		{"a part's text is a number", withMessages(`[{"role":"user","content":[{"text":"a"},{"type":"text","text":1}]}]`), "messages[0].content[1].text"},
		{"a part's type is a number", withMessages(`[{"role":"user","content":[{"type":1}]}]`), "messages[0].content[0].type"},
		{"tool_calls is an object", withMessages(`[{"role":"assistant","tool_calls":{}}]`), "messages[0].tool_calls"},
		{"a call is null", withMessages(`[{"role":"assistant","tool_calls":[null]}]`), "messages[0].tool_calls[0]"},
		{"arguments are an object", withMessages(`[{"role":"assistant","tool_calls":[{"function":{"arguments":{}}}]}]`), "messages[0].tool_calls[0].function.arguments"},
		{"a call's name is a number", withMessages(`[{"role":"assistant","function_call":{"name":1}}]`), "messages[0].function_call.name"},
		{"stream is a string", with(`"stream":"true"`), "stream"},
		{"stream_options is a list", with(`"stream_options":[]`), "stream_options"},
		{"include_usage is a number", with(`"stream_options":{"include_usage":1}`), "stream_options.include_usage"},
		{"max_tokens is a string", with(`"max_tokens":"91"`), "max_tokens"},
		{"max_tokens is zero", with(`"max_tokens":0`), "max_tokens"},
		{"max_tokens is negative", with(`"max_tokens":-1`), "max_tokens"},
		{"max_tokens has a fraction", with(`"max_tokens":1.5`), "max_tokens"},
		{"max_tokens is absurd", with(`"max_tokens":9223372036854775807`), "max_tokens"},
		{"max_tokens leaves int64", with(`"max_tokens":99999999999999999999`), "max_tokens"},
		{"max_completion_tokens is true", with(`"max_completion_tokens":true`), "max_completion_tokens"},
		{"n is zero", with(`"n":0`), "n"},
		{"n is a string", with(`"n":"2"`), "n"},
		{"n is written as a float", with(`"n":1.0`), "n"},
		{"n is over the limit", with(`"n":129`), "n"},
		{"user is a number", with(`"user":7`), "user"},
		{"mock_response is a number", with(`"mock_response":7`), "mock_response"},
		{"tools is an object", with(`"tools":{}`), "tools"},
		{"metadata is a string", with(`"metadata":"x"`), "metadata"},
		{"response_format is a string", with(`"response_format":"json"`), "response_format"},
		{"model twice", with(`"model":"dear"`), "model"},
		{"model twice, once escaped", with(`"\u006dodel":"dear"`), "model"},
		{"any member twice", with(`"seed":1,"seed":2`), "seed"},
		{"messages twice", with(`"messages":[]`), "messages"},
		{"content twice", withMessages(`[{"role":"user","content":"a","content":"b"}]`), "messages[0].content"},
		{"role twice", withMessages(`[{"role":"user","role":"system"}]`), "messages[0].role"},
		{"text twice", withMessages(`[{"role":"user","content":[{"text":"a","text":"b"}]}]`), "messages[0].content[0].text"},
		{"arguments twice", withMessages(`[{"role":"user","function_call":{"arguments":"a","arguments":"b"}}]`), "messages[0].function_call.arguments"},
		{"include_usage twice", with(`"stream_options":{"include_usage":true,"include_usage":false}`), "stream_options.include_usage"},
		{"broken JSON where a type is wrong as well", with(`"n":[1,`), ""},
		{"broken JSON in a member that is not read", with(`"x":{"a":tru}`), ""},
		{"invalid UTF-8", withMessages("[{\"role\":\"user\",\"content\":\"\xff\"}]"), ""},
		{"control character", withMessages("[{\"role\":\"user\",\"content\":\"\x02\"}]"), ""},
		{"too deep", with(`"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64)), ""},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			_, err := ScanChat([]byte(tc.body), Limits{})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%v, want an *Error for %s", err, tc.body)
			}
			if e.Field != tc.field || e.Msg == "" || e.Offset > len(tc.body) {
				t.Errorf("%+v, want field %q", e, tc.field)
			}
			if !strings.HasPrefix(e.Error(), "cannot read ") {
				t.Errorf("message %q", e)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, body string
		lim       Limits
	}{
		{"members", with(`"a":1,"b":2`), Limits{MaxMembers: 3}},
		{"messages", withMessages(`[{"role":"user"},{"role":"user"},{"role":"user"}]`), Limits{MaxMessages: 2}},
		{"texts", withMessages(`[{"role":"user","content":"x"},{"role":"user","content":"x"}]`), Limits{MaxTexts: 3}},
		{"items", withMessages(`[{"role":"user","content":[{"type":"x"},{"type":"x"}]}]`), Limits{MaxTexts: 2}},
		{"n", with(`"n":3`), Limits{MaxN: 2}},
		{"depth", with(`"x":[[1]]`), Limits{MaxDepth: 2}},
	}
	for _, tc := range cases {
		if _, err := ScanChat([]byte(tc.body), tc.lim); err == nil {
			t.Errorf("%s: over the limit and accepted", tc.why)
		}
		if _, err := ScanChat([]byte(tc.body), Limits{}); err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
}

// A pooled Chat must carry nothing over from the last request.
func TestReuse(t *testing.T) {
	t.Parallel()
	full := with(`"stream":true,"stream_options":{"include_usage":true},"n":2,"user":"u","max_tokens":5,"tools":[1],"tags":["a"]`)
	var reused Chat
	for _, body := range []string{full, `{"model":`, b1, full, b1} {
		want, wantErr := ScanChat([]byte(body), Limits{})
		err := reused.Scan([]byte(body), Limits{})
		if (err == nil) != (wantErr == nil) {
			t.Fatal(err, wantErr)
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(want.Texts, reused.Texts); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(summary(want), summary(&reused)); diff != "" {
			t.Error(diff)
		}
	}
}

func summary(c *Chat) string {
	return fmt.Sprint(c.Model, c.ModelSpan, c.Stream, c.StreamOptions, c.MaxTokens, c.MaxCompletionTokens, c.N,
		c.User, c.MockResponse, c.Tags, c.Schemas, c.Messages, c.Texts, c.Items, c.Names)
}

func TestAllocations(t *testing.T) {
	body := []byte(withMessages(`[` + strings.Repeat(`{"role":"user","content":[{"type":"text","text":"Hello!"}]},`, 200) + `{"role":"user"}]`))
	var c Chat
	n := testing.AllocsPerRun(20, func() {
		if err := c.Scan(body, Limits{}); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations with a reused Chat, want none", n)
	}
}
