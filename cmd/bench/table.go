package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// place is where a table stands in a Markdown file: between two comments with its name.
type place string

const (
	placeOfRun    place = "bench run"
	placeOfFlood  place = "bench flood"
	placeOfCommit place = "bench commit"
)

func loop(rate float64) string {
	if rate == 0 {
		return "closed"
	}
	return fmt.Sprintf("%.1f/s", rate)
}

// table is Markdown: the command, the machine, and a line for each row.
func (o *runOptions) table(rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`, %s\n\n", o.commandLine(), machine())
	b.WriteString("| scenario | through | loop | requests/s | prompt tokens/s | requests per CPU second: gateway | collector | sidecar | pgbouncer | PostgreSQL | p50 | p99 | success | RSS |\n")
	b.WriteString("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range rows {
		s := r.sample
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |", r.target.scenario, r.target.name, loop(r.rate), number(s.perSecond), number(s.tokens))
		for _, role := range roles() {
			fmt.Fprintf(&b, " %s |", number(s.perCPU[role]))
		}
		fmt.Fprintf(&b, " %s | %s | %.2f %% | %.0f MiB |\n", milliseconds(s.p50), milliseconds(s.p99), 100*s.success, s.rss/(1<<20))
	}
	return b.String()
}

// number has three digits that count; "–" for what was not seen.
func number(v float64) string {
	switch {
	case v == 0:
		return "–"
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// commandLine is what to type to measure the same again.
func (o *runOptions) commandLine() string {
	line := fmt.Sprintf("bench run --scenario %s --runs %d --seconds %g --gateway-cpus %s --load-cpus %s", o.scenario, o.runs, o.seconds, o.gatewayCPUs, o.loadCPUs)
	if o.workers != 1 {
		line += fmt.Sprintf(" --workers %d", o.workers)
	}
	if o.concurrency > 0 {
		line += fmt.Sprintf(" --concurrency %d", o.concurrency)
	}
	if o.rate > 0 {
		line += fmt.Sprintf(" --rate %g", o.rate)
	}
	if o.accept {
		line += " --check"
	}
	return line
}

// machine describes what it was measured on, without a name.
func machine() string {
	model := "unknown CPU"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(text), "model name\t: "); found {
			model, _, _ = strings.Cut(rest, "\n")
		}
	}
	cpus := 0
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		cpus = strings.Count(string(text), "processor\t:")
	}
	return fmt.Sprintf("%s, %d CPUs, %s, %s/%s, %s", model, cpus, runtime.Version(), runtime.GOOS, runtime.GOARCH, time.Now().UTC().Format("2006-01-02"))
}

// write replaces what stands at a place of a file.
func (p place) write(path, table string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read --write %s: %w", path, err)
	}
	begin, end := fmt.Sprintf("<!-- %s: begin -->", p), fmt.Sprintf("<!-- %s: end -->", p)
	before, rest, found := strings.Cut(string(text), begin+"\n")
	_, after, closed := strings.Cut(rest, end+"\n")
	if !found || !closed {
		return fmt.Errorf("cannot find the place for the table in --write %s: it needs the lines %q and %q", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+"\n"+table+end+"\n"+after), 0o644)
}
