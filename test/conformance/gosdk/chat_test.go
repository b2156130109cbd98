package gosdk_test

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/penstock-gateway/penstock/test/conformance"
)

func TestChat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, model, echoed string }{
		{"a model by its own name", "fake", "fake"},
		{"the provider's name for a model comes back, not ours", "house-name", "fake-renamed"},
		{"a wildcard's model", "fake-out-5", "fake-out-5"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			b := setup(t, map[string]any{"max_budget": 1})
			var resp *http.Response
			got, err := b.client.Chat.Completions.New(b.ctx, chat(c.model), option.WithResponseInto(&resp))
			if err != nil {
				t.Fatal(err)
			}
			b.book(resp, got.Usage)
			text := got.Choices[0].Message.Content
			if got.Model != c.echoed || !strings.HasPrefix(got.ID, "chatcmpl-") || got.Choices[0].FinishReason != "stop" {
				t.Errorf("answer %s", got.RawJSON())
			}
			if u := got.Usage; u.PromptTokens <= 0 || int(u.CompletionTokens) != len(strings.Fields(text)) || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
				t.Errorf("usage %+v of %q", u, text)
			}
			if resp.Header.Get("x-penstock-response-cost") == "" || resp.Header.Get("x-penstock-output-cap") == "" {
				t.Errorf("the cost, and the cap that the client did not give, are missing: %v", resp.Header)
			}
			b.audit()
			if r := b.rows(1)[0]; r.UpstreamID != got.ID || r.Stream {
				t.Errorf("record %+v of answer %s", r, got.ID)
			}
		})
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]any{"models": []string{"fake", "house-name"}})
	var ids []string
	pages := b.client.Models.ListAutoPaging(b.ctx)
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	slices.Sort(ids)
	if err := pages.Err(); err != nil || !slices.Equal(ids, []string{"fake", "house-name"}) {
		t.Errorf("models %v, %v", ids, err)
	}
}

// TestRecorded: what a provider sends reaches the client byte for byte, and what the
// client sends reaches the provider.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tools", "unicode"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, anything())
			params := chat("played-" + name)
			params.Messages = append(params.Messages, openai.UserMessage("Grüße aus 東京 👩‍👩‍👧‍👦 \u2028 <&>"))
			params.Tools = []openai.ChatCompletionToolUnionParam{weather()}
			var resp *http.Response
			got, err := b.client.Chat.Completions.New(b.ctx, params, option.WithResponseInto(&resp))
			if err != nil {
				t.Fatal(err)
			}
			if want := played(b, name+".json"); got.RawJSON() != strings.TrimSpace(string(want)) {
				t.Errorf("got %s\nwant %s", got.RawJSON(), want)
			}
			id := b.book(resp, got.Usage)
			sent := *b.calls.sent.Load()
			received := b.fetch(http.MethodGet, os.Getenv(conformance.EnvPlayURL)+"/received/"+id, nil)
			if !bytes.Equal(received, sent) {
				t.Errorf("the provider received %s\nof %s", received, sent)
			}
			b.audit()
		})
	}
}

func weather() openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "weather", Description: openai.String("Wetter in °C"),
		Parameters: openai.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
	})
}

// played is an answer as it was recorded.
func played(b *bundle, file string) []byte {
	return b.fetch(http.MethodGet, os.Getenv(conformance.EnvPlayURL)+"/answers/"+file, nil)
}
