package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
)

// Error is an error in OpenAI's shape. Param and Code are null on the wire when
// they are empty.
type Error struct {
	Status  int // HTTP status
	Message string
	Type    string
	Param   string
	Code    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, e.Type, e.Message)
}

type errorBody struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

// Body is the error as a JSON text.
func (e *Error) Body() []byte {
	var body errorBody
	body.Error.Message, body.Error.Type = e.Message, e.Type
	if e.Param != "" {
		body.Error.Param = &e.Param
	}
	if e.Code != "" {
		body.Error.Code = &e.Code
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		panic("BUG: cannot encode an error body: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Event is the error as an event of a stream.
func (e *Error) Event() []byte {
	return append(append([]byte("data: "), e.Body()...), "\n\n"...)
}

// ReadError finds an error envelope at the top level of a JSON text: an object
// or a string under "error" that is not null. Its Status is
// the one that the error would have had outside a stream.
func ReadError(body []byte) (*Error, bool) {
	s := jsonscan.NewScanner(body, 0)
	if s.Peek() != jsonscan.Object {
		return nil, false
	}
	var found *Error
	s.Object()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		if string(key) == "error" {
			found = readError(&s, body)
			continue
		}
		s.Skip()
	}
	if s.Err() != nil || found == nil {
		return nil, false
	}
	return found, true
}

// readError takes the value of "error"; nil where it says that there is none.
func readError(s *jsonscan.Scanner, body []byte) *Error {
	var e Error
	switch s.Peek() {
	case jsonscan.String:
		e.Message = text(body, s.String())
	case jsonscan.Object:
		s.Object()
		for key, ok := s.Key(); ok; key, ok = s.Key() {
			switch string(key) {
			case "message":
				e.Message = word(s, body)
			case "type":
				e.Type = word(s, body)
			case "param":
				e.Param = word(s, body)
			case "code":
				e.Code = word(s, body)
			default:
				s.Skip()
			}
		}
	default:
		s.Skip()
		return nil
	}
	e.Status = statusOf(e.Type, e.Code)
	return &e
}

// word takes a string, or a number as it is written (some providers put the
// HTTP status into code); anything else is empty.
func word(s *jsonscan.Scanner, body []byte) string {
	switch s.Peek() {
	case jsonscan.String:
		return text(body, s.String())
	case jsonscan.Number:
		span := s.Skip()
		return string(span.Of(body))
	}
	s.Skip()
	return ""
}

func text(body []byte, span jsonscan.Span) string {
	if span.IsZero() {
		return ""
	}
	return string(jsonscan.AppendUnescaped(nil, body, span))
}

// statusOf is the HTTP status that an error would have had outside a stream, by
// its code first and its type second; 502 where neither says.
func statusOf(kind, code string) int {
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n <= 599 {
		return n
	}
	for _, word := range [...]string{code, kind} {
		switch word {
		case "insufficient_quota", "rate_limit_exceeded", "rate_limit_error", "tokens", "requests", "too_many_requests":
			return http.StatusTooManyRequests
		case "invalid_api_key", "authentication_error":
			return http.StatusUnauthorized
		case "permission_error", "permission_denied":
			return http.StatusForbidden
		case "model_not_found", "not_found_error":
			return http.StatusNotFound
		case "context_length_exceeded", "content_filter", "content_policy_violation", "invalid_request_error":
			return http.StatusBadRequest
		case "overloaded_error", "overloaded", "service_unavailable":
			return http.StatusServiceUnavailable
		case "timeout", "timeout_error":
			return http.StatusGatewayTimeout
		case "server_error", "internal_server_error", "api_error":
			return http.StatusInternalServerError
		}
	}
	return http.StatusBadGateway
}
