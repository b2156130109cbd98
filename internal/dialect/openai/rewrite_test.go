package openai

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
)

func scan(t testing.TB, body string) *jsonscan.Chat {
	t.Helper()
	c, err := jsonscan.ScanChat([]byte(body), jsonscan.Limits{})
	if err != nil {
		t.Fatalf("%v in %.300s", err, body)
	}
	return c
}

func rewrite(t testing.TB, body string, p Plan) string {
	t.Helper()
	pieces, total := Rewrite(nil, []byte(body), scan(t, body), p)
	joined := bytes.Join(pieces, nil)
	if len(joined) != total {
		t.Errorf("total %d, the pieces are %d bytes", total, len(joined))
	}
	// What the upstream gets must be read there as it is read here.
	scan(t, string(joined))
	if !json.Valid(joined) {
		t.Errorf("not valid: %s", joined)
	}
	return string(joined)
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	const (
		messages = `"messages":[{"role":"user"}]`
		plain    = `{"model":"m-o",` + messages + `}`
	)
	cases := []struct {
		why        string
		body, want string
		plan       Plan
	}{
		{"nothing to do", plain, plain, Plan{}},
		{"the same model", plain, plain, Plan{Model: "m-o"}},
		{"another model", plain, `{"model":"gpt-4o",` + messages + `}`, Plan{Model: "gpt-4o"}},
		{"a name that needs quoting", plain, `{"model":"a\"b\\c",` + messages + `}`, Plan{Model: `a"b\c`}},
		{"the model stands last", `{` + messages + `, "model" : "m-o" }`, `{` + messages + `, "model" : "x" }`, Plan{Model: "x"}},
		{"no cap: written at the front", plain, `{"max_tokens":256,"model":"m-o",` + messages + `}`, Plan{OutputCap: 256}},
		{
			"no cap, the upstream's name for it", plain, `{"max_completion_tokens":256,"model":"m-o",` + messages + `}`,
			Plan{OutputCap: 256, CapField: MaxCompletionTokens},
		},
		{"a larger cap is lowered", `{"max_tokens": 999 ,"model":"m",` + messages + `}`, `{"max_tokens": 256 ,"model":"m",` + messages + `}`, Plan{OutputCap: 256}},
		{"a smaller cap stays", `{"max_tokens":16,"model":"m",` + messages + `}`, `{"max_tokens":16,"model":"m",` + messages + `}`, Plan{OutputCap: 256}},
		{"a null cap is replaced", `{"max_tokens":null,"model":"m",` + messages + `}`, `{"max_tokens":256,"model":"m",` + messages + `}`, Plan{OutputCap: 256}},
		{
			"both caps are lowered: upstreams differ in which they obey",
			`{"max_tokens":999,"max_completion_tokens":998,"model":"m",` + messages + `}`,
			`{"max_tokens":256,"max_completion_tokens":256,"model":"m",` + messages + `}`, Plan{OutputCap: 256},
		},
		{
			"the client's name is kept where the upstream has no preference",
			`{"max_completion_tokens":999,"model":"m",` + messages + `}`,
			`{"max_completion_tokens":256,"model":"m",` + messages + `}`, Plan{OutputCap: 256},
		},
		{
			"an upstream that would not see the client's cap gets it under its name",
			`{"max_completion_tokens":999,"model":"m",` + messages + `}`,
			`{"max_tokens":256,"model":"m",` + messages + `}`, Plan{OutputCap: 256, CapField: MaxTokens},
		},
		{
			"the same for a small cap, with more put before it",
			`{"max_tokens":16,"model":"m","stream":true,` + messages + `}`,
			`{"stream_options":{"include_usage":true},"max_completion_tokens":16,"model":"m","stream":true,` + messages + `}`,
			Plan{OutputCap: 256, CapField: MaxCompletionTokens, IncludeUsage: true},
		},
		{
			"null under the upstream's name, a cap under the other",
			`{"max_tokens":null,"max_completion_tokens":16,"model":"m",` + messages + `}`,
			`{"max_tokens":16,"max_completion_tokens":16,"model":"m",` + messages + `}`, Plan{OutputCap: 256, CapField: MaxTokens},
		},
		{"usage is not asked for without a stream", plain, plain, Plan{IncludeUsage: true}},
		{
			"usage asked for", `{"stream":true,"model":"m",` + messages + `}`,
			`{"stream_options":{"include_usage":true},"stream":true,"model":"m",` + messages + `}`, Plan{IncludeUsage: true},
		},
		{
			"usage was asked for", `{"stream":true,"stream_options":{"include_usage":true},"model":"m",` + messages + `}`,
			`{"stream":true,"stream_options":{"include_usage":true},"model":"m",` + messages + `}`, Plan{IncludeUsage: true},
		},
		{
			"usage was refused", `{"stream":true,"stream_options":{"include_usage": false },"model":"m",` + messages + `}`,
			`{"stream":true,"stream_options":{"include_usage": true },"model":"m",` + messages + `}`, Plan{IncludeUsage: true},
		},
		{
			"other stream options stay", `{"stream":true,"stream_options":{ "x":1},"model":"m",` + messages + `}`,
			`{"stream":true,"stream_options":{"include_usage":true, "x":1},"model":"m",` + messages + `}`, Plan{IncludeUsage: true},
		},
		{
			"empty stream options", `{"stream":true,"stream_options":{},"model":"m",` + messages + `}`,
			`{"stream":true,"stream_options":{"include_usage":true},"model":"m",` + messages + `}`, Plan{IncludeUsage: true},
		},
		{
			"null stream options", `{"stream":true,"stream_options":null,"model":"m",` + messages + `}`,
			`{"stream":true,"stream_options":{"include_usage":true},"model":"m",` + messages + `}`, Plan{IncludeUsage: true},
		},
		{
			"everything at once, white space kept",
			" {\n \"model\" : \"m-o\" , \"stream\":true, " + messages + "}\n",
			" {\"max_tokens\":5,\"stream_options\":{\"include_usage\":true},\n \"model\" : \"up\" , \"stream\":true, " + messages + "}\n",
			Plan{Model: "up", OutputCap: 5, IncludeUsage: true},
		},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, rewrite(t, tc.body, tc.plan)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// strange is a body of which every re-encoder would change something.
const strange = `{"temperature":1e0,"seed":9007199254740993,"x_new":{"a":1.0,"b":123456789012345678901234567890,"c":[null,{}]},` +
	`"messages":[{"content":"<b>&'\"\u2028 é \/","role":"user"}],"max_tokens":91,"stream":true,"model":"m-o"}`

func TestUntouchedBytes(t *testing.T) {
	t.Parallel()
	body := []byte(strange)
	pieces, total := Rewrite(nil, body, scan(t, strange), Plan{})
	if len(pieces) != 1 || &pieces[0][0] != &body[0] || total != len(body) {
		t.Error("a request that needs no change must be sent as the slice it came in")
	}
	want := `{"stream_options":{"include_usage":true},` + strange[1:len(strange)-len(`"m-o"}`)] + `"alias"}`
	if diff := cmp.Diff(want, rewrite(t, strange, Plan{Model: "alias", IncludeUsage: true})); diff != "" {
		t.Error(diff)
	}
}

// The image is forwarded as the very memory it was read into.
func TestLargePartsAreNotCopied(t *testing.T) {
	t.Parallel()
	body := []byte(strange)
	pieces, _ := Rewrite(make([][]byte, 0, 8), body, scan(t, strange), Plan{Model: "alias"})
	if len(pieces) != 3 || &pieces[0][0] != &body[0] || &pieces[2][0] != &body[len(body)-1] {
		t.Errorf("%d pieces, want prefix, name, suffix of the body itself", len(pieces))
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add(strange, "x", int64(5), true, true)
	f.Add(`{"max_tokens":7,"model":"m","messages":[{"role":"u"}],"stream":true,"stream_options":{}}`, "", int64(0), false, true)
	f.Fuzz(func(t *testing.T, body, model string, limit int64, completion, usage bool) {
		c, err := jsonscan.ScanChat([]byte(body), jsonscan.Limits{})
		if err != nil {
			return
		}
		limit = min(limit, jsonscan.MaxTokens)
		p := Plan{Model: model, OutputCap: limit, IncludeUsage: usage}
		if completion {
			p.CapField = MaxCompletionTokens
		}
		pieces, total := Rewrite(nil, []byte(body), c, p)
		joined := bytes.Join(pieces, nil)
		// The body may be near a limit of the scanner: only what is read counts.
		after, err := jsonscan.ScanChat(joined, jsonscan.Limits{MaxMembers: 1000, MaxDepth: 65})
		if err != nil || len(joined) != total {
			t.Fatalf("%v, total %d: %q became %q", err, total, body, joined)
		}
		if got, ok := after.OutputCap(); limit > 0 && (!ok || got > limit) {
			t.Fatalf("cap %d %v, held %d: %q became %q", got, ok, limit, body, joined)
		}
		if usage && c.Stream && !after.StreamOptions.IncludeUsage {
			t.Fatalf("usage is not asked for: %q became %q", body, joined)
		}
	})
}
