package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/penstock-gateway/penstock/internal/fakeupstream"
)

// usageMode says whether a client asks for usage in a stream.
type usageMode string

const (
	usageAsked    usageMode = "usage asked for"
	usageRefused  usageMode = "usage refused"
	usageUnspoken usageMode = "usage not mentioned"
)

func (m usageMode) apply(p openai.ChatCompletionNewParams) openai.ChatCompletionNewParams {
	if m != usageUnspoken {
		p.StreamOptions.IncludeUsage = openai.Bool(m == usageAsked)
	}
	return p
}

// streamed is what a client puts together of a stream.
type streamed struct {
	openai.ChatCompletionAccumulator
	chunks, usages int
	resp           *http.Response
}

// stream reads all of a stream.
func (b *bundle) stream(params openai.ChatCompletionNewParams) *streamed {
	b.t.Helper()
	s := &streamed{}
	events := b.client.Chat.Completions.NewStreaming(b.ctx, params, option.WithResponseInto(&s.resp))
	defer events.Close()
	for events.Next() {
		chunk := events.Current()
		if !s.AddChunk(chunk) {
			b.t.Errorf("a chunk of another answer: %s", chunk.RawJSON())
		}
		s.chunks++
		if chunk.JSON.Usage.Valid() {
			s.usages++
		}
	}
	if err := events.Err(); err != nil {
		b.t.Fatal(err)
	}
	return s
}

func TestStream(t *testing.T) {
	t.Parallel()
	for _, mode := range []usageMode{usageAsked, usageRefused, usageUnspoken} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			b := setup(t, map[string]any{"max_budget": 1})
			var resp *http.Response
			whole, err := b.client.Chat.Completions.New(b.ctx, chat("house-name"), option.WithResponseInto(&resp))
			if err != nil {
				t.Fatal(err)
			}
			b.book(resp, whole.Usage)
			got := b.stream(mode.apply(chat("house-name")))
			choice, want := got.Choices[0], whole.Choices[0]
			if choice.Message.Content != want.Message.Content || choice.FinishReason != want.FinishReason || got.Model != whole.Model {
				t.Errorf("the deltas give %+v, the whole answer was %+v", choice, want)
			}
			if asked := mode == usageAsked; (got.usages == 1) != asked || got.usages > 1 || asked && got.Usage.TotalTokens != whole.Usage.TotalTokens {
				t.Errorf("%d chunks with usage, %+v", got.usages, got.Usage)
			}
			if got.resp.Header.Get("x-penstock-response-cost") != "" {
				t.Error("a stream's cost is not known when its headers leave")
			}
			b.book(got.resp, whole.Usage)
			b.audit()
		})
	}
}

func TestLongStream(t *testing.T) {
	t.Parallel()
	const n = 3000
	b := setup(t, map[string]any{"max_budget": 1})
	got := b.stream(usageAsked.apply(chat("fake-out-3000")))
	if words := len(strings.Fields(got.Choices[0].Message.Content)); words != n || got.chunks != n+3 {
		t.Errorf("%d words in %d chunks", words, got.chunks)
	}
	b.book(got.resp, got.Usage)
	b.audit()
}

// TestStreamedTools: calls in fragments come together as the whole answer's.
func TestStreamedTools(t *testing.T) {
	t.Parallel()
	b := setup(t, anything())
	params := chat("played-tools")
	params.Tools = []openai.ChatCompletionToolUnionParam{weather()}
	for _, mode := range []usageMode{usageAsked, usageUnspoken} {
		got := b.stream(mode.apply(params))
		var whole openai.ChatCompletion
		if err := json.Unmarshal(played(b, "tools.json"), &whole); err != nil {
			t.Fatal(err)
		}
		calls, want := got.Choices[0].Message.ToolCalls, whole.Choices[0].Message.ToolCalls
		if len(calls) != len(want) || got.Choices[0].FinishReason != "tool_calls" {
			t.Fatalf("%s: choice %+v", mode, got.Choices[0])
		}
		for i, c := range calls {
			if c.ID != want[i].ID || c.Function.Name != want[i].Function.Name || c.Function.Arguments != want[i].Function.Arguments {
				t.Errorf("%s: call %+v, want %+v", mode, c, want[i])
			}
		}
		b.book(got.resp, whole.Usage)
	}
	b.audit()
}

// TestStreamedUnicode: characters that were cut apart on the wire come out whole.
func TestStreamedUnicode(t *testing.T) {
	t.Parallel()
	b := setup(t, anything())
	got := b.stream(chat("played-unicode"))
	var whole openai.ChatCompletion
	if err := json.Unmarshal(played(b, "unicode.json"), &whole); err != nil {
		t.Fatal(err)
	}
	if text := got.Choices[0].Message.Content; text != whole.Choices[0].Message.Content {
		t.Errorf("got %q, want %q", text, whole.Choices[0].Message.Content)
	}
	b.book(got.resp, whole.Usage)
	b.audit()
}

// TestBrokenStream: a stream that the provider breaks off is an error, never a short
// answer, and what was delivered is booked.
func TestBrokenStream(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]any{"max_budget": 1})
	events := b.client.Chat.Completions.NewStreaming(b.ctx, chat("fake-reset-mid-out-20"))
	defer events.Close()
	deltas := int64(0)
	for events.Next() {
		if events.Current().Choices[0].Delta.Content != "" {
			deltas++
		}
	}
	if err := events.Err(); err == nil || !strings.Contains(err.Error(), "upstream_error") || deltas != 10 {
		t.Errorf("%d deltas, then %v", deltas, err)
	}
	if r := b.rows(1)[0]; r.Status != "upstream_aborted" || r.Output != deltas || !r.Estimated || r.spent() != r.cost() {
		t.Errorf("record %+v", r)
	}
}

// TestAbort: a client that closes a stream pays for what it got, the provider is
// told, and the record says so.
func TestAbort(t *testing.T) {
	t.Parallel()
	b := setup(t, map[string]any{"max_budget": 1})
	var resp *http.Response
	events := b.client.Chat.Completions.NewStreaming(b.ctx, chat("fake-out-1000-pace-20ms"), option.WithResponseInto(&resp))
	for range 4 { // the role and three deltas
		if !events.Next() {
			t.Fatal(events.Err())
		}
	}
	if err := events.Close(); err != nil {
		t.Fatal(err)
	}
	r := b.rows(1)[0]
	if r.RequestID != resp.Header.Get("x-penstock-request-id") || r.Status != "client_closed" || !r.Estimated || r.Output < 3 || r.Output >= 1000 || r.spent() != r.cost() {
		t.Errorf("record %+v", r)
	}
	if e := b.fakeRow(func(e fakeupstream.Entry) bool { return e.RequestID == r.RequestID }); e == nil || e.Complete || e.SentTokens >= 1000 || int64(e.SentTokens) < r.Output {
		t.Errorf("the provider's row %+v has the record %+v", e, r)
	}
}

// TestAbortWhole: the same for a client that waits for a whole answer.
func TestAbortWhole(t *testing.T) {
	t.Parallel()
	const model = "fake-slow-20s-whole"
	b := setup(t, map[string]any{"max_budget": 1})
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	left := make(chan error, 1)
	go func() {
		_, err := b.client.Chat.Completions.New(ctx, chat(model))
		left <- err
	}()
	arrived := func(e fakeupstream.Entry) bool { return e.Model == model && e.Finished.IsZero() }
	b.await(func() bool { return b.fakeRow(arrived) != nil }, "the provider never saw the request")
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if r := b.rows(1)[0]; r.Status != "client_closed" || !r.Estimated || r.Output != 0 || r.spent() != r.cost() {
		t.Errorf("record %+v", r)
	}
	b.await(func() bool { return b.fakeRow(arrived) == nil }, "the provider was not told")
}
