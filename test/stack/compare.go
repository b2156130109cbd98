package stack

import (
	"context"
	"fmt"
	"strconv"

	"github.com/penstock-gateway/penstock/internal/fakeupstream"
	"github.com/penstock-gateway/penstock/internal/store"
)

// Books are what all sides say about the requests of some keys once nothing moves any
// more: the provider, the records, the budgets and the clients.
type Books struct {
	// Input and Output are the prices of every request, in nano-dollars per token.
	Input, Output int64
	Served        []fakeupstream.Entry
	Keys          []KeyBooks
	// Answers are the ids of the whole answers that clients got. Nil: not compared.
	Answers map[string]bool
}

// KeyBooks are the records of a key and its budgets, of all periods together.
type KeyBooks struct {
	Records []store.Record
	Budget  *Budget // nil: the key has none
}

// DifferenceKind says which law a difference breaks.
type DifferenceKind string

// Kinds of differences.
const (
	MissingRecord DifferenceKind = "missing record"     // a dispatch or a whole answer without one
	Surplus       DifferenceKind = "surplus record"     // one too many that is not flagged as interrupted
	SentTwice     DifferenceKind = "sent twice"         // two dispatches of one request
	WrongRecord   DifferenceKind = "wrong record"       // another status, model or id
	WrongCost     DifferenceKind = "wrong cost"         // not the provider's, or outside of its bounds
	BudgetSum     DifferenceKind = "budget sum"         // the budget spent something else than its records cost
	LeasedLeft    DifferenceKind = "leased left"        // money is still reserved, or charged as lost
	OverTheLimit  DifferenceKind = "over the limit"     // more was spent than there was
	Unaccounted   DifferenceKind = "answer unaccounted" // a whole answer whose record is not exact
)

// Difference is one thing that two sides say differently.
type Difference struct {
	Kind DifferenceKind
	Text string
}

func (d Difference) String() string { return string(d.Kind) + ": " + d.Text }

// Comparison is what Compare found. Amounts are nano-dollars.
type Comparison struct {
	Dispatches  int
	Exact       int   // records that say what the provider says
	Interrupted int   // records of dispatches that are booked at all that was held
	Left        int   // records of clients that hung up
	Surplus     int   // interrupted records of requests that never reached the provider
	Upstream    int64 // what the provider's own ledger comes to
	Recorded    int64 // what the records cost
	Differences []Difference
}

func (c *Comparison) differ(kind DifferenceKind, format string, args ...any) {
	c.Differences = append(c.Differences, Difference{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// String is the sums, and the first of the differences.
func (c *Comparison) String() string {
	const most = 20
	text := fmt.Sprintf("%d dispatches: %d exact, %d interrupted, %d left; %d surplus; provider %d, records %d nano-dollars; %d differences",
		c.Dispatches, c.Exact, c.Interrupted, c.Left, c.Surplus, c.Upstream, c.Recorded, len(c.Differences))
	for _, d := range c.Differences[:min(most, len(c.Differences))] {
		text += "\n\t" + d.String()
	}
	return text
}

// Compare holds everything against everything else and explains each difference.
func (b *Books) Compare() *Comparison {
	c := &Comparison{Dispatches: len(b.Served)}
	byID := b.index(c)
	b.compareServed(c, byID)
	for id := range b.Answers {
		switch r := byID[id]; {
		case r == nil:
			c.differ(MissingRecord, "the whole answer %s", id)
		case r.Status != store.StatusSuccess || r.Estimated:
			c.differ(Unaccounted, "the whole answer %s has the record %+v", id, *r)
		}
	}
	for i := range b.Keys {
		b.Keys[i].compareBudget(c)
	}
	return c
}

// index finds the records of a request, and those that are there twice.
func (b *Books) index(c *Comparison) map[string]*store.Record {
	byID := map[string]*store.Record{}
	for k := range b.Keys {
		for i := range b.Keys[k].Records {
			r := &b.Keys[k].Records[i]
			c.Recorded += r.Cost
			if first := byID[r.RequestID]; first != nil {
				c.differ(Surplus, "two of the request %s: %+v and %+v", r.RequestID, *first, *r)
			}
			byID[r.RequestID] = r
		}
	}
	return byID
}

func (b *Books) compareServed(c *Comparison, byID map[string]*store.Record) {
	dispatched := make(map[string]bool, len(b.Served))
	for _, e := range b.Served {
		cost := int64(e.PromptTokens)*b.Input + int64(e.CompletionTokens)*b.Output
		c.Upstream += cost
		if dispatched[e.RequestID] {
			c.differ(SentTwice, "%+v", e)
		}
		dispatched[e.RequestID] = true
		c.compareOne(e, cost, byID[e.RequestID])
	}
	for id, r := range byID {
		switch {
		case dispatched[id]:
		case r.Status == store.StatusInterrupted:
			c.Surplus++
		case r.Status == store.StatusClientClosed && r.Cost == 0: // it left before anything was sent
		default:
			c.differ(Surplus, "no dispatch has the record %+v", *r)
		}
	}
}

// compareOne holds the provider's row, which comes to cost at most, against its record.
func (c *Comparison) compareOne(e fakeupstream.Entry, cost int64, r *store.Record) {
	switch {
	case r == nil:
		c.differ(MissingRecord, "the dispatch %+v", e)
	case r.Stream != e.Stream || r.Model != e.Model || r.Attempts != 1:
		c.differ(WrongRecord, "the provider's row %+v has the record %+v", e, *r)
	case r.Status == store.StatusInterrupted:
		c.Interrupted++
		if r.Cost != r.Hold || !r.Estimated || r.Hold > 0 && cost > r.Hold {
			c.differ(WrongCost, "an interrupted request is booked at all that was held, which is at least the provider's %d: %+v", cost, *r)
		}
	case r.Status == store.StatusClientClosed:
		c.Left++
		if r.Cost > r.Hold && r.Hold > 0 {
			c.differ(WrongCost, "more than was held: %+v", *r)
		}
	case r.Status != store.StatusSuccess || r.Estimated || r.UpstreamID != e.ID:
		c.differ(WrongRecord, "the provider's row %+v has the record %+v", e, *r)
	case r.Usage.Input != int64(e.PromptTokens) || r.Usage.Output != int64(e.CompletionTokens) || r.Cost != cost:
		c.differ(WrongCost, "the provider's row %+v comes to %d and has the record %+v", e, cost, *r)
	default:
		c.Exact++
	}
}

func (k *KeyBooks) compareBudget(c *Comparison) {
	if k.Budget == nil {
		return
	}
	sum := int64(0)
	for i := range k.Records {
		sum += k.Records[i].Cost
	}
	if b := *k.Budget; b.Spent != sum || b.Overrun != 0 {
		c.differ(BudgetSum, "records cost %d, the budget says %+v", sum, b)
	}
	if b := *k.Budget; b.Leased != 0 || b.Lost != 0 {
		c.differ(LeasedLeft, "%+v", b)
	}
	if b := *k.Budget; b.Spent-b.Overrun+b.Leased > b.Limit {
		c.differ(OverTheLimit, "%+v", b)
	}
}

// AwaitBooks waits until nothing of the keys is on its way any more, and collects what
// there is to compare, with the prices of "fake-…". After an error it gives what was
// there when the time was over, so that a comparison says what is missing.
func (s *Stack) AwaitBooks(ctx context.Context, keys ...string) (*Books, error) {
	b := &Books{Input: FakeInput, Output: FakeOutput}
	late := s.awaitSettled(ctx, keys)
	ctx = context.WithoutCancel(ctx)
	var err error
	if b.Served, err = s.served(ctx); err != nil {
		return nil, err
	}
	for _, key := range keys {
		var k KeyBooks
		if k.Records, err = s.Records(ctx, key); err != nil {
			return nil, err
		}
		if k.Budget, err = s.budgets(ctx, key); err != nil {
			return nil, err
		}
		b.Keys = append(b.Keys, k)
	}
	return b, late
}

// awaitSettled waits until the provider has nothing in flight, each of its rows has a
// record, and nothing is reserved.
func (s *Stack) awaitSettled(ctx context.Context, keys []string) error {
	ids := ""
	for _, key := range keys {
		ids += ",'" + KeyID(key) + "'"
	}
	// Each look starts a psql, which would take from the pods what they need to settle.
	return pollEvery(ctx, 5*soon, func() error {
		sum, err := s.FakeSummary(ctx)
		if err != nil {
			return err
		}
		out, err := s.Query(ctx, `SELECT (SELECT count(*) FROM spend_records WHERE key_id IN (`+ids[1:]+`)) || ' ' ||
			(SELECT coalesce(sum(leased + lost), 0) FROM budgets WHERE substr(entity, 5, 64) IN (`+ids[1:]+`))`)
		if err != nil {
			return err
		}
		var records, reserved int64
		if _, err := fmt.Sscan(out, &records, &reserved); err != nil {
			return fmt.Errorf("cannot read %q: %w", out, err)
		}
		if sum.InFlight != 0 || records < sum.Requests || reserved != 0 {
			return fmt.Errorf("%d are in flight at the provider, %d of %d have a record, %d nano-dollars are leased or lost",
				sum.InFlight, records, sum.Requests, reserved)
		}
		return nil
	})
}

// budgets adds up all periods of a key's budget; nil when it never had one.
func (s *Stack) budgets(ctx context.Context, key string) (*Budget, error) {
	out, err := s.Query(ctx, `SELECT count(*) || ' ' || coalesce(sum(limit_n), 0) || ' ' || coalesce(sum(spent), 0) || ' ' || coalesce(sum(overrun), 0)
		|| ' ' || coalesce(sum(leased), 0) || ' ' || coalesce(sum(lost), 0) FROM budgets WHERE entity = 'key:`+KeyID(key)+`'`)
	if err != nil {
		return nil, err
	}
	var n int
	b := &Budget{}
	if _, err := fmt.Sscan(out, &n, &b.Limit, &b.Spent, &b.Overrun, &b.Leased, &b.Lost); err != nil {
		return nil, fmt.Errorf("cannot read the budgets %q: %w", out, err)
	}
	if n == 0 {
		return nil, nil
	}
	return b, nil
}

// Verify is the ledger's own check of all its rows.
func (s *Stack) Verify(ctx context.Context) (store.Report, error) {
	return s.ledger().Verify(ctx, store.VerifyOptions{})
}

// Count runs a query that gives one number.
func (s *Stack) Count(ctx context.Context, sql string) (int64, error) {
	out, err := s.Query(ctx, sql)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(out, 10, 64)
}
