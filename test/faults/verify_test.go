package faults

import (
	"context"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/fakeupstream"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/test/stack"
)

// settleTime bounds how long adoption and returns may take after the last answer.
const settleTime = 30 * time.Second

// verify waits until everything has settled and compares clients, provider and database.
func verify(ctx context.Context, t *testing.T, s *stack.Stack, key string, got *seen) {
	t.Helper()
	settling, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	served, err := s.FakeLedger(settling)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AwaitRecords(settling, key, len(served)); err != nil {
		t.Error(err)
	}
	if _, err := s.AwaitQuiet(settling, key); err != nil {
		t.Error(err)
	}
	// What was not there in time is told in detail by what is there now.
	records, err := s.Records(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	budget, err := s.Budget(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	byID := once(t, records)
	checkDispatches(t, served, byID)
	checkAnswers(t, got, byID)
	checkSums(t, budget, records, len(served))
}

// once indexes records by request and finds those booked twice.
func once(t *testing.T, records []store.Record) map[string]*store.Record {
	t.Helper()
	byID := map[string]*store.Record{}
	for i := range records {
		r := &records[i]
		if byID[r.RequestID] != nil {
			t.Errorf("two records of %s: %+v and %+v", r.RequestID, *byID[r.RequestID], *r)
		}
		byID[r.RequestID] = r
	}
	return byID
}

// checkDispatches: each row of the provider's ledger has one record, exact or flagged.
func checkDispatches(t *testing.T, served []fakeupstream.Entry, byID map[string]*store.Record) {
	t.Helper()
	dispatched := map[string]bool{}
	for _, e := range served {
		if dispatched[e.RequestID] {
			t.Errorf("%s was sent to the provider twice", e.RequestID)
		}
		dispatched[e.RequestID] = true
		r := byID[e.RequestID]
		switch {
		case r == nil:
			t.Errorf("a dispatch has no record: %+v", e)
		case r.Status == store.StatusInterrupted:
			if r.Cost != r.Hold || !r.Estimated || r.Hold == 0 {
				t.Errorf("an interrupted request is booked at all that was held: %+v", *r)
			}
		case r.Status != store.StatusSuccess || r.UpstreamID != e.ID || r.Estimated ||
			r.Usage.Input != int64(e.PromptTokens) || r.Usage.Output != int64(e.CompletionTokens) ||
			r.Cost != r.Usage.Input*stack.FakeInput+r.Usage.Output*stack.FakeOutput:
			t.Errorf("the provider's row %+v has the record %+v", e, *r)
		}
	}
	for id, r := range byID {
		if !dispatched[id] && r.Status != store.StatusInterrupted {
			t.Errorf("a record without a dispatch: %+v", *r)
		}
	}
}

// checkAnswers: what a client got whole is booked exactly.
func checkAnswers(t *testing.T, got *seen, byID map[string]*store.Record) {
	t.Helper()
	for id := range got.complete {
		if r := byID[id]; r == nil || r.Status != store.StatusSuccess {
			t.Errorf("the whole answer %s has the record %+v", id, r)
		}
	}
}

func checkSums(t *testing.T, budget stack.Budget, records []store.Record, served int) {
	t.Helper()
	sum, interrupted := int64(0), 0
	for i := range records {
		sum += records[i].Cost
		if records[i].Status == store.StatusInterrupted {
			interrupted++
		}
	}
	t.Logf("%d dispatches, %d records, %d interrupted", served, len(records), interrupted)
	if budget.Spent != sum || budget.Leased != 0 || budget.Overrun != 0 || budget.Lost != 0 {
		t.Errorf("records cost %d, the budget says %+v", sum, budget)
	}
	// A kill that interrupts nothing proves nothing.
	if interrupted == 0 {
		t.Error("no request was interrupted: the kills missed the load")
	}
}
