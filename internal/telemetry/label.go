package telemetry

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// overflowLabel is where series beyond a metric's bound are counted.
	overflowLabel = "other"
	// maxLabelBytes bounds a label value; the sidecar refuses longer ones.
	maxLabelBytes = 128
)

// cleanLabel makes a value that every reader of metrics accepts, and that owns its
// bytes: callers may hand in strings over buffers that are used again.
func cleanLabel(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if len(s) > maxLabelBytes {
		s = s[:maxLabelBytes]
		for !utf8.ValidString(s) { // a rune was cut
			s = s[:len(s)-1]
		}
	}
	if looksLikeKey(s) {
		return "redacted"
	}
	return strings.Clone(s)
}

// looksLikeKey catches a virtual key or a key's hash that someone passed as an alias:
// neither may ever stand in a metric.
func looksLikeKey(s string) bool {
	if strings.HasPrefix(s, "sk-") {
		return true
	}
	if len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// StatusLabel is an HTTP status as a label, without an allocation for real ones.
func StatusLabel(code int) string {
	if code < 100 || code > 599 {
		return overflowLabel
	}
	return statusDigits[(code-100)*3 : (code-100)*3+3]
}

// statusDigits is "100101102…599", cut into by StatusLabel.
var statusDigits = func() string {
	var b strings.Builder
	for code := 100; code <= 599; code++ {
		b.WriteString(strconv.Itoa(code))
	}
	return b.String()
}()
