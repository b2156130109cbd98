package gosdk_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/penstock-gateway/penstock/test/stack"
)

// refused is an error as the client must see it, and how many requests it took.
type refused struct {
	status int
	code   string
	param  string
	calls  int64
}

func checkRefused(t *testing.T, b *bundle, err error, want refused) {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Fatalf("not an error of the API: %v", err)
	}
	if got := (refused{e.StatusCode, e.Code, e.Param, b.calls.n.Load()}); got != want {
		t.Errorf("got %+v, want %+v: %s", got, want, e.RawJSON())
	}
	if e.Message == "" || e.Type == "" || strings.Contains(e.RawJSON(), b.key) {
		t.Errorf("an error tells what is wrong and nobody's key: %s", e.RawJSON())
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	key := map[string]any{"models": []string{"fake", "fake-500"}}
	for _, c := range []struct {
		why    string
		model  string
		option func(b *bundle) []option.RequestOption
		want   refused
	}{
		{"an unknown key", "fake", with(option.WithAPIKey("sk-unknown")), refused{401, "invalid_api_key", "", 1}},
		{"a key where nobody looks for it", "fake", func(b *bundle) []option.RequestOption {
			return []option.RequestOption{option.WithHeaderDel("Authorization"), option.WithHeader("x-auth-token", b.key)}
		}, refused{401, "missing_api_key", "", 1}},
		{"a key that is no bearer's", "fake", func(b *bundle) []option.RequestOption {
			return []option.RequestOption{option.WithHeader("Authorization", "Basic "+b.key)}
		}, refused{401, "missing_api_key", "", 1}},
		{"a wrong bearer beside a right key", "fake", func(b *bundle) []option.RequestOption {
			return []option.RequestOption{option.WithAPIKey("sk-unknown"), option.WithHeader("x-api-key", b.key)}
		}, refused{401, "invalid_api_key", "", 1}},
		{"a model that the key's list does not name", "house-name", with(), refused{403, "model_not_allowed", "model", 1}},
		{"messages of the wrong type", "fake", with(option.WithJSONSet("messages", "Hello!")), refused{400, "invalid_body", "messages", 1}},
		{"no messages", "fake", with(option.WithJSONDel("messages")), refused{400, "invalid_body", "messages", 1}},
		{"a cap that is no number", "fake", with(option.WithJSONSet("max_tokens", "many")), refused{400, "invalid_body", "max_tokens", 1}},
		{"a provider's error, tried again as the client does", "fake-500", with(option.WithMaxRetries(1)), refused{500, "fake_error", "", 2}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			b := setup(t, key)
			_, err := b.client.Chat.Completions.New(b.ctx, chat(c.model), c.option(b)...)
			checkRefused(t, b, err, c.want)
		})
	}
	t.Run("an unknown model", func(t *testing.T) {
		t.Parallel()
		b := setup(t, anything())
		_, err := b.client.Chat.Completions.New(b.ctx, chat("nobody-serves-this"))
		checkRefused(t, b, err, refused{404, "model_not_found", "model", 1})
	})
	t.Run("an unknown route", func(t *testing.T) {
		t.Parallel()
		b := setup(t, anything())
		_, err := b.client.Files.Get(b.ctx, "file-1")
		checkRefused(t, b, err, refused{404, "unknown_route", "", 1})
	})
}

func with(o ...option.RequestOption) func(*bundle) []option.RequestOption {
	return func(*bundle) []option.RequestOption { return o }
}

// TestKeyHeaders: the other places of a key work.
func TestKeyHeaders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x-api-key", "api-key", "x-litellm-api-key"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, anything())
			_, err := b.client.Chat.Completions.New(b.ctx, chat("fake"), option.WithHeaderDel("Authorization"), option.WithHeader(name, b.key))
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestBudget: when the money is spent the client is told not to try again, whole or
// streamed, and only the request that was paid for is in the ledger.
func TestBudget(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]any{"max_budget": 0.03})
	params := chat(stack.ThreeCents)
	params.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage(stack.ThreeCentsPrompt)}
	params.MaxTokens = openai.Int(stack.ThreeCentsCap)
	if _, err := b.client.Chat.Completions.New(b.ctx, params); err != nil {
		t.Fatal(err)
	}
	b.calls.n.Store(0)
	_, err := b.client.Chat.Completions.New(b.ctx, params)
	checkRefused(t, b, err, refused{429, "budget_exceeded", "", 1})
	events := b.client.Chat.Completions.NewStreaming(b.ctx, params)
	defer events.Close()
	if events.Next() {
		t.Error("a refused stream began")
	}
	checkRefused(t, b, events.Err(), refused{429, "budget_exceeded", "", 2})
	if all := b.rows(1); len(all) != 1 || all[0].spent() != 30_000_000 {
		t.Errorf("records %+v", all)
	}
}
