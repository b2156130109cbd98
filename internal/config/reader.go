package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/spelling"
)

// envPrefix marks a value that stands in the environment.
const envPrefix = "os.environ/"

// maxDuration bounds every duration; more is a wrong unit.
const maxDuration = 30 * 24 * time.Hour

// reader reads typed values out of nodes and gathers what is wrong or not acted on.
type reader struct {
	file        string
	getenv      func(string) (string, bool)
	problems    []*Problem
	unsupported map[string]bool   // LiteLLM's keys that we do not act on
	unknown     map[string]string // keys that LiteLLM does not have either, and what was likely meant
}

func (r *reader) fail(at position, path, format string, args ...any) {
	r.problems = append(r.problems, &Problem{File: r.file, position: at, Path: path, Text: fmt.Sprintf(format, args...)})
}

// handlers act on the keys of a mapping.
type handlers map[string]func(n *node, path string)

// keys are the other keys of a mapping that LiteLLM has.
type keys map[string]bool

// likely is the key that a mistyped one was meant for; "" where nothing is near.
func likely(typed string, act handlers, known keys) string {
	names := append(slices.Collect(maps.Keys(act)), slices.Collect(maps.Keys(known))...)
	return spelling.Nearest(typed, names)
}

// meant is the question that an error or a warning ends in.
func meant(typed, likely string) string {
	return fmt.Sprintf("is '%s' meant for '%s'?", typed, likely)
}

// missing reports a key that must be there, at the one that may have been meant for it.
func (r *reader) missing(n *node, path, key, text string) {
	for _, f := range n.fields {
		if spelling.Nearest(f.key, []string{key}) != "" {
			r.fail(f.at, child(path, key), "%s: %s", text, meant(f.key, key))
			return
		}
	}
	r.fail(n.at, child(path, key), "%s", text)
}

// section hands each field of a mapping to its handler and notes the others. A field
// that is null is absent.
func (r *reader) section(n *node, path string, act handlers, known keys) {
	if n == nil || !r.is(n, path, kindMapping) {
		return
	}
	for _, f := range n.fields {
		at := child(path, f.key)
		switch handle := act[f.key]; {
		case f.value.kind == kindNull:
		case handle != nil:
			handle(f.value, at)
		case known[f.key]:
			r.unsupported[generic(at)] = true
		default:
			r.unknown[generic(at)] = likely(f.key, act, known)
		}
	}
}

// generic drops the indexes of a path: a key that a hundred models have is named once.
func generic(path string) string {
	var b strings.Builder
	for {
		open := strings.IndexByte(path, '[')
		end := strings.IndexByte(path, ']')
		if open < 0 || end < open {
			return b.String() + path
		}
		b.WriteString(path[:open] + "[]")
		path = path[end+1:]
	}
}

func (r *reader) is(n *node, path string, want kind) bool {
	if n.kind == want {
		return true
	}
	r.fail(n.at, path, "it must be %s, not %s", want, n.kind)
	return false
}

// text reads a scalar, from the environment where it says so. It is false where there
// is none, which was reported.
func (r *reader) text(n *node, path string) (string, bool) {
	if !r.is(n, path, kindScalar) {
		return "", false
	}
	name, ok := strings.CutPrefix(n.text, envPrefix)
	if !ok {
		return n.text, true
	}
	value, ok := r.getenv(name)
	if !ok {
		r.fail(n.at, path, "the environment variable %s is not set", name)
		return "", false
	}
	return trimNewline(value), true
}

// trimNewline drops the one newline that a mounted secret ends in.
func trimNewline(s string) string {
	s = strings.TrimSuffix(s, "\n")
	return strings.TrimSuffix(s, "\r")
}

// name reads a text that may not be empty and has no control characters.
func (r *reader) name(n *node, path string) string {
	s, ok := r.text(n, path)
	if !ok {
		return ""
	}
	if s == "" || s != strings.TrimSpace(s) || hasControl(s) {
		r.fail(n.at, path, "%s is empty, or has control characters or spaces at its ends", n.shown())
		return ""
	}
	return s
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// secret reads a credential: used as it stands, with one newline at its end dropped and
// nothing expanded. Its errors never show it.
func (r *reader) secret(n *node, path string) Secret {
	s, ok := r.text(n, path)
	if !ok {
		return Secret{}
	}
	s = trimNewline(s)
	if hasControl(s) {
		r.fail(n.at, path, "it has control characters, which no header can carry")
		return Secret{}
	}
	return NewSecret(s)
}

func (r *reader) boolean(n *node, path string) bool {
	s, ok := r.text(n, path)
	if !ok {
		return false
	}
	switch strings.ToLower(s) {
	case "true", "yes", "on":
		return true
	case "false", "no", "off":
		return false
	}
	r.fail(n.at, path, "%s is not true or false", n.shown())
	return false
}

// integer reads a whole number within bounds.
func (r *reader) integer(n *node, path string, least, most int64) int64 {
	s, ok := r.text(n, path)
	if !ok {
		return 0
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < least || v > most {
		r.fail(n.at, path, "%s is not a whole number from %d to %d", n.shown(), least, most)
		return 0
	}
	return v
}

// decimal reads a number that is not negative, times 10^decimals.
func (r *reader) decimal(n *node, path string, decimals int) (int64, bool) {
	s, ok := r.text(n, path)
	if !ok {
		return 0, false
	}
	v, err := money.ParseDecimal(s, decimals)
	if err != nil {
		r.fail(n.at, path, "%s is not a number of 0 or more: %s", n.shown(), err)
		return 0, false
	}
	return v, true
}

// seconds reads a LiteLLM timeout: a number of seconds above zero.
func (r *reader) seconds(n *node, path string) time.Duration {
	nanoseconds, ok := r.decimal(n, path, 9)
	if !ok {
		return 0
	}
	d := time.Duration(nanoseconds)
	if d <= 0 || d > maxDuration {
		r.fail(n.at, path, "%s is not a number of seconds above 0 and up to %d", n.shown(), int64(maxDuration/time.Second))
		return 0
	}
	return d
}

// duration reads one of our own durations, which must name its unit; least is the
// smallest allowed.
func (r *reader) duration(n *node, path string, least time.Duration) time.Duration {
	s, ok := r.text(n, path)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || s == "0" || d < least || d > maxDuration {
		r.fail(n.at, path, "%s is not a duration with a unit (such as 30s or 5m) from %s to %s", n.shown(), least, maxDuration)
		return 0
	}
	return d
}

// price reads dollars per token as pico-dollars.
func (r *reader) price(n *node, path string) (int64, bool) {
	s, ok := r.text(n, path)
	if !ok {
		return 0, false
	}
	pico, err := money.ParsePico(s)
	if err != nil && s != n.text {
		r.fail(n.at, path, "%s is not a price in dollars per token", n.shown())
		return 0, false
	}
	if err != nil {
		r.fail(n.at, path, "%s", err)
		return 0, false
	}
	return pico, true
}

// shown quotes a value for an error, shortened: as the file has it, so that the
// environment's values stay out of logs.
func (n *node) shown() string {
	const most = 60
	if len(n.text) > most {
		return strconv.Quote(n.text[:most]) + "…"
	}
	return strconv.Quote(n.text)
}
