package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// The tables' place in a file.
const (
	beginMark = "<!-- bench tokens: begin -->\n"
	endMark   = "<!-- bench tokens: end -->\n"
)

// report is Markdown: the command, the machine, and the tables.
func (r *runner) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`, %s\n\n", r.o.commandLine(), machine(time.Now()))
	b.WriteString("| what | target | measured | |\n|---|--:|--:|---|\n")
	for _, g := range r.goals() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", g.what, g.target, g.measured, g.verdict)
	}
	r.counters(&b)
	r.attacks(&b)
	r.notes(&b)
	return b.String()
}

// counters is a line for each kind of text and candidate.
func (r *runner) counters(b *strings.Builder) {
	fmt.Fprintf(b, "\nMilliseconds to count one prompt, minimum / median over %d distinct prompts and all passes, o200k_base:\n\n", r.plan.prompts)
	b.WriteString("| text | counter |")
	for _, tokens := range r.plan.tokens {
		fmt.Fprintf(b, " %s |", thousands(tokens))
	}
	b.WriteString(" MB/s | allocations, MB per count | wrong counts |\n|---|---|")
	b.WriteString(strings.Repeat("--:|", len(r.plan.tokens)+3) + "\n")
	for _, kind := range kinds() {
		for _, e := range r.entrants {
			fmt.Fprintf(b, "| %s | %s |", kind, e.title)
			for _, tokens := range r.plan.tokens {
				b.WriteString(" " + r.times(e, kind, tokens) + " |")
			}
			fmt.Fprintf(b, " %s | %s | %s |\n", r.speed(e, kind), r.allocations(e, kind), r.agreement(e, kind))
		}
	}
}

func (r *runner) times(e *entrant, kind string, tokens int) string {
	c := r.cell(e.name, kind, tokens)
	if c == nil {
		return notMeasured
	}
	return fmt.Sprintf("%s / %s", inMilliseconds(least(c.elapsed)), inMilliseconds(median(c.elapsed)))
}

// speed is that of the largest prompts, by the median.
func (r *runner) speed(e *entrant, kind string) string {
	for s, c := range e.cells {
		if s.kind != kind || s.tokens != r.plan.largest() {
			continue
		}
		total := 0
		for _, t := range s.texts {
			total += len(t.bytes)
		}
		return fmt.Sprintf("%.0f", float64(total/len(s.texts))/1e6/median(c.elapsed).Seconds())
	}
	return notMeasured
}

func (r *runner) allocations(e *entrant, kind string) string {
	c := r.cell(e.name, kind, r.plan.largest())
	if c == nil || c.allocations < 0 {
		return notMeasured
	}
	return fmt.Sprintf("%.0f, %.1f", c.allocations, c.bytes/1e6)
}

// agreement is how many prompts of a kind a candidate counted other than tiktoken.
func (r *runner) agreement(e *entrant, kind string) string {
	if len(e.wrong[kind]) == 0 {
		return "0"
	}
	return fmt.Sprintf("**%d** of %d", len(e.wrong[kind]), r.plan.prompts*len(r.plan.tokens))
}

// attacks is a line for each hostile input.
func (r *runner) attacks(b *strings.Builder) {
	fmt.Fprintf(b, "\nHostile inputs: ours in milliseconds, minimum / median; the others with %.3g KB, minimum, and how that grew from half of it:\n\n",
		2*float64(r.plan.others)/1000)
	fmt.Fprintf(b, "| input | Penstock, %.3g KB | %.3g KB | growth |", float64(r.plan.hostile)/1000, 2*float64(r.plan.hostile)/1000)
	var others []*entrant
	for _, e := range r.entrants {
		if e.name != nameFirstPass && e.name != nameFirstSight {
			others = append(others, e)
			fmt.Fprintf(b, " %s |", e.name)
		}
	}
	b.WriteString("\n|---|--:|--:|--:|" + strings.Repeat("--:|", len(others)) + "\n")
	for _, h := range r.hostile {
		fmt.Fprintf(b, "| %s | %s / %s | %s / %s | %.2f × |", h.name, inMilliseconds(least(h.once)), inMilliseconds(median(h.once)),
			inMilliseconds(least(h.twice)), inMilliseconds(median(h.twice)), h.doubling())
		for _, e := range others {
			fmt.Fprintf(b, " %s, %.1f × |", inMilliseconds(h.double[e.name]), ratio(h.double[e.name], h.small[e.name]))
		}
		b.WriteString("\n")
	}
}

// notes tells what the tables cannot.
func (r *runner) notes(b *strings.Builder) {
	fmt.Fprintf(b, "\n- Markdown is from %.1f MB of files, Go source from %.1f MB.\n", float64(r.corpus.sources[kindMarkdown])/1e6, float64(r.corpus.sources[kindGo])/1e6)
	fmt.Fprintf(b, "- Whole admission made %.2g allocations per body.\n", r.admission.allocations)
	for _, e := range r.entrants {
		hard, hostile := len(e.wrong[groupHard]), len(e.wrong[groupHostile])
		if hard+hostile > 0 {
			fmt.Fprintf(b, "- %s counted %d of %d hard texts and %d of %d small hostile inputs wrong.\n", e.name, hard, len(hardTexts()), hostile, 2*len(r.hostile))
		}
	}
	for _, c := range r.absent {
		fmt.Fprintf(b, "- %s is not installed and was left out.\n", c.name)
	}
}

// commandLine is what to type to measure the same again.
func (o *options) commandLine() string {
	line := fmt.Sprintf("make bench-tokens ARGS=\"--rounds %d --cpu %d", o.rounds, o.cpu)
	if o.only != "" {
		line += " --only " + o.only
	}
	if o.quick {
		line += " --quick"
	}
	return line + "\""
}

// machine describes what it was measured on, without a name.
func machine(now time.Time) string {
	model, cpus := "unknown CPU", 0
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(text), "model name\t: "); found {
			model, _, _ = strings.Cut(rest, "\n")
		}
		cpus = strings.Count(string(text), "processor\t:")
	}
	return fmt.Sprintf("one of %d CPUs, %s, %s, %s/%s, %s", cpus, model, runtime.Version(), runtime.GOOS, runtime.GOARCH, now.UTC().Format("2006-01-02"))
}

func thousands(tokens int) string {
	if tokens < 1000 {
		return fmt.Sprint(tokens)
	}
	return fmt.Sprintf("%gK", float64(tokens)/1000)
}

// inMilliseconds has the digits that count.
func inMilliseconds(d time.Duration) string {
	ms := d.Seconds() * 1000
	switch {
	case d == 0:
		return notMeasured
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

func milliseconds(d time.Duration) string {
	if d == 0 {
		return notMeasured
	}
	return inMilliseconds(d) + " ms"
}

// writeBetween replaces what stands between a file's markers.
func writeBetween(path, tables string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read --write %s: %w", path, err)
	}
	before, rest, found := strings.Cut(string(text), beginMark)
	_, after, closed := strings.Cut(rest, endMark)
	if !found || !closed {
		return fmt.Errorf("cannot find the place for the tables in --write %s: it needs the lines %q and %q", path, strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return os.WriteFile(path, []byte(before+beginMark+tables+endMark+after), 0o644)
}
