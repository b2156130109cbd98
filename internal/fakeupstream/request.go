package fakeupstream

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
)

// maxBodyBytes is far above any real prompt; it only keeps a mistake from filling memory.
const maxBodyBytes = 64 << 20

// chatRequest is what a provider reads of a body. Decoding checks the whole of it, so
// that a gateway that splices bodies wrongly is found out.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            json.RawMessage `json:"messages"`
	Stream              bool            `json:"stream"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// chat is one request with everything decided.
type chat struct {
	mode         Mode
	entry        Entry
	includeUsage bool
	clipped      bool
}

// bodies lends buffers for request bodies: a benchmark with large prompts would
// otherwise measure this program's garbage collector.
var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

func readChat(w http.ResponseWriter, r *http.Request) (*chatRequest, int, error) {
	lent := bodies.Get().(*[]byte)
	defer bodies.Put(lent)
	body, err := readAll(http.MaxBytesReader(w, r.Body, maxBodyBytes), (*lent)[:0])
	*lent = body
	if err != nil {
		return nil, 0, err
	}
	req := &chatRequest{}
	if err := json.Unmarshal(body, req); err != nil {
		return nil, 0, err
	}
	switch {
	case req.Model == "":
		return nil, 0, errors.New("you must provide a model parameter")
	case len(req.Messages) == 0 || req.Messages[0] != '[':
		return nil, 0, errors.New("messages must be an array")
	case req.cap() < 0:
		return nil, 0, errors.New("max_tokens is too small")
	}
	return req, countWords(req.Messages), nil
}

// readAll is io.ReadAll into a lent buffer.
func readAll(r io.Reader, b []byte) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// cap is the received output cap; 0: none.
func (r *chatRequest) cap() int {
	switch {
	case r.MaxCompletionTokens != nil:
		return *r.MaxCompletionTokens
	case r.MaxTokens != nil:
		return *r.MaxTokens
	}
	return 0
}

// countWords counts runs of bytes that are not white space: cheap, and the same for
// the same body. It is no tokenizer and does not pretend to be.
func countWords(b []byte) int {
	n, inWord := 0, false
	for _, c := range b {
		space := c == ' ' || c == '\n' || c == '\t' || c == '\r'
		if !space && !inWord {
			n++
		}
		inWord = !space
	}
	return n
}

// plan decides the answer: defaults, then what the model's name says, then headers.
func (s *Server) plan(r *http.Request, req *chatRequest, words int) (*chat, error) {
	c := &chat{mode: *s.mode.Load()}
	c.mode.applyModel(req.Model)
	if err := c.mode.applyHeaders(r.Header); err != nil {
		return nil, err
	}
	tokens, limit := c.mode.OutputTokens, req.cap()
	if limit > 0 && tokens > limit {
		tokens, c.clipped = limit, true
	}
	prompt := words
	if c.mode.PromptTokens > 0 {
		prompt = c.mode.PromptTokens
	}
	c.includeUsage = req.StreamOptions != nil && req.StreamOptions.IncludeUsage
	c.entry = Entry{
		Model: req.Model, Stream: req.Stream, MaxTokens: limit, Status: http.StatusOK, Fault: c.mode.Fault,
		RequestID: r.Header.Get("X-Client-Request-Id"), PromptTokens: prompt, CompletionTokens: tokens,
	}
	return c, nil
}
