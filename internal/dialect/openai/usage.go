package openai

import (
	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/money"
)

// maxCount is the largest token count that is believed of an upstream.
const maxCount = 1_000_000_000

// Report is what an upstream said about the tokens it used.
type Report uint8

// Rejected means that there was a usage object and that its figures cannot be
// true: negative, fractional, not numbers, absurdly large, or a part larger
// than its whole. It is booked by a local count instead, and counted.
const (
	NoReport Report = iota
	Reported
	Rejected
)

// count is one figure of a usage object.
type count struct {
	value int64
	given bool
}

// readUsage takes the value of a usage member.
func readUsage(s *jsonscan.Scanner) (money.Usage, Report) {
	switch s.Peek() {
	case jsonscan.Object:
	case jsonscan.Null:
		s.Skip()
		return money.Usage{}, NoReport
	default:
		s.Skip()
		return money.Usage{}, Rejected
	}
	var prompt, completion, total, cached, reasoning count
	good := true
	s.Object()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		switch string(key) {
		case "prompt_tokens":
			good = readCount(s, &prompt) && good
		case "completion_tokens":
			good = readCount(s, &completion) && good
		case "total_tokens":
			good = readCount(s, &total) && good
		case "prompt_tokens_details":
			good = readDetail(s, "cached_tokens", &cached) && good
		case "completion_tokens_details":
			good = readDetail(s, "reasoning_tokens", &reasoning) && good
		default:
			s.Skip()
		}
	}
	// An embedding has no completion; its total then is its prompt.
	complete := prompt.given && (completion.given || total.given && total.value == prompt.value)
	if !good || !complete || cached.value > prompt.value || reasoning.value > completion.value {
		return money.Usage{}, Rejected
	}
	return money.Usage{
		Input:     prompt.value,
		Output:    completion.value,
		Cached:    cached.value,
		Reasoning: reasoning.value,
	}, Reported
}

func readDetail(s *jsonscan.Scanner, member string, c *count) (good bool) {
	if s.Peek() != jsonscan.Object {
		return s.Skip().Len() == len("null")
	}
	good = true
	s.Object()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		if string(key) != member {
			s.Skip()
			continue
		}
		good = readCount(s, c) && good
	}
	return good
}

// readCount takes one figure; null is as good as absent.
func readCount(s *jsonscan.Scanner, c *count) (good bool) {
	switch s.Peek() {
	case jsonscan.Null:
		s.Skip()
		return true
	case jsonscan.Number:
		n, ok := s.Int()
		*c = count{n, true}
		return ok && 0 <= n && n <= maxCount
	}
	s.Skip()
	return false
}
