package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of a request.
const (
	maxBody  = 1 << 20
	maxDepth = 64  // databases limit the depth of JSON, and nobody nests deeper
	maxText  = 512 // names and ids
)

// object is a JSON object, field by field as it was written.
type object struct {
	names  []string // in order
	fields map[string]json.RawMessage
}

// readObject reads a request's body.
func readObject(w http.ResponseWriter, r *http.Request) (object, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return object{}, &apiError{status: http.StatusRequestEntityTooLarge, kind: "request_too_large",
			msg: "the body is larger than " + strconv.Itoa(maxBody) + " bytes"}
	case err != nil:
		return object{}, badRequest("cannot read the body")
	}
	return parseObject(body)
}

// parseObject splits a JSON object into its fields. A field that stands twice is
// refused, because it is not known which one was meant.
func parseObject(body []byte) (object, error) {
	if !utf8.Valid(body) {
		return object{}, badRequest("the body is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return object{}, badRequest("the body must be a JSON object")
	}
	obj := object{fields: map[string]json.RawMessage{}}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return object{}, badRequest("the body is not valid JSON")
		}
		if _, twice := obj.fields[name]; twice {
			return object{}, badField(printable(name), "is given twice")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return object{}, badRequest("the body is not valid JSON")
		}
		if loneSurrogate(value) {
			return object{}, badField(printable(name), "has half of a surrogate pair (such as \\ud800), which is no character")
		}
		obj.names = append(obj.names, name)
		obj.fields[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return object{}, badRequest("the body is not valid JSON")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return object{}, badRequest("something follows the JSON object")
	}
	if loneSurrogate(body) {
		return object{}, badRequest("the name of a field has half of a surrogate pair, which is no character")
	}
	return obj, nil
}

// loneSurrogate says whether valid JSON has an escape of half a surrogate pair. The
// decoder would put another character in its place.
func loneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		unit, ok := escapedUnit(raw[i:])
		if !ok {
			continue
		}
		i += 4
		if !utf16.IsSurrogate(unit) {
			continue
		}
		var second rune
		if i+1 < len(raw) && raw[i+1] == '\\' {
			second, _ = escapedUnit(raw[i+2:])
		}
		if utf16.DecodeRune(unit, second) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// escapedUnit reads "uXXXX", which follows a backslash.
func escapedUnit(raw []byte) (rune, bool) {
	if len(raw) < 5 || raw[0] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(raw[1:5]), 16, 16)
	return rune(v), err == nil
}

// decodeValue reads a field of any shape, and refuses what a database would not keep
// as it is: NUL, numbers beyond float64, nesting without end.
func decodeValue(field string, raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, badField(field, "is not valid JSON")
	}
	return v, checkValue(field, v, maxDepth)
}

func checkValue(field string, v any, depth int) error {
	if depth == 0 {
		return badField(field, "is nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return badField(field, "must not contain NUL")
		}
	case json.Number:
		if f, err := v.Float64(); err != nil || math.IsInf(f, 0) {
			return badField(field, "contains a number that is too large")
		}
	case []any:
		for _, e := range v {
			if err := checkValue(field, e, depth-1); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, e := range v {
			if strings.ContainsRune(name, 0) {
				return badField(field, "must not contain NUL")
			}
			if err := checkValue(field, e, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// cleanText says whether s can stand in a header, a log line and a label.
func cleanText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// printable makes a caller's text safe and short enough for a message.
func printable(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
