package load

import (
	"encoding/json"
	"fmt"
	"strings"
)

// serialDigits is the room for a serial in a prompt.
const serialDigits = 12

// serialMark stands where the serial goes.
const serialMark = "@@@@@@@@@@@@"

// Request is a request's bytes, ready to be sent many times. It is never written
// after it was made.
type Request struct {
	before, after []byte // around the serial
	serialised    bool
	stream, usage bool
}

// ChatOptions describe a chat request.
type ChatOptions struct {
	Key       string
	Model     string
	Prompt    string
	MaxTokens int // zero: none
	Stream    bool
	// HideUsage: the stream does not ask for usage.
	HideUsage bool
	// Serial: the prompt begins with a number that differs in each request, so that
	// no two are the same.
	Serial bool
}

// Chat makes a request. It panics on a model or prompt that is not UTF-8.
func Chat(o ChatOptions) *Request {
	prompt := o.Prompt
	if o.Serial {
		prompt = serialMark + " " + prompt
	}
	var body strings.Builder
	fmt.Fprintf(&body, `{"model":%s,"messages":[{"role":"user","content":%s}]`, quote(o.Model), quote(prompt))
	if o.MaxTokens > 0 {
		fmt.Fprintf(&body, `,"max_tokens":%d`, o.MaxTokens)
	}
	if o.Stream {
		body.WriteString(`,"stream":true`)
	}
	if o.Stream && !o.HideUsage {
		body.WriteString(`,"stream_options":{"include_usage":true}`)
	}
	body.WriteString("}")
	wire := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: load\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		o.Key, body.Len(), body.String())
	r := &Request{stream: o.Stream, usage: !o.Stream || !o.HideUsage, serialised: o.Serial}
	before, after, found := strings.Cut(wire, serialMark)
	if !o.Serial || !found {
		before, after = wire, ""
	}
	r.before, r.after = []byte(before), []byte(after)
	return r
}

func quote(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return b
}

// serial writes n into buf; nothing where the request has no place for it.
func (r *Request) serial(buf *[serialDigits]byte, n int64) []byte {
	if !r.serialised {
		return nil
	}
	for i := len(buf) - 1; i >= 0; i-- {
		buf[i] = byte('0' + n%10)
		n /= 10
	}
	return buf[:]
}
