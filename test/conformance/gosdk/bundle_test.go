package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/penstock-gateway/penstock/internal/fakeupstream"
	"github.com/penstock-gateway/penstock/test/conformance"
	"github.com/penstock-gateway/penstock/test/stack"
)

// patience bounds everything that is waited for.
const patience = 30 * time.Second

// bundle is a key of its own, a client with it, and what that client was told.
type bundle struct {
	t      *testing.T
	ctx    context.Context
	key    string
	calls  *counter
	client openai.Client
	told   map[string]tokens // by request id
}

// tokens are a request's in the ledger.
type tokens struct {
	input, output int64
	status        string
}

// counter is a transport that counts what really leaves, and keeps the last body.
type counter struct {
	http.Transport
	n    atomic.Int64
	sent atomic.Pointer[[]byte]
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		c.sent.Store(&text)
	}
	return c.Transport.RoundTrip(r)
}

// anything makes a key without limits.
func anything() map[string]any { return map[string]any{} }

// setup makes a key with the given fields of /key/generate.
func setup(t *testing.T, fields map[string]any) *bundle {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	b := &bundle{t: t, ctx: ctx, calls: &counter{}, told: map[string]tokens{}}
	t.Cleanup(b.calls.CloseIdleConnections)
	var made struct{ Key string }
	b.admin(http.MethodPost, "/key/generate", fields, &made)
	b.key = made.Key
	b.client = b.clientWith(option.WithAPIKey(b.key))
	return b
}

// clientWith is a client of this bundle with other options.
func (b *bundle) clientWith(o ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(os.Getenv(conformance.EnvBaseURL)), option.WithHTTPClient(&http.Client{Transport: b.calls}),
	}, o...)...)
}

// admin calls the admin API.
func (b *bundle) admin(method, path string, in, out any) {
	b.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	text := b.fetch(method, os.Getenv(conformance.EnvAdminURL)+path, body)
	if err := json.Unmarshal(text, out); err != nil {
		b.t.Fatalf("%s answers %s: %v", path, text, err)
	}
}

// fetch has to be answered 200.
func (b *bundle) fetch(method, address string, body []byte) []byte {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.ctx, method, address, bytes.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv(conformance.EnvAdminKey))
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.calls.Transport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("%s answers %s: %s, %v", address, resp.Status, text, err)
	}
	return text
}

// chat is the body of most requests here.
func chat(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("How are you?")},
	}
}

// book notes what the ledger has to show for an answer.
func (b *bundle) book(resp *http.Response, u openai.CompletionUsage) string {
	b.t.Helper()
	id := resp.Header.Get("x-penstock-request-id")
	if id == "" {
		b.t.Fatal("an answer without a request id")
	}
	b.told[id] = tokens{u.PromptTokens, u.CompletionTokens, "success"}
	return id
}

// row is what is read of /spend/logs.
type row struct {
	RequestID  string  `json:"request_id"`
	Spend      float64 `json:"spend"`
	Input      int64   `json:"prompt_tokens"`
	Output     int64   `json:"completion_tokens"`
	Status     string  `json:"status"`
	Stream     bool    `json:"stream"`
	Estimated  bool    `json:"estimated"`
	UpstreamID string  `json:"upstream_id"`
}

// cost is a row's price in nano-dollars at the fake models' prices.
func (r row) cost() int64 { return r.Input*stack.FakeInput + r.Output*stack.FakeOutput }

func (r row) spent() int64 { return int64(math.Round(r.Spend * 1e9)) }

// await asks again and again until done.
func (b *bundle) await(done func() bool, complaint string) {
	b.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-b.ctx.Done():
			b.t.Fatal(complaint)
		case <-tick.C:
		}
	}
}

// rows waits until the key has n records, and returns all.
func (b *bundle) rows(n int) (all []row) {
	b.t.Helper()
	b.await(func() bool {
		all = nil
		b.admin(http.MethodGet, "/spend/logs?api_key="+url.QueryEscape(b.key), nil, &all)
		return len(all) >= n
	}, fmt.Sprintf("%d records never came", n))
	return all
}

// fakeRow is the first request at the fake upstream that matches; nil: none.
func (b *bundle) fakeRow(match func(fakeupstream.Entry) bool) *fakeupstream.Entry {
	b.t.Helper()
	for line := range bytes.Lines(b.fetch(http.MethodGet, os.Getenv(conformance.EnvFakeURL)+"/ledger", nil)) {
		var e fakeupstream.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			b.t.Fatal(err)
		}
		if match(e) {
			return &e
		}
	}
	return nil
}

// audit compares /spend/logs with what the client was told: the same requests, the
// same tokens, and their price.
func (b *bundle) audit() {
	b.t.Helper()
	all := b.rows(len(b.told))
	if len(all) != len(b.told) {
		b.t.Errorf("%d records of %d requests", len(all), len(b.told))
	}
	for _, r := range all {
		want, known := b.told[r.RequestID]
		if got := (tokens{r.Input, r.Output, r.Status}); !known || got != want || r.spent() != r.cost() || r.Estimated {
			b.t.Errorf("record %+v, the client was told %+v", r, want)
		}
	}
}
