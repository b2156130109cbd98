package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/jsonscan"
)

// admission is what a gateway does with a body before it dispatches it: scan, validate,
// unescape, count.
type admission struct {
	elapsed     []time.Duration
	bytes       int // of the mean body
	allocations float64
}

// chatBody is a chat request with one long message, as a client's JSON library writes it.
func chatBody(prompt string) ([]byte, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Model     string    `json:"model"`
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"max_tokens"`
		Stream    bool      `json:"stream"`
	}{"gpt-4o", []message{{"system", "You are a helpful assistant."}, {"user", prompt}}, 16, true})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// admit admits bodies with the largest prose prompts, each in its turn, as often as there
// are rounds, with memory that is used again as the gateway does.
func (r *runner) admit(ctx context.Context) error {
	var bodies [][]byte
	total := 0
	for _, s := range r.corpus.sets {
		if s.kind != kindProse || s.tokens != r.plan.largest() {
			continue
		}
		for _, t := range s.texts {
			b, err := chatBody(t.str)
			if err != nil {
				return err
			}
			bodies = append(bodies, b)
			total += len(b)
		}
	}
	r.admission.bytes = total / len(bodies)
	c, err := warmed()
	if err != nil {
		return err
	}
	count := func(text []byte) int { return c.Count(encoding, text) }
	var chat jsonscan.Chat
	buf := make([]byte, 0, 2*r.admission.bytes)
	one := func(body []byte) error {
		if err := chat.Scan(body, jsonscan.Limits{}); err != nil {
			return err
		}
		if p := openai.CountPrompt(body, &chat, "gpt-4o", count, &buf); p.Tokens <= int64(r.plan.largest()) {
			return fmt.Errorf("a body with a prompt of %d tokens was counted as %d", r.plan.largest(), p.Tokens)
		}
		return nil
	}
	r.admission.elapsed = make([]time.Duration, 0, r.o.rounds*len(bodies))
	for round := range r.o.rounds + 1 {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, body := range bodies {
			start := time.Now()
			if err := one(body); err != nil {
				return err
			}
			if round > 0 { // the first one warms up
				r.admission.elapsed = append(r.admission.elapsed, time.Since(start))
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		runtime.ReadMemStats(&after)
		r.admission.allocations = float64(after.Mallocs-before.Mallocs) / float64(len(bodies))
	}
	return nil
}
