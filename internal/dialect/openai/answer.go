package openai

import (
	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/money"
)

// Answer is what the gateway reads of an answer that is not a stream.
type Answer struct {
	ID     string
	Model  string
	Report Report
	Usage  money.Usage // where Report is Reported
	Err    *Error      // an error envelope, also under status 200
	// Output are the strings that the model wrote (content, reasoning, refusal,
	// names and arguments of calls), to be counted where Report is not Reported.
	Output []jsonscan.Span
}

// ReadAnswer reads a whole answer. The error says that it is not JSON; the
// answer still has to be passed on and paid for.
func ReadAnswer(body []byte) (Answer, error) {
	var a Answer
	s := jsonscan.NewScanner(body, 0)
	if s.Peek() == jsonscan.Object {
		s.Object()
		for key, ok := s.Key(); ok; key, ok = s.Key() {
			a.member(&s, body, key)
		}
	} else {
		s.Skip()
	}
	s.End()
	return a, s.Err()
}

func (a *Answer) member(s *jsonscan.Scanner, body, key []byte) {
	switch string(key) {
	case "id":
		a.ID = word(s, body)
	case "model":
		a.Model = word(s, body)
	case "usage":
		a.Usage, a.Report = readUsage(s)
	case "error":
		a.Err = readError(s, body)
	case "choices":
		if s.Peek() != jsonscan.Array {
			s.Skip()
			return
		}
		s.Array()
		for s.More() {
			a.choice(s)
		}
	default:
		s.Skip()
	}
}

func (a *Answer) choice(s *jsonscan.Scanner) {
	if s.Peek() != jsonscan.Object {
		s.Skip()
		return
	}
	s.Object()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		switch string(key) {
		case "message":
			a.message(s)
		case "text":
			a.output(s)
		default:
			s.Skip()
		}
	}
}

func (a *Answer) message(s *jsonscan.Scanner) {
	if s.Peek() != jsonscan.Object {
		s.Skip()
		return
	}
	s.Object()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		switch string(key) {
		case "content", "reasoning_content", "reasoning", "refusal":
			a.output(s)
		case "tool_calls":
			if s.Peek() != jsonscan.Array {
				s.Skip()
				continue
			}
			s.Array()
			for s.More() {
				a.call(s)
			}
		case "function_call":
			a.call(s)
		default:
			s.Skip()
		}
	}
}

// call reads a tool call, or the function in it.
func (a *Answer) call(s *jsonscan.Scanner) {
	if s.Peek() != jsonscan.Object {
		s.Skip()
		return
	}
	s.Object()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		switch string(key) {
		case "function", "custom":
			a.call(s)
		case "name", "arguments", "input":
			a.output(s)
		default:
			s.Skip()
		}
	}
}

func (a *Answer) output(s *jsonscan.Scanner) {
	if s.Peek() != jsonscan.String {
		s.Skip()
		return
	}
	a.Output = append(a.Output, s.String())
}

// CountOutput counts the texts of a.Output, one by one, as the estimate of an
// answer without usage.
func (a *Answer) CountOutput(body []byte, count func(text []byte) int) int64 {
	var n int64
	var buf []byte
	for _, span := range a.Output {
		n += int64(count(jsonscan.Unescaped(body, span, &buf)))
	}
	return n
}
