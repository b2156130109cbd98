package openai

import (
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/tokens"
)

func scanShape(t testing.TB, shape jsonscan.Shape, body string) *jsonscan.Request {
	t.Helper()
	r, err := jsonscan.Scan([]byte(body), shape, jsonscan.Limits{})
	if err != nil {
		t.Fatalf("%v in %.300s", err, body)
	}
	return r
}

func TestCountOfShapes(t *testing.T) {
	t.Parallel()
	const hello = `"Hello!"` // 2 tokens
	cases := []struct {
		why     string
		shape   jsonscan.Shape
		members string
		tokens  int64
		exact   bool
	}{
		{"a completion is its text and nothing else", jsonscan.Completions, `"prompt":` + hello, 2, true},
		{"several are their sum", jsonscan.Completions, `"prompt":[` + hello + `,` + hello + `,""]`, 4, true},
		{"token ids are counted already", jsonscan.Completions, `"prompt":[15496,0,11]`, 3, true},
		{"and in arrays", jsonscan.Completions, `"prompt":[[15496,0],[11]]`, 3, true},
		{"a suffix is sent in a form of the provider's", jsonscan.Completions, `"prompt":` + hello + `,"suffix":` + hello, 4, false},
		{"an embedding", jsonscan.Embeddings, `"input":` + hello, 2, true},
		{"embeddings", jsonscan.Embeddings, `"input":[` + hello + `,` + hello + `],"dimensions":256`, 4, true},
		{"embeddings of token ids", jsonscan.Embeddings, `"input":[[1,2],[3,4,5]]`, 5, true},
		{"a special token that was typed is text", jsonscan.Embeddings, `"input":"<|endoftext|>"`, 7, true},
		{"the token counter's prompt", jsonscan.TokenCounter, `"prompt":` + hello, 2, true},
		{"the token counter's messages are a chat", jsonscan.TokenCounter, `"messages":[{"role":"user","content":` + hello + `}]`, 9, true},
		{"system beside them: 3, its role, its text", jsonscan.TokenCounter, `"system":` + hello + `,"messages":[{"role":"user","content":` + hello + `}]`, 15, true},
		{"Gemini's contents, a role that is not said", jsonscan.TokenCounter, `"contents":[{"parts":[{"text":` + hello + `}]}]`, 9, true},
		{"a Responses request in one string is a user's message", jsonscan.Responses, `"input":` + hello, 9, true},
		{"the same as an item", jsonscan.Responses, `"input":[{"role":"user","content":` + hello + `}]`, 9, true},
		{"the same in parts", jsonscan.Responses, `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":` + hello + `}]}]`, 9, true},
		{"instructions are a message", jsonscan.Responses, `"instructions":` + hello + `,"input":` + hello, 15, true},
		{"a call: 3, its role, name 1, arguments 6", jsonscan.Responses, `"input":[{"type":"function_call","name":"f","arguments":"{\"city\":\"Ulm\"}"}]`, 14, true},
		{"what the provider remembers is not here", jsonscan.Responses, `"previous_response_id":"r","input":` + hello, 9, false},
		{"a stored prompt, at its length", jsonscan.Responses, `"prompt":{"id":"p"}`, 10, false},
	}
	o200k := counter(t, tokens.O200kBase)
	var buf []byte
	for _, tc := range cases {
		body := `{"model":"m-o",` + tc.members + `}`
		got := Count([]byte(body), scanShape(t, tc.shape, body), "m-o", o200k, &buf)
		if got.Tokens != tc.tokens || got.Exact != tc.exact {
			t.Errorf("%s: %+v, want %d, exact %v", tc.why, got, tc.tokens, tc.exact)
		}
	}
}

// What is counted by an allowance is never free and never exact.
func TestAllowancesOfResponses(t *testing.T) {
	t.Parallel()
	payload := strings.Repeat("ABCD", 1<<19)
	part := func(part string) string {
		return `"input":[{"role":"user","content":[` + part + `]}]`
	}
	cases := []struct {
		why, members string
		items        int64
	}{
		{"an image at low detail", part(`{"type":"input_image","image_url":"data:image/jpeg;base64,` + payload + `","detail":"low"}`), 85},
		{"an image by its size", part(`{"type":"input_image","detail":"auto","image_url":"` + png(1024, 1024) + `"}`), 765},
		{"an image by reference: the most", part(`{"type":"input_image","file_id":"f"}`), 1445},
		{"a file inline", part(`{"type":"input_file","file_data":"data:application/pdf;base64,` + payload + `"}`), int64(len(payload)+31) * 3 / 4 / 4},
		{"a file by reference", part(`{"type":"input_file","file_url":"https://x"}`), 4096},
		{"audio", part(`{"type":"input_audio","input_audio":{"data":"` + payload + `"}}`), int64(len(payload)+2) * 3 / 4 / 400},
		{"a screenshot", `"input":[{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"` + png(1024, 768) + `"}}]`, 765},
		{"an image that the provider drew", `"input":[{"type":"image_generation_call","result":"` + strings.TrimPrefix(png(512, 512), "data:image/png;base64,") + `"}]`, 255},
		{"encrypted reasoning, as long as its text", `"input":[{"type":"reasoning","summary":[],"encrypted_content":"` + payload[:4000] + `"}]`, 750},
	}
	counted := 0
	count := func(text []byte) int {
		counted += len(text)
		return 1
	}
	for _, tc := range cases {
		body := `{"model":"m-o",` + tc.members + `}`
		var buf []byte
		got := Count([]byte(body), scanShape(t, jsonscan.Responses, body), "gpt-4o", count, &buf)
		if got.Items != tc.items || got.Exact {
			t.Errorf("%s: %+v, want %d for the item", tc.why, got, tc.items)
		}
	}
	if counted > 100 {
		t.Errorf("%d bytes were counted as text", counted)
	}
	body := `{"model":"m-o","input":"a","tools":[{"type":"web_search"}]}`
	var buf []byte
	if got := Count([]byte(body), scanShape(t, jsonscan.Responses, body), "gpt-4o", words, &buf); got.Exact || got.Tokens <= 3+1+1+3 {
		t.Errorf("tools: %+v", got)
	}
}
