package fakeupstream

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
)

// Answers are appended piece by piece: an encoder per delta would make this program the
// slowest part of a benchmark. Only the model's name comes from outside, and an encoder
// quotes it.

// vocabulary is single tokens of the common encodings, each with its leading space.
var vocabulary = [...]string{" the", " of", " and", " to", " in", " is", " that", " for", " it", " as",
	" was", " with", " be", " by", " on", " not", " he", " his", " but", " at"}

// appendText appends the text of delta i, at least size bytes long.
func appendText(b []byte, i, size int) []byte {
	for start := len(b); ; i++ {
		b = append(b, vocabulary[i%len(vocabulary)]...)
		if len(b)-start >= size {
			return b
		}
	}
}

// appendHead appends the fields every object of one answer shares, up to "choices".
func (c *chat) appendHead(b []byte, object string) []byte {
	model, err := json.Marshal(c.entry.Model)
	if err != nil {
		panic(err) // a string always marshals
	}
	b = append(b, `{"id":"`...)
	b = append(b, c.entry.ID...)
	b = append(b, `","object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, c.entry.Started.Unix(), 10)
	b = append(b, `,"model":`...)
	b = append(b, model...)
	return append(b, `,"system_fingerprint":"fp_fake","choices":[`...)
}

func (c *chat) appendUsage(b []byte) []byte {
	prompt, completion := int64(c.entry.PromptTokens), int64(c.entry.CompletionTokens)
	if c.mode.Fault == FaultNegativeUsage {
		prompt, completion = -prompt, -completion
	}
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, prompt, 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, completion, 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, prompt+completion, 10)
	return append(b, `,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`...)
}

func (c *chat) finishReason() string {
	if c.clipped {
		return "length"
	}
	return "stop"
}

// whole answers without a stream.
func (c *chat) whole(ctx context.Context, w http.ResponseWriter, out io.Writer) {
	b := c.wholeBody()
	half := len(b) / 2
	if c.mode.Fault == FaultInvalidJSON {
		b = b[:half]
	}
	if c.mode.Fault != FaultGzip {
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(b))}
	}
	switch c.mode.Fault {
	case FaultResetMid, FaultStall:
		_, _ = out.Write(b[:half]) // the connection ends in any case
		_ = http.NewResponseController(w).Flush()
		c.breakOff(ctx, w)
		return
	}
	_, err := out.Write(b)
	c.entry.SentTokens = c.entry.CompletionTokens
	c.entry.Complete = err == nil && ctx.Err() == nil
}

func (c *chat) wholeBody() []byte {
	if c.mode.Fault == FaultErrorEnvelope {
		return errorEnvelope(http.StatusInternalServerError, "the fake provider was told to fail with status 200")
	}
	b := c.appendHead(make([]byte, 0, 1024), "chat.completion")
	b = append(b, `{"index":0,"message":{"role":"assistant","content":"`...)
	for i := range c.entry.CompletionTokens {
		b = appendText(b, i, c.mode.DeltaBytes)
	}
	b = append(b, `","refusal":null},"logprobs":null,"finish_reason":"`...)
	b = append(b, c.finishReason()...)
	b = append(b, `"}]`...)
	if c.mode.Fault != FaultNoUsage {
		b = append(b, `,"usage":`...)
		b = c.appendUsage(b)
	}
	return append(b, '}')
}

// breakOff ends an answer in the middle: silently, or with a reset.
func (c *chat) breakOff(ctx context.Context, w http.ResponseWriter) {
	if c.mode.Fault == FaultStall {
		<-ctx.Done()
		return
	}
	reset(w)
}
