package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/penstock-gateway/penstock/internal/tokens"
	"github.com/penstock-gateway/penstock/test/load"
	"github.com/penstock-gateway/penstock/test/stack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A list means what taskset takes it for, or nothing: a scenario on the wrong core
// measures another thing.
func TestCPUSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list string
		cpus []int // nil: refused
	}{
		{"0", []int{0}},
		{"0,2", []int{0, 2}},
		{"0-3", []int{0, 1, 2, 3}},
		{"1,4-5", []int{1, 4, 5}},
		{"1023", []int{1023}},
		{"", nil},
		{"a", nil},
		{"2-1", nil},
		{"1-", nil},
		{"-1", nil},
		{"0,", nil},
		{"1024", nil},
	} {
		set, err := cpuSet(c.list)
		if (err != nil) != (c.cpus == nil) {
			t.Errorf("%q: %v", c.list, err)
			continue
		}
		if err != nil {
			continue
		}
		if set.Count() != len(c.cpus) {
			t.Errorf("%q: %d CPUs, want %v", c.list, set.Count(), c.cpus)
		}
		for _, cpu := range c.cpus {
			if !set.IsSet(cpu) {
				t.Errorf("%q: CPU %d is not in it", c.list, cpu)
			}
		}
	}
}

// The middle of all runs counts, for each number by itself.
func TestMedianOfRuns(t *testing.T) {
	t.Parallel()
	m := median([]sample{
		{requests: 1, perSecond: 30, p50: 3, p99: 10, success: 1, perCPU: map[string]float64{gatewayRole: 5}},
		{requests: 2, perSecond: 10, p50: 1, p99: 30, success: 0.5, faults: map[string]int64{"status 500": 2}},
		{requests: 3, perSecond: 20, p50: 2, p99: 20, success: 1, perCPU: map[string]float64{gatewayRole: 7}, faults: map[string]int64{"status 500": 1}},
	})
	if m.requests != 2 || m.perSecond != 20 || m.p50 != 2 || m.p99 != 20 {
		t.Errorf("%+v", m)
	}
	if m.success != 0.5 || m.faults["status 500"] != 3 {
		t.Errorf("a failure was averaged away: success %v, faults %v", m.success, m.faults)
	}
	if got := m.perCPU[gatewayRole]; got != 7 {
		t.Errorf("per CPU second %v, want 7: a run that saw no CPU time tells nothing", got)
	}
	if _, ok := m.perCPU[string(stack.Postgres)]; ok {
		t.Error("a role that no run saw has a figure")
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		why    string
		sorted []time.Duration
		p      float64
		want   time.Duration
	}{
		{"of none", nil, 99, 0},
		{"of one", []time.Duration{7}, 99, 7},
		{"the least", hundred, 0, 1},
		{"the middle", hundred, 50, 51},
		{"one of a hundred is above", hundred, 99, 100},
		{"the largest", hundred, 100, 100},
	} {
		if got := percentile(c.sorted, c.p); got != c.want {
			t.Errorf("%s: %d, want %d", c.why, got, c.want)
		}
	}
}

func TestPromptTokensOf(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int64{
		`{"usage":{"prompt_tokens":123,"completion_tokens":4}}`: 123,
		`data: {"usage":{"prompt_tokens":0}}`:                   0,
		`{"usage":null}`:                                        0,
		`{"prompt_tokens":`:                                     0,
		``:                                                      0,
	} {
		if got := promptTokensOf([]byte(body)); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
}

// The same seed gives the same text: runs of two releases are comparable. Other seeds
// give others: a cache would be measured.
func TestPrompt(t *testing.T) {
	t.Parallel()
	a := prompt(1, 2_000)
	if a != prompt(1, 2_000) || a == prompt(2, 2_000) {
		t.Error("the seed does not decide the text")
	}
	if n := len(strings.Fields(a)); n != 2_000 || !utf8.ValidString(a) {
		t.Errorf("%d words, want 2,000; valid %v", n, utf8.ValidString(a))
	}
	for _, part := range []string{". ", ".\n\n", "日本語"} {
		if !strings.Contains(a, part) {
			t.Errorf("no %q in the text", part)
		}
	}
}

// A prompt of so many tokens has about so many: the number of words is taken from a
// sample.
func TestPromptsHaveTheirSize(t *testing.T) {
	t.Parallel()
	perWord, err := tokensPerWord()
	if err != nil {
		t.Fatal(err)
	}
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	const want = 20_000
	got := counter.Count(tokens.O200kBase, []byte(prompt(3, int(want/perWord))))
	if got < want*97/100 || got > want*103/100 {
		t.Errorf("%d tokens, want about %d", got, want)
	}
}

// What flood sends is large, and no two are the same.
func TestFloodPrompts(t *testing.T) {
	t.Parallel()
	all, err := floodOf("sk-test", 2_000)
	if err != nil || len(all) != floodPrompts || len(smallChats("sk-test")) == 0 {
		t.Fatalf("%d prompts, %v", len(all), err)
	}
	seen := map[*load.Request]bool{}
	for _, r := range all {
		seen[r] = true
	}
	if len(seen) != floodPrompts {
		t.Errorf("%d different prompts, want %d", len(seen), floodPrompts)
	}
}

// Only what stands between a table's own markers changes.
func TestPlaceInAFile(t *testing.T) {
	t.Parallel()
	const page = "# Page\n\n<!-- bench run: begin -->\nold run\n<!-- bench run: end -->\ntext\n<!-- bench flood: begin -->\nold flood\n<!-- bench flood: end -->\nend\n"
	for _, c := range []struct {
		why    string
		place  place
		before string
		want   string // "": refused, and the file stays
	}{
		{"the run's table", placeOfRun, page, strings.Replace(page, "old run", "new", 1)},
		{"the flood's table", placeOfFlood, page, strings.Replace(page, "old flood", "new", 1)},
		{"an empty place", placeOfRun, "<!-- bench run: begin -->\n<!-- bench run: end -->\n", "<!-- bench run: begin -->\nnew\n<!-- bench run: end -->\n"},
		{"no place", placeOfRun, "# Page\n", ""},
		{"a place without an end", placeOfRun, "<!-- bench run: begin -->\nold\n", ""},
		{"the end of another", placeOfRun, "<!-- bench run: begin -->\nold\n<!-- bench flood: end -->\n", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "page.md")
			if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			err := c.place.write(path, "new\n")
			after, readErr := os.ReadFile(path)
			if readErr != nil {
				t.Fatal(readErr)
			}
			want := c.want
			if want == "" {
				want = c.before
			}
			if string(after) != want || (err == nil) != (c.want != "") {
				t.Errorf("%v; the file is now:\n%s", err, after)
			}
		})
	}
	if err := placeOfRun.write(filepath.Join(t.TempDir(), "none.md"), ""); err == nil {
		t.Error("a file that is not there was written")
	}
}

// The page in the tree has a place for every table.
func TestThePageHasThePlaces(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []place{placeOfRun, placeOfFlood, "bench tokens"} {
		path := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(path, page, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.write(path, "new\n"); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// isTable fails unless each row has as many cells as the head.
func isTable(t *testing.T, text string) {
	t.Helper()
	bars, rows := 0, 0
	for line := range strings.Lines(text) {
		n := strings.Count(line, "|")
		if n > 0 && bars > 0 && n != bars {
			t.Errorf("%d bars, the head has %d: %s", n, bars, line)
		}
		if bars = n; n > 0 {
			rows++
		}
	}
	if rows < 3 {
		t.Errorf("no table:\n%s", text)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	o := &runOptions{scenario: scenarioAll, workers: 2, runs: 3, seconds: 8, gatewayCPUs: "0", loadCPUs: "1", concurrency: 5, rate: 7}
	text := o.table([]row{{
		target: &target{scenario: scenarioShort, name: "HAProxy"}, rate: 11.25,
		sample: sample{perSecond: 22458.4, tokens: 99.44, p50: 1250 * time.Microsecond, success: 0.99999, rss: 15 << 20, perCPU: map[string]float64{gatewayRole: 41163}},
	}})
	isTable(t, text)
	for _, want := range []string{
		"`bench run --scenario all --runs 3 --seconds 8 --gateway-cpus 0 --load-cpus 1 --workers 2 --concurrency 5 --rate 7`",
		"| L2 | HAProxy | 11.2/s | 22458 | 99.4 | 41163 | – | – | – | – | 1.25 ms | 0.00 ms | 100.00 % | 15 MiB |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// flooded is what a good flood gives.
func flooded() []floodSample {
	good := latency{requests: 100, p50: time.Millisecond, p99: 19 * time.Millisecond, max: time.Second}
	return []floodSample{
		{liveness: good, chats: good},
		{connections: 8, perSecond: 40, tokens: 4e7, requests: 330, refused: 10, liveness: good, chats: good,
			faults: map[string]int64{"status 503: overloaded": 10}},
	}
}

// The verdict falls on what was asked for, and on measurements that are none.
func TestFloodVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why    string
		change func(s []floodSample)
		defect string // "": none
	}{
		{"in time, although some prompts were refused", func([]floodSample) {}, ""},
		{"liveness too late", func(s []floodSample) { s[1].liveness.p99 = 21 * time.Millisecond }, "liveness p99 21.00 ms, want at most 20.00 ms"},
		{"too late without a flood says nothing of one", func(s []floodSample) { s[0].liveness.p99 = time.Second }, ""},
		{"a liveness that failed", func(s []floodSample) { s[1].liveness.faults = map[string]int64{"status 503": 1} }, "not every answer was good"},
		{"a chat that failed", func(s []floodSample) { s[1].chats.faults = map[string]int64{"status 503": 1} }, "small chat: not every answer was good"},
		{"no liveness at all", func(s []floodSample) { s[1].liveness.requests = 0 }, "not every answer was good"},
		{"no prompt was answered", func(s []floodSample) { s[1].perSecond = 0 }, "no prompt was answered"},
		{"a prompt that failed", func(s []floodSample) { s[1].faults["status 500: oops"] = 1 }, "status 500: oops"},
	} {
		s := flooded()
		c.change(s)
		got := floodDefect(s)
		if (got == "") != (c.defect == "") || !strings.Contains(got, c.defect) {
			t.Errorf("%s: %q, want %q", c.why, got, c.defect)
		}
	}
}

func TestFloodTable(t *testing.T) {
	t.Parallel()
	o := &runOptions{scenario: scenarioFlood, workers: 1, runs: 3, seconds: 8, gatewayCPUs: "0", loadCPUs: "1", accept: true}
	text := o.floodTable(flooded())
	isTable(t, text)
	for _, want := range []string{"--scenario flood", "--check`", "| no flood | – | – | 0 of 0 |", "| flood, 8 connections | 40.0 | 40000000 | 10 of 330 |", "≤ 20.00 ms: pass.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Medians of several runs, but the largest maximum, and nothing that failed is lost.
func TestJoinFloods(t *testing.T) {
	t.Parallel()
	run := func(ms time.Duration) floodSample {
		l := latency{requests: 10, p50: ms, p99: 2 * ms, max: 3 * ms, faults: map[string]int64{"late": 1}}
		return floodSample{connections: 8, perSecond: float64(ms), requests: 5, refused: 1, liveness: l, chats: l, faults: map[string]int64{"status 503": 1}}
	}
	all := joinFloods([]floodSample{run(30), run(10), run(20)})
	if all.perSecond != 20 || all.requests != 15 || all.refused != 3 || all.faults["status 503"] != 3 {
		t.Errorf("%+v", all)
	}
	for _, l := range []latency{all.liveness, all.chats} {
		if l.p50 != 20 || l.p99 != 40 || l.max != 90 || l.requests != 30 || l.faults["late"] != 3 {
			t.Errorf("%+v", l)
		}
	}
}

// Flags that have no meaning together are refused.
func TestRunOptions(t *testing.T) {
	t.Parallel()
	good := runOptions{scenario: scenarioAll, workers: 1, runs: 1, seconds: 1, gatewayCPUs: "0"}
	for _, c := range []struct {
		why    string
		change func(o *runOptions)
		ok     bool
	}{
		{"as it is", func(*runOptions) {}, true},
		{"the flood, checked", func(o *runOptions) { o.scenario, o.accept = scenarioFlood, true }, true},
		{"a check of what has no limit", func(o *runOptions) { o.accept = true }, false},
		{"the commit path, checked", func(o *runOptions) { o.scenario, o.accept, o.records = scenarioCommit, true, 1 }, true},
		{"many pods, checked", func(o *runOptions) { o.scenario, o.accept = scenarioPods, true }, true},
		{"a commit path without records", func(o *runOptions) { o.scenario = scenarioCommit }, false},
		{"a flood at a rate", func(o *runOptions) { o.scenario, o.rate = scenarioFlood, 3 }, false},
		{"an unknown scenario", func(o *runOptions) { o.scenario = "L3" }, false},
		{"no runs", func(o *runOptions) { o.runs = 0 }, false},
		{"no CPU", func(o *runOptions) { o.gatewayCPUs = "" }, false},
	} {
		o := good
		c.change(&o)
		if err := o.check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.why, err)
		}
	}
	for scenario, want := range map[string]int{scenarioLarge: 4, scenarioShort: 32, scenarioFlood: 8} {
		if got := good.connections(scenario); got != want {
			t.Errorf("%s: %d connections, want %d", scenario, got, want)
		}
	}
	if !good.has(scenarioLarge) || !good.has(scenarioShort) {
		t.Error("all is L1 and L2")
	}
}

// One failed check is enough to fail the command, and all are told.
func TestReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := &report{out: &out}
	r.check("a", true, "%d", 1)
	if err := r.end(); err != nil {
		t.Errorf("all passed: %v", err)
	}
	r.check("b", false, "found %d", 2)
	if err := r.end(); err == nil {
		t.Error("a failed check did not fail the command")
	}
	if got, want := out.String(), "ok   a: 1\nchecks: 1 passed, 0 failed\nFAIL b: found 2\nchecks: 1 passed, 1 failed\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
