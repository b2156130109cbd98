// Package mock answers chat requests inside the process, in OpenAI's shape, for
// tests, demonstrations and measurements without a provider.
package mock

import (
	"strings"

	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/money"
)

// DefaultText is what the built-in mock provider says.
const DefaultText = "This is a mock answer. No provider was called, and the words you read are always the same."

// Request is what the mock is asked.
type Request struct {
	Head         openai.Head
	Text         string // the answer's text, "" is DefaultText
	PromptTokens int64
	N            int64                 // choices, 0 is 1
	MaxTokens    int64                 // output cap for each choice, 0 is none
	IncludeUsage bool                  // end a stream with the usage event
	Count        func(text []byte) int // counts tokens; nil counts words
}

// Reply is an answer that has been worked out. It is read either by
// AppendCompletion or, event by event, by AppendEvent. It must not be used by
// two goroutines at once.
type Reply struct {
	Usage  money.Usage // what the answer reports: all choices together
	Text   string      // cut to the cap, the same for each choice
	Finish string      // "stop", or "length" where it was cut

	req    Request
	choice int64
	word   int // start in Text of the next delta
	stage  stage
}

// stage is the part of a stream that comes next.
type stage uint8

const (
	stageRole stage = iota
	stageWords
	stageFinish
	stageUsage
	stageDone
	stageEnd
)

// NewReply works the answer out: the text is cut at the last word that fits the
// cap, and the usage is the count of what is left.
func NewReply(req Request) *Reply {
	if req.Text == "" {
		req.Text = DefaultText
	}
	if req.N == 0 {
		req.N = 1
	}
	if req.Count == nil {
		req.Count = countWords
	}
	r := &Reply{req: req, Text: req.Text, Finish: "stop"}
	tokens := int64(req.Count([]byte(r.Text)))
	if req.MaxTokens > 0 && tokens > req.MaxTokens {
		r.Text, tokens = cut(req.Text, req.MaxTokens, req.Count)
		r.Finish = "length"
	}
	r.Usage = money.Usage{Input: req.PromptTokens, Output: tokens * req.N}
	return r
}

// cut finds the longest run of whole words that fits. A word is at least one
// token, so that no more than limit words need to be tried, and the search
// halves them.
func cut(text string, limit int64, count func([]byte) int) (short string, tokens int64) {
	var ends []int
	for at := 0; at < len(text) && int64(len(ends)) < limit; {
		at = wordEnd(text, at)
		ends = append(ends, at)
	}
	low, high := 0, len(ends) // ends[:low] fits, ends[:high+1] does not
	for low < high {
		middle := (low + high + 1) / 2
		n := int64(count([]byte(text[:ends[middle-1]])))
		if n > limit {
			high = middle - 1
			continue
		}
		low, tokens = middle, n
	}
	if low == 0 {
		return "", 0
	}
	return text[:ends[low-1]], tokens
}

// wordEnd is the end of the word that starts at from, the space before it
// included, as tokens have it.
func wordEnd(text string, from int) int {
	rest := text[from+1:]
	if i := strings.IndexByte(rest, ' '); i >= 0 {
		return from + 1 + i
	}
	return len(text)
}

func countWords(text []byte) int {
	s, n := string(text), 0
	for at := 0; at < len(s); n++ {
		at = wordEnd(s, at)
	}
	return n
}
