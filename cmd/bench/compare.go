package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/penstock-gateway/penstock/internal/fakeupstream"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/test/stack"
)

// compare holds the records of a key against the upstream's ledger, row for row.
func (o *smokeOptions) compare(ctx context.Context, r *report, s *stack.Stack, key string) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	_, err := s.AwaitRecords(ctx, key, int(o.requests))
	b, quietErr := s.AwaitQuiet(ctx, key)
	if err != nil || quietErr != nil {
		r.check("records arrive and leases return", false, "%s %s", text(err), text(quietErr))
	}
	// Read again: a record that came twice may have come late.
	records, err := s.Records(ctx, key)
	r.check("every request has a record", err == nil && int64(len(records)) == o.requests, "%d of %d %s", len(records), o.requests, text(err))
	served, err := s.FakeLedger(ctx)
	r.check("the upstream served as many", err == nil && len(served) == len(records), "%d %s", len(served), text(err))
	differ := differences(records, served)
	r.check("records and the upstream's ledger are equal, row for row", len(differ) == 0, "%d differ %s", len(differ), strings.Join(differ[:min(3, len(differ))], "; "))
	sum := int64(0)
	for _, rec := range records {
		sum += rec.Cost
	}
	r.check("the budget spent what the records cost, and nothing is held", b == stack.Budget{Limit: b.Limit, Spent: sum},
		"spent %d, records %d nano-dollars, leased %d, overrun %d, lost %d", b.Spent, sum, b.Leased, b.Overrun, b.Lost)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// differences names each row that stands on one side only or is not the same.
func differences(records []store.Record, served []fakeupstream.Entry) []string {
	var found []string
	byID := make(map[string]*store.Record, len(records))
	for i := range records {
		id := records[i].UpstreamID
		if byID[id] != nil {
			found = append(found, "two records of "+id)
		}
		byID[id] = &records[i]
	}
	for _, e := range served {
		rec := byID[e.ID]
		delete(byID, e.ID)
		if what := difference(rec, e); what != "" {
			found = append(found, e.ID+": "+what)
		}
	}
	for id := range byID {
		found = append(found, "the upstream did not serve "+id)
	}
	return found
}

func difference(rec *store.Record, e fakeupstream.Entry) string {
	if rec == nil {
		return "no record"
	}
	cost := int64(e.PromptTokens)*stack.FakeInput + int64(e.CompletionTokens)*stack.FakeOutput
	switch {
	case rec.RequestID != e.RequestID:
		return fmt.Sprintf("request id %s, record %s", e.RequestID, rec.RequestID)
	case rec.Usage.Input != int64(e.PromptTokens) || rec.Usage.Output != int64(e.CompletionTokens):
		return fmt.Sprintf("served %d + %d tokens, record %d + %d", e.PromptTokens, e.CompletionTokens, rec.Usage.Input, rec.Usage.Output)
	case rec.Cost != cost:
		return fmt.Sprintf("cost %d, record %d", cost, rec.Cost)
	case rec.Status != store.StatusSuccess || rec.Estimated || !e.Complete:
		return fmt.Sprintf("status %s, estimated %v, complete %v", rec.Status, rec.Estimated, e.Complete)
	case rec.Stream != e.Stream || rec.Model != e.Model || rec.Attempts != 1:
		return fmt.Sprintf("stream %v, model %s, attempts %d", rec.Stream, rec.Model, rec.Attempts)
	}
	return ""
}
