package stack_test

import (
	"slices"
	"testing"

	"github.com/penstock-gateway/penstock/internal/fakeupstream"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/test/stack"
)

const fakeCost = 10*stack.FakeInput + 2*stack.FakeOutput

// oneBook is a request that everybody agrees on.
func oneBook() *stack.Books {
	r := store.Record{
		UpstreamID: "a", RequestID: "r", Model: "fake", Attempts: 1, Status: store.StatusSuccess, Cost: fakeCost, Hold: fakeCost + 1,
	}
	r.Usage.Input, r.Usage.Output = 10, 2
	return &stack.Books{
		Input: stack.FakeInput, Output: stack.FakeOutput,
		Served:  []fakeupstream.Entry{{ID: "a", RequestID: "r", Model: "fake", PromptTokens: 10, CompletionTokens: 2}},
		Keys:    []stack.KeyBooks{{Records: []store.Record{r}, Budget: &stack.Budget{Limit: 1e9, Spent: fakeCost}}},
		Answers: map[string]bool{"r": true},
	}
}

// A comparison that overlooks one kind of loss proves nothing about it.
func TestEachDifferenceIsFound(t *testing.T) {
	t.Parallel()
	record := func(change func(*store.Record)) func(*stack.Books) {
		return func(b *stack.Books) { change(&b.Keys[0].Records[0]) }
	}
	budget := func(change func(*stack.Budget)) func(*stack.Books) {
		return func(b *stack.Books) { change(b.Keys[0].Budget) }
	}
	interrupted := func(r *store.Record) {
		r.Status, r.Estimated, r.Cost = store.StatusInterrupted, true, r.Hold
	}
	for _, c := range []struct {
		why    string
		change func(b *stack.Books)
		want   []stack.DifferenceKind
	}{
		{"equal", func(*stack.Books) {}, nil},
		{"a lost record", func(b *stack.Books) { b.Keys[0].Records = nil },
			[]stack.DifferenceKind{stack.MissingRecord, stack.MissingRecord, stack.BudgetSum}}, // of the dispatch, and of the answer
		{"a record of nothing", func(b *stack.Books) { b.Served = nil }, []stack.DifferenceKind{stack.Surplus}},
		{"a record twice", func(b *stack.Books) {
			b.Keys[0].Records = append(b.Keys[0].Records, b.Keys[0].Records[0])
			b.Keys[0].Budget.Spent *= 2
		}, []stack.DifferenceKind{stack.Surplus}},
		{"a request that was sent twice", func(b *stack.Books) { b.Served = append(b.Served, b.Served[0]) }, []stack.DifferenceKind{stack.SentTwice}},
		{"a nano-dollar too much", func(b *stack.Books) {
			b.Keys[0].Records[0].Cost++
			b.Keys[0].Budget.Spent++
		}, []stack.DifferenceKind{stack.WrongCost}},
		{"other tokens", record(func(r *store.Record) { r.Usage.Output++ }), []stack.DifferenceKind{stack.WrongCost}},
		{"an estimate of what the provider told", record(func(r *store.Record) { r.Estimated = true }),
			[]stack.DifferenceKind{stack.WrongRecord, stack.Unaccounted}},
		{"a stream that was none", record(func(r *store.Record) { r.Stream = true }), []stack.DifferenceKind{stack.WrongRecord}},
		{"an interrupted request", func(b *stack.Books) {
			interrupted(&b.Keys[0].Records[0])
			b.Answers, b.Keys[0].Budget.Spent = nil, fakeCost+1
		}, nil},
		{"one that never reached the provider", func(b *stack.Books) {
			interrupted(&b.Keys[0].Records[0])
			b.Answers, b.Served, b.Keys[0].Budget.Spent = nil, nil, fakeCost+1
		}, nil},
		{"an interrupted request whose answer was whole", func(b *stack.Books) {
			interrupted(&b.Keys[0].Records[0])
			b.Keys[0].Budget.Spent++
		}, []stack.DifferenceKind{stack.Unaccounted}},
		{"an interrupted request that cost more than was held", func(b *stack.Books) {
			interrupted(&b.Keys[0].Records[0])
			b.Keys[0].Records[0].Hold, b.Keys[0].Records[0].Cost = fakeCost-1, fakeCost-1
			b.Answers, b.Keys[0].Budget.Spent = nil, fakeCost-1
		}, []stack.DifferenceKind{stack.WrongCost}},
		{"money that nobody spent", budget(func(b *stack.Budget) { b.Spent++ }), []stack.DifferenceKind{stack.BudgetSum}},
		{"money that stays leased", budget(func(b *stack.Budget) { b.Leased = 1 }), []stack.DifferenceKind{stack.LeasedLeft}},
		{"money that stays lost", budget(func(b *stack.Budget) { b.Lost = 1 }), []stack.DifferenceKind{stack.LeasedLeft}},
		{"more than there was", budget(func(b *stack.Budget) { b.Limit = fakeCost - 1 }), []stack.DifferenceKind{stack.OverTheLimit}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			books := oneBook()
			c.change(books)
			found := books.Compare()
			var kinds []stack.DifferenceKind
			for _, d := range found.Differences {
				kinds = append(kinds, d.Kind)
			}
			if !slices.Equal(kinds, c.want) {
				t.Errorf("got %s, want %v", found, c.want)
			}
		})
	}
}
