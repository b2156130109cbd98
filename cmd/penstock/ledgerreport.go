package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/store"
)

// shown is how many lines of each list people see; --json has them all.
const shown = 10

// printReport writes totals, then differences, then what is explained and worth a
// look, then what to do.
func printReport(out io.Writer, r *store.Report) error {
	p := &reportPrinter{w: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	p.heading(r)
	p.totals(&r.Totals)
	p.differences(r)
	p.explained(r)
	p.next(r)
	if p.err != nil {
		return fmt.Errorf("cannot print the report: %w", p.err)
	}
	return p.w.Flush()
}

type reportPrinter struct {
	w   *tabwriter.Writer
	err error
}

// line writes one line of cells.
func (p *reportPrinter) line(cells ...string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.Join(cells, "\t"))
	}
}

func (p *reportPrinter) heading(r *store.Report) {
	text := "The ledger at " + r.At.Format(time.DateTime) + " UTC"
	if !r.Since.IsZero() {
		text += ", since " + r.Since.Format(time.DateOnly)
	}
	p.line(text)
	if !r.KeptFrom.IsZero() {
		p.line("Records from before " + r.KeptFrom.Format(time.DateTime) + " UTC are gone by their age; what needs them is not checked.")
	}
	p.line()
}

func (p *reportPrinter) totals(t *store.Totals) {
	p.line("CHECKED", "ROWS", "DOLLARS")
	p.line("records", number(t.Records), dollars(t.Cost))
	p.line("  estimated", number(t.Estimated))
	p.line("  of models without a price", number(t.Unpriced))
	p.line("  corrected", number(t.Corrected))
	p.line("daily sums", number(t.DailyRows), dollars(t.DailyCost))
	p.line("budgets", number(t.Budgets), dollars(t.BudgetSpent)+" spent", dollars(t.Leased)+" leased")
	p.line("leases", number(t.Leases))
	p.line("holders", number(t.Holders))
	p.line()
}

func (p *reportPrinter) differences(r *store.Report) {
	if r.Explained() {
		p.line("No differences: every row says what the records say.")
		p.line()
		return
	}
	p.line(fmt.Sprintf("%d UNEXPLAINED DIFFERENCES", r.Differences.Count))
	p.line("ROW", "", "FIELD", "RECORDS SAY", "ROW SAYS")
	for _, d := range r.Differences.First {
		p.line(string(d.Kind), d.Subject, d.Field, amount(d, d.Want), amount(d, d.Have))
	}
	p.more(r.Differences.Count, len(r.Differences.First))
	p.line()
}

// amount is a number of a difference in its unit.
func amount(d store.Difference, n int64) string {
	switch {
	case d.Kind == store.CursorDiffers, d.Kind == store.DaysDiffer && d.Field != "cost", d.Field == "holder":
		return number(n)
	}
	return dollars(n)
}

// explained lists what has an explanation and may call for a look.
func (p *reportPrinter) explained(r *store.Report) {
	p.line("EXPLAINED", "COUNT", "DOLLARS")
	for _, l := range []struct {
		name       string
		count, sum int64
		sums       bool
	}{
		{"open leases", r.OpenLeases.Count, r.OpenLeases.Sum, true},
		{"leases charged as lost", r.LostLeases.Count, r.LostLeases.Sum, true},
		{"leases closed before their last record", r.LateLeases.Count, 0, false},
		{"interrupted requests, at all that was held", r.Interrupted.Count, r.Interrupted.Sum, true},
		{"records lost with a journal", r.RecordsLost.Count, 0, false},
		{"dead letters", r.DeadLetters.Count, r.DeadLetters.Sum, true},
		{"budgets with overrun", r.Overruns.Count, r.Overruns.Sum, true},
		{"budgets above a lowered limit", r.OverLimit.Count, r.OverLimit.Sum, true},
		{"budgets not checked", r.Unchecked.Count, 0, false},
	} {
		cells := []string{l.name, number(l.count)}
		if l.sums {
			cells = append(cells, dollars(l.sum))
		}
		p.line(cells...)
	}
	p.line()
	p.leases("OPEN LEASES", r, &r.OpenLeases)
	p.leases("CHARGED AS LOST", r, &r.LostLeases)
	p.leases("CLOSED BEFORE THEIR LAST RECORD", r, &r.LateLeases)
	p.records(&r.Interrupted)
	p.letters(&r.DeadLetters)
}

func (p *reportPrinter) leases(title string, r *store.Report, l *store.List[store.LeaseFinding]) {
	if l.Count == 0 {
		return
	}
	p.line(title, "ENTITY", "AGE", "AMOUNT")
	for _, f := range first(l.First) {
		text := dollars(f.Amount)
		if l == &r.LateLeases {
			text = number(f.Amount) + " records"
		}
		if l == &r.OpenLeases && f.Expires.Before(r.At) {
			text += ", its holder is silent since " + f.Expires.Format(time.DateTime)
		}
		p.line(store.LeaseName(f.Holder, store.LeaseRef{Seq: f.Seq, Budget: f.Budget}), f.Entity, age(r.At, f.Created), text)
	}
	p.more(l.Count, len(first(l.First)))
	p.line()
}

func (p *reportPrinter) records(l *store.List[store.RecordFinding]) {
	if l.Count == 0 {
		return
	}
	p.line("INTERRUPTED REQUEST", "STARTED", "MODEL", "BOOKED")
	for _, f := range first(l.First) {
		p.line(f.RequestID, f.Start.Format(time.DateTime), f.Model, dollars(f.Cost))
	}
	p.more(l.Count, len(first(l.First)))
	p.line()
}

func (p *reportPrinter) letters(l *store.List[store.DeadLetter]) {
	if l.Count == 0 {
		return
	}
	p.line("DEAD LETTER", "AT", "REQUEST", "REASON")
	for _, f := range first(l.First) {
		p.line(number(f.ID), f.At.Format(time.DateTime), f.RequestID, f.Reason)
	}
	p.more(l.Count, len(first(l.First)))
	p.line()
}

func (p *reportPrinter) more(all int64, named int) {
	if rest := all - int64(named); rest > 0 {
		p.line(fmt.Sprintf("… and %d more (--json --limit)", rest))
	}
}

// next says what can be done about what was found.
func (p *reportPrinter) next(r *store.Report) {
	for _, n := range []struct {
		when bool
		text string
	}{
		{!r.Explained(), "Differences come from a hand or a program other than Penstock, a restored backup, or a defect. Nothing was changed here: keep a dump before you repair anything."},
		{r.LostLeases.Count > 0, "Take a lost charge back when its pod spent nothing of it: penstock ledger correct --lease NAME --reason TEXT"},
		{r.Interrupted.Count > 0, "Set what an interrupted request really cost: penstock ledger correct --request-id ID --cost DOLLARS --reason TEXT"},
		{r.DeadLetters.Count > 0, "Dead letters moved their money; the originals stand in the table dead_letters."},
		{r.Totals.Unpriced > 0, "Requests to models without a price cost nothing here: give the models input_cost_per_token and output_cost_per_token."},
		{r.Unchecked.Count > 0, "Budgets are not checked that began before the records that were looked at, or before the ledger noted with what they began."},
	} {
		if n.when {
			p.line("→ " + n.text)
		}
	}
}

func first[T any](list []T) []T { return list[:min(len(list), shown)] }

func number(n int64) string { return strconv.FormatInt(n, 10) }

// dollars is an amount that may be negative.
func dollars(nano int64) string {
	if nano < 0 {
		return "-" + money.FormatNano(-nano)
	}
	return money.FormatNano(nano)
}

func age(at, since time.Time) string {
	if since.IsZero() {
		return "unknown"
	}
	return at.Sub(since).Round(time.Second).String()
}
