package fakeupstream

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setting is one knob of a Mode, the same for flags, headers, model names and /mode.
type Setting struct {
	Name  string // as a flag, a JSON field of POST /mode, and after X-Fake- in a header
	Word  string // in a model name: fake-WORD-VALUE; empty: the value stands alone
	Help  string
	apply func(m *Mode, value string) error
	show  func(m *Mode) string
}

// Settings lists every knob.
func Settings() []Setting { return slices.Clone(settings) }

// settings and faults are read for each request that names one; never written.
var (
	settings = declareSettings()
	faults   = []Fault{FaultReset, FaultResetMid, FaultNoDone, FaultNoUsage, FaultSilent, FaultStall,
		FaultInvalidJSON, FaultErrorEnvelope, FaultGzip, FaultNegativeUsage}
)

func declareSettings() []Setting {
	return []Setting{
		{"output-tokens", "out", "deltas per answer, one token each",
			number(func(m *Mode) *int { return &m.OutputTokens }, 1, 1<<20), showNumber(func(m *Mode) *int { return &m.OutputTokens })},
		{"delta-bytes", "size", "least bytes of text per delta",
			number(func(m *Mode) *int { return &m.DeltaBytes }, 0, 1<<20), showNumber(func(m *Mode) *int { return &m.DeltaBytes })},
		{"prompt-tokens", "in", "prompt tokens reported in usage (0: count the body's words)",
			number(func(m *Mode) *int { return &m.PromptTokens }, 0, 1<<30), showNumber(func(m *Mode) *int { return &m.PromptTokens })},
		{"delay", "slow", "wait before the response's headers",
			span(func(m *Mode) *time.Duration { return &m.Delay }), showSpan(func(m *Mode) *time.Duration { return &m.Delay })},
		{"pace", "pace", "wait before each delta of a stream",
			span(func(m *Mode) *time.Duration { return &m.Pace }), showSpan(func(m *Mode) *time.Duration { return &m.Pace })},
		{"status", "status", "answer with this error status, 400 to 599 (0: serve)",
			applyStatus, showNumber(func(m *Mode) *int { return &m.Status })},
		{"fault", "", "misbehave: " + strings.Join(faultNames(), ", "),
			applyFault, func(m *Mode) string { return string(m.Fault) }},
	}
}

// Set changes one knob by its name.
func (m *Mode) Set(name, value string) error {
	for _, s := range settings {
		if s.Name == name {
			if err := s.apply(m, value); err != nil {
				return fmt.Errorf("cannot set %s: %w", name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("cannot set %s: there is no such setting", name)
}

// Show tells every knob's value by its name, in the form that Set takes.
func (m *Mode) Show() map[string]string {
	values := map[string]string{}
	for _, s := range settings {
		values[s.Name] = s.show(m)
	}
	return values
}

func faultNames() []string {
	names := make([]string, 0, len(faults))
	for _, f := range faults {
		names = append(names, string(f))
	}
	return names
}

func number(field func(*Mode) *int, low, high int) func(*Mode, string) error {
	return func(m *Mode, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < low || n > high {
			return fmt.Errorf("%q is not a number from %d to %d", value, low, high)
		}
		*field(m) = n
		return nil
	}
}

func showNumber(field func(*Mode) *int) func(*Mode) string {
	return func(m *Mode) string { return strconv.Itoa(*field(m)) }
}

func span(field func(*Mode) *time.Duration) func(*Mode, string) error {
	return func(m *Mode, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 || d > time.Hour {
			return fmt.Errorf("%q is not a duration from 0s to 1h", value)
		}
		*field(m) = d
		return nil
	}
}

func showSpan(field func(*Mode) *time.Duration) func(*Mode) string {
	return func(m *Mode) string { return field(m).String() }
}

func applyStatus(m *Mode, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n != 0 && (n < 400 || n > 599) {
		return fmt.Errorf("%q is not an error status from 400 to 599", value)
	}
	m.Status = n
	return nil
}

func applyFault(m *Mode, value string) error {
	if value == "" {
		m.Fault = ""
		return nil
	}
	if slices.Contains(faults, Fault(value)) {
		m.Fault = Fault(value)
		return nil
	}
	return fmt.Errorf("%q is none of %s", value, strings.Join(faultNames(), ", "))
}

// headerPrefix starts the headers that carry settings, in net/http's spelling.
const headerPrefix = "X-Fake-"

// applyHeaders reads X-Fake-NAME headers.
func (m *Mode) applyHeaders(h http.Header) error {
	for key, values := range h {
		name, ours := strings.CutPrefix(key, headerPrefix)
		if !ours {
			continue
		}
		if err := m.Set(strings.ToLower(name), values[len(values)-1]); err != nil {
			return err
		}
	}
	return nil
}

// applyModel reads what a model name says after "fake-": a status ("fake-429"), a fault
// ("fake-no-done"), or words with a value ("fake-slow-2s-out-100"). Other words are part
// of the name and mean nothing.
func (m *Mode) applyModel(model string) {
	at := strings.Index(model, "fake-")
	if at < 0 {
		return
	}
	words := strings.Split(model[at+len("fake-"):], "-")
	for len(words) > 0 {
		words = words[m.applyWords(words):]
	}
}

// applyWords takes one setting from the front and tells how many words it had.
func (m *Mode) applyWords(words []string) int {
	for n := min(2, len(words)); n > 0; n-- { // faults have one or two words
		if f := Fault(strings.Join(words[:n], "-")); slices.Contains(faults, f) {
			m.Fault = f
			return n
		}
	}
	if len(words[0]) == 3 && applyStatus(m, words[0]) == nil {
		return 1
	}
	for _, s := range settings {
		if s.Word != "" && s.Word == words[0] && len(words) > 1 && s.apply(m, words[1]) == nil {
			return 2
		}
	}
	return 1
}
