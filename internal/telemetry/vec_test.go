package telemetry

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

func TestHotPathAllocatesNothing(t *testing.T) { // not parallel: it counts the process's allocations
	m := New(Config{})
	status := 200
	run := func() {
		m.AdmittedRequests.Inc()
		m.InFlightRequests.Add(1)
		m.Requests.With("gpt-5", StatusLabel(status), "team-a").Inc()
		m.SpendNano.With("gpt-5", "team-a").Add(37_500)
		m.Duration.With("gpt-5").Observe(1200 * time.Millisecond)
		m.DeliveredOutputTokens.Add(3)
		m.InFlightRequests.Add(-1)
	}
	run() // the first look-up makes the series
	if n := testing.AllocsPerRun(1000, run); n != 0 {
		t.Fatalf("%v allocations per request, want 0", n)
	}
}

func TestSeriesAreBoundedAndNoCountIsLost(t *testing.T) {
	t.Parallel()
	m := New(Config{MaxSeries: 40})
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 500 {
				m.Requests.With("gpt-5", "200", fmt.Sprintf("alias-%d-%d", worker, i)).Inc()
			}
		})
	}
	all.Wait()
	known := *m.Requests.known.Load()
	if len(known) > 40+40/8+1 {
		t.Errorf("%d series, want at most 46", len(known))
	}
	sum := uint64(0)
	for _, c := range known {
		sum += c.Value()
	}
	if sum != 2000 {
		t.Errorf("series add up to %d, want 2000", sum)
	}
	if got := m.Requests.With("gpt-5", "200", "other").Value(); got != 2000-40 || m.SeriesFolded.Value() != got {
		t.Errorf("other has %d and %d were told as folded, want 1960 each: model and status stay readable", got, m.SeriesFolded.Value())
	}
}

func TestEveryLabelFoldsInTheEnd(t *testing.T) {
	t.Parallel()
	m := New(Config{MaxSeries: 8})
	for i := range 100 {
		m.Attempts.With(fmt.Sprintf("provider-%d", i), "ok").Inc()
		m.Refusals.With(fmt.Sprintf("reason-%d", i)).Inc()
	}
	if n := len(*m.Attempts.known.Load()); n != 10 {
		t.Errorf("%d series with two labels, want 8 + 1 folded by the last + 1 by all", n)
	}
	if n := len(*m.Refusals.known.Load()); n != 9 {
		t.Errorf("%d series with one label, want 8 and other", n)
	}
	if n := m.Attempts.With("other", "other").Value(); n != 91 {
		t.Errorf("other has %d, want 91", n)
	}
}

func TestLabelsAreClean(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 100)
	for _, c := range []struct{ why, in, want string }{
		{"plain values stay", "gpt-5", "gpt-5"},
		{"an empty alias is a value", "", ""},
		{"invalid UTF-8 would end the report", "a\xffb", "a\uFFFDb"},
		{"long values are cut between runes", long, long[:128]},
		{"a cut rune goes as a whole", "x" + long, ("x" + long)[:127]},
		{"a key is no alias", "sk-0123456789", "redacted"},
		{"nor is a key's hash", strings.Repeat("0a", 32), "redacted"},
		{"a name of the same length is one", strings.Repeat("zz", 32), strings.Repeat("zz", 32)},
	} {
		got := cleanLabel(c.in)
		if got != c.want || !utf8.ValidString(got) || len(got) > maxLabelBytes {
			t.Errorf("%s: %q becomes %q, want %q", c.why, c.in, got, c.want)
		}
	}
	for code, want := range map[int]string{100: "100", 200: "200", 429: "429", 599: "599", 0: "other", 99: "other", 600: "other", -1: "other"} {
		if got := StatusLabel(code); got != want {
			t.Errorf("status %d is %q, want %q", code, got, want)
		}
	}
}

func FuzzCleanLabel(f *testing.F) {
	f.Add("gpt-5")
	f.Add("\xff\xfe" + strings.Repeat("é", 90))
	f.Fuzz(func(t *testing.T, s string) {
		got := cleanLabel(s)
		if !utf8.ValidString(got) || len(got) > maxLabelBytes || cleanLabel(got) != got {
			t.Fatalf("%q becomes %q", s, got)
		}
	})
}
