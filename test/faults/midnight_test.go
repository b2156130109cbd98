package faults

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/journal"
	"github.com/penstock-gateway/penstock/internal/record"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/load"
	"github.com/penstock-gateway/penstock/test/stack"
)

// TestPeriodEnds is law 2 at the ends of a budget's periods: two pods spend it as fast
// as it comes, each request belongs to the period of its lease, and no period is passed.
func TestPeriodEnds(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	pods := startPods(ctx, t, 2, stack.Config{Workers: 2})
	key, err := pods[0].NewKey(ctx, stack.KeyOptions{Budget: 3, Duration: "2s"})
	if err != nil {
		t.Fatal(err)
	}
	c := centsClients()
	stop := sending(ctx, pods, c, []*load.Request{ask(key, "cents-slow-20ms", false), ask(key, "cents-pace-4ms", true)})
	defer stop()
	rows := "SELECT count(*) FROM budgets WHERE NOT current AND spent > 0 AND entity = 'key:" + stack.KeyID(key) + "'"
	eventually(ctx, t, func() bool {
		n, err := pods[0].Count(ctx, rows)
		return err == nil && n >= int64(scaled().periods)
	})
	stop()
	_, found := sortedOut(ctx, t, pods[0], c, key)
	if found.Exact != found.Dispatches {
		t.Errorf("nobody died, and not all is exact: %s", found)
	}
	c.only(t, "whole", "429 budget_exceeded", "429 budget_held")
}

// oldRecords are what a worker had booked when it died: over four days, up to and from
// each midnight on.
func oldRecords() []time.Time {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	var all []time.Time
	for day := -3; day <= 0; day++ {
		midnight := today.AddDate(0, 0, day)
		all = append(all, midnight.Add(-time.Millisecond), midnight)
	}
	return all
}

// deadWorker leaves the journal of a worker that was granted money, booked a record for
// each of the times and died in a further request.
func deadWorker(ctx context.Context, t *testing.T, s *stack.Stack, key string, times []time.Time) {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+filepath.Join(s.RunDir(), "ledger.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := ledgerv1.NewLedgerClient(conn)
	id := journal.Identity{PodUID: s.PodUID(), Index: 9}
	_, _ = rand.Read(id.Epoch[:]) // never fails
	j, err := journal.Create(journal.Config{Root: filepath.Join(s.RunDir(), "journal"), Identity: id})
	if err != nil {
		t.Fatal(err)
	}
	holder := &ledgerv1.Holder{PodUid: id.PodUID, Index: id.Index, Epoch: id.Epoch[:]}
	if _, err := client.Heartbeat(ctx, &ledgerv1.HeartbeatRequest{Holder: holder, JournalDir: id.Folder()}); err != nil {
		t.Fatal(err)
	}
	granted, err := client.Grant(ctx, &ledgerv1.GrantRequest{Holder: holder, Seq: 1, Wants: []*ledgerv1.Want{{
		Entities: []string{"key:" + stack.KeyID(key)}, AmountNano: int64(len(times)+2) * centsHold,
	}}})
	if err != nil || len(granted.GetLeases()) != 1 {
		t.Fatalf("no money: %v %v", granted, err)
	}
	lease := granted.GetLeases()[0]
	book := record.New(record.Config{Journal: j, Client: client, Holder: holder})
	for i, at := range append(times, time.Now()) {
		rec := &ledgerv1.SpendRecord{
			RequestId: fmt.Sprintf("old-%d", i), KeyId: stack.KeyID(key), CallType: "chat_completion", RequestedModel: "cents-x", Model: "fake",
			StartMs: at.UnixMilli(), EndMs: at.UnixMilli() + 2, CostNano: centsHold, HoldNano: centsHold, Attempts: 1,
			Charges: []*ledgerv1.LeaseCharge{{Lease: &ledgerv1.LeaseRef{Seq: lease.GetSeq(), BudgetId: lease.GetBudgetId()}, CostNano: centsHold}},
		}
		ticket, err := book.Open(rec)
		if err != nil {
			t.Fatal(err)
		}
		if i == len(times) {
			break // it dies here
		}
		rec.Status = ledgerv1.SpendRecord_STATUS_SUCCESS
		if _, err := book.Close(ticket, rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Stop(); err != nil {
		t.Fatal(err)
	}
}

// TestOldRecordsAndDetach: records of days ago arrive, in one batch over several
// midnights, from a journal that nobody could take over before; then the days that are
// not kept are detached and dropped. Both happen under load, which notices neither.
func TestOldRecordsAndDetach(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	s := start(ctx, t, stack.Config{Workers: 2})
	times := oldRecords()
	first := times[1] // the first midnight
	if _, err := s.Query(ctx, fmt.Sprintf(`CREATE TABLE spend_records_p%s PARTITION OF spend_records FOR VALUES FROM ('%s') TO ('%s')`,
		first.Format("20060102"), first.Format(time.RFC3339), first.AddDate(0, 0, 1).Format(time.RFC3339))); err != nil {
		t.Fatal(err)
	}
	busy, old, c := newKey(ctx, t, s, 100_000), newKey(ctx, t, s, 100), centsClients()
	stop := sending(ctx, []*stack.Stack{s}, c, []*load.Request{ask(busy, "cents-slow-20ms", false), ask(busy, "cents-pace-1ms", true)})
	defer stop()
	more := func() {
		next := c.seen("whole") + 4*connections
		until(ctx, t, func() bool { return c.seen("whole") >= next })
	}
	more()
	deadWorker(ctx, t, s, old, times)
	eventually(ctx, t, func() bool {
		records, err := s.Records(ctx, old)
		return err == nil && len(records) == len(times)+1
	})
	checkOld(ctx, t, s, old, times)
	more()
	keeping, err := postgres.Open(ctx, postgres.Config{URL: s.DatabaseURL(), KeepDays: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer keeping.Close()
	if err := keeping.Maintain(ctx); err != nil {
		t.Fatal(err)
	}
	more()
	stop()
	if _, found := sortedOut(ctx, t, s, c, busy); found.Exact != found.Dispatches {
		t.Errorf("the load noticed: %s", found)
	}
	c.only(t, "whole")
	want, floor := 1, time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -2)
	for _, at := range times {
		if !at.Before(floor) {
			want++
		}
	}
	records, err := s.Records(ctx, old)
	if err != nil || len(records) != want {
		t.Errorf("%d records are kept (%v), want %d", len(records), err, want)
	}
	if n, err := s.Count(ctx, "SELECT count(*) FROM pg_class WHERE relname = 'spend_records_p"+first.Format("20060102")+"'"); err != nil || n != 0 {
		t.Errorf("the day's partition is still there: %v", err)
	}
}

// checkOld: each record is there once at its time, the last one as interrupted, and all
// of the money is settled.
func checkOld(ctx context.Context, t *testing.T, s *stack.Stack, key string, times []time.Time) {
	t.Helper()
	settling, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	budget, err := s.AwaitQuiet(settling, key)
	if want := int64(len(times)+1) * centsHold; err != nil || budget.Spent != want || budget.Overrun != 0 || budget.Lost != 0 {
		t.Errorf("%+v %v, want spent %d", budget, err, want)
	}
	records, err := s.Records(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]store.Record{}
	for _, r := range records {
		byID[r.RequestID] = r
	}
	for i, at := range times {
		if r := byID[fmt.Sprintf("old-%d", i)]; r.Status != store.StatusSuccess || !r.Start.Equal(at) || r.Cost != centsHold {
			t.Errorf("the record of %s is %+v", at, r)
		}
	}
	if r := byID[fmt.Sprintf("old-%d", len(times))]; r.Status != store.StatusInterrupted || r.Cost != centsHold {
		t.Errorf("the request in which the worker died is %+v", r)
	}
	report, err := s.Verify(ctx)
	if err != nil || !report.Explained() {
		t.Errorf("the ledger's own check: %v %+v", err, report.Differences)
	}
}
