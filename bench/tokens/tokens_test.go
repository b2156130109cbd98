package main

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A figure is the middle one, not the mean: one pause of the machine must not move it.
func TestMedianAndLeast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why           string
		all           []time.Duration
		middle, least time.Duration
	}{
		{"nothing was measured", nil, 0, 0},
		{"one", []time.Duration{5}, 5, 5},
		{"an outlier", []time.Duration{3, 900, 1}, 3, 1},
		{"of two the upper one", []time.Duration{2, 1}, 2, 1},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.all)
			if m, l := median(c.all), least(c.all); m != c.middle || l != c.least {
				t.Errorf("median %d, least %d, want %d and %d", m, l, c.middle, c.least)
			}
			if !slices.Equal(before, c.all) {
				t.Error("the measurements were put in another order")
			}
		})
	}
	if got := ratio(time.Second, 0); got != 0 {
		t.Errorf("a ratio to nothing is %v", got)
	}
}

// The prompts of a size have exactly that many tokens, or ratios would compare sizes.
func TestCutsAreExact(t *testing.T) {
	t.Parallel()
	c, err := warmed()
	if err != nil {
		t.Fatal(err)
	}
	count := func(b []byte) int { return c.Count(encoding, b) }
	words := []string{"the", "of", "Zürich", "übermäßig", "internationalization", "日本語", "x1", "carryalls"}
	for seed := range uint64(5) {
		text := prose(words, seed, 60_000)
		targets := []int{1, 900, 1000, 5000}
		ends, err := cuts(text, targets, count)
		if err != nil {
			t.Fatal(err)
		}
		for i, end := range ends {
			if got := count(text[:end]); got != targets[i] || !utf8.Valid(text[:end]) {
				t.Errorf("seed %d: %d tokens in %d bytes, want %d; valid %v", seed, got, end, targets[i], utf8.Valid(text[:end]))
			}
		}
	}
	if _, err := cuts([]byte("too short"), []int{100}, count); err == nil {
		t.Error("a text that is too short was cut")
	}
}

// Prompts differ from each other, and not from run to run.
func TestProse(t *testing.T) {
	t.Parallel()
	words := strings.Fields("the of and to in carryalls oversupplies")
	a, again, other := prose(words, 1, 10_000), prose(words, 1, 10_000), prose(words, 2, 10_000)
	if !bytes.Equal(a, again) || bytes.Equal(a, other) {
		t.Error("the seed does not decide the text")
	}
	if len(a) < 10_000 || len(a) > 10_100 {
		t.Errorf("%d bytes, want 10,000 and a word", len(a))
	}
	for _, part := range []string{".\n\n", ", ", "1"} {
		if !bytes.Contains(a, []byte(part)) {
			t.Errorf("no %q in the text", part)
		}
	}
}

// What a vocabulary merged early is frequent; fragments are no words.
func TestWordsAreInOrderOfFrequency(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(path, []byte("zebra\nthe\npe\na\nquux\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	words, err := loadWords(path, map[string]int{" the": 2, " a": 1, " zebra": 300, " pe": 0})
	if want := []string{"a", "the", "zebra", "quux"}; err != nil || !slices.Equal(words, want) {
		t.Errorf("%q %v, want %q", words, err, want)
	}
	if _, err := loadWords(filepath.Join(t.TempDir(), "none"), nil); err == nil || !strings.Contains(err.Error(), "wamerican-large") {
		t.Errorf("a missing dictionary: %v", err)
	}
}

// A window is one of several that begin at different lines, and wraps around.
func TestWindow(t *testing.T) {
	t.Parallel()
	text := []byte("one\ntwo\nthree\nfour\nfive\n")
	for i, want := range []string{"two\nthree\n", "four\nfive\n"} {
		if got := string(window(text, i, 2, len(want))); got != want {
			t.Errorf("window %d is %q, want %q", i, got, want)
		}
	}
	if got, want := string(window(text, 1, 2, 14)), "four\nfive\none\n"; got != want {
		t.Errorf("at the end: %q, want %q", got, want)
	}
}

// Only text of the extension counts, and the order is that of names.
func TestJoined(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"b.md": "second", "a/README.MD": "first", "c.txt": "not Markdown", "d.md": "\xff", "cache/e.md": "skipped",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := joined(root, ".md", "cache")
	if want := "first\nsecond\n"; err != nil || string(got) != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
}

// Hostile inputs have their size, are text, and are the same in every run.
func TestHostileInputs(t *testing.T) {
	t.Parallel()
	if len(hostile()) != 12 {
		t.Errorf("%d inputs, want 12", len(hostile()))
	}
	for _, in := range hostile() {
		for _, n := range []int{1000, 4399} {
			b := in.make(n)
			if len(b) > n || len(b) < n-4 || !utf8.Valid(b) || !bytes.Equal(b, in.make(n)) {
				t.Errorf("%s: %d bytes, want %d; valid %v, or not the same again", in.name, len(b), n, utf8.Valid(b))
			}
		}
	}
}

// An answer that lacks a text, or is none, is not taken for a measurement.
func TestParseAnswer(t *testing.T) {
	t.Parallel()
	p, err := parseAnswer("12:3400\t5:60", 2)
	if err != nil || !slices.Equal(p.tokens, []int{12, 5}) || !slices.Equal(p.elapsed, []time.Duration{3400, 60}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, line := range []string{"", "12:3400", "12\t13", "12:3400\t5:", "a:1\tb:2", "1:2\t3:4\t5:6"} {
		if _, err := parseAnswer(line, 2); err == nil {
			t.Errorf("%q was taken", line)
		}
	}
}

// result is a runner that has measured: ours takes ms for prose of every size, the
// yardstick ten times as long.
func result(ms time.Duration) *runner {
	r := &runner{o: &options{rounds: 1}, plan: plan{prompts: 1, tokens: []int{50_000, 75_000, 100_000}, hostile: 440_000, others: 10_000}}
	r.corpus = &corpus{sources: map[string]int{}}
	for _, kind := range kinds() {
		for _, tokens := range r.plan.tokens {
			r.corpus.sets = append(r.corpus.sets, &set{kind: kind, tokens: tokens, texts: []*text{newText("", make([]byte, 4*tokens))}})
		}
	}
	for _, c := range everyCandidate()[:4] {
		e := &entrant{candidate: c, cells: map[*set]*cell{}, wrong: map[string][]string{}}
		for _, s := range r.corpus.sets {
			elapsed := ms
			if c.name == nameTiktokenGo {
				elapsed = 10 * ms
			}
			e.cells[s] = &cell{elapsed: []time.Duration{elapsed}}
		}
		r.entrants = append(r.entrants, e)
	}
	for _, in := range hostile() {
		r.hostile = append(r.hostile, &hostileResult{input: in, once: []time.Duration{ms}, twice: []time.Duration{2 * ms},
			small: map[string]time.Duration{}, double: map[string]time.Duration{}})
	}
	return r
}

// Milliseconds are the machine's as well; ratios are not, and only they decide.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	r := result(2 * time.Millisecond)
	got := map[string]string{}
	for _, g := range r.goals() {
		got[g.what] = g.measured + " " + g.verdict
	}
	for what, want := range map[string]string{
		"distinct prose, 50K, median":                          "2.00 ms not met",
		"distinct prose, 100K, median":                         "2.00 ms met",
		"distinct Go source, 100K, median":                     "2.00 ms met",
		"ratio to tiktoken-go, distinct Markdown, 100K":        "10.0 × **FAIL**",
		"ratio to tiktoken-go, first sight, Markdown, 100K":    "10.0 × pass",
		"allocations per count, most":                          "0 pass",
		"largest growth when such an input is doubled":         "2.00 × (letters, all `a`) pass",
		"slowest hostile input of 440 KB":                      "2.00 ms (letters, all `a`) met",
		"whole admission of a body of 0 KB with prose of 100K": "– –",
	} {
		if got[what] != want {
			t.Errorf("%s: %q, want %q", what, got[what], want)
		}
	}
	err := r.refused()
	if err == nil || !strings.Contains(err.Error(), "distinct prose, 100K: 10.0 ×, want ≥ 15 ×") || strings.Contains(err.Error(), "50K") {
		t.Errorf("the refusal is %v", err)
	}
	r.entrants = r.entrants[:3] // without the yardstick there is no ratio
	if err := r.refused(); err != nil {
		t.Errorf("refused without a yardstick: %v", err)
	}
}

// An exact counter that differs fails the run; one that is known to differ is marked.
func TestWrongCounts(t *testing.T) {
	t.Parallel()
	r := result(time.Millisecond)
	r.entrant(nameTiktokenGo).differs(kindMarkdown, "Markdown-50000-0.txt", 50_003, 50_000)
	if err := r.wrong(); err != nil {
		t.Errorf("one that is not exact was refused: %v", err)
	}
	if report := r.report(); !strings.Contains(report, "| Markdown | Go: tiktoken-go/tokenizer v0.10.0 |") || !strings.Contains(report, "**1** of 3 |") {
		t.Errorf("the difference is not in the report:\n%s", report)
	}
	r.entrant(nameOurs).differs(groupHard, `"\n \n"`, 2, 1)
	if err := r.wrong(); err == nil || !strings.Contains(err.Error(), "penstock is meant to be exact and differs in 1 hard texts") {
		t.Errorf("a wrong count of ours: %v", err)
	}
}

// Each row of a table has as many cells as its head.
func TestReportIsATable(t *testing.T) {
	t.Parallel()
	cells := 0
	for line := range strings.Lines(result(time.Millisecond).report()) {
		n := strings.Count(line, "|")
		if n > 0 && cells > 0 && n != cells {
			t.Errorf("%d bars, the head has %d: %s", n, cells, line)
		}
		cells = n
	}
}

func TestWriteBetween(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	for _, c := range []struct{ why, before, want string }{
		{"the old tables go", "a\n" + beginMark + "old\n" + endMark + "z\n", "a\n" + beginMark + "new\n" + endMark + "z\n"},
		{"a page without a place for them stays", "a\nz\n", ""},
		{"a place that does not end is none", "a\n" + beginMark, ""},
	} {
		if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := writeBetween(path, "new\n")
		after, readErr := os.ReadFile(path)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if want := cmp.Or(c.want, c.before); string(after) != want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", c.why, after, err)
		}
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--rounds", "0"}, {"--only", "nobody"}, {"stray"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	o, err := parse([]string{"--only", "tiktoken-go,penstock"})
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := o.candidates()
	if err != nil || len(chosen) != 2 || chosen[0].name != nameTiktokenGo {
		t.Errorf("%d candidates, %v", len(chosen), err)
	}
}
