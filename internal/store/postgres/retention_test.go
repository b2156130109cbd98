package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
)

// keeping opens a database again as a collector that keeps records for 30 days.
func (b *bundle) keeping(t *testing.T) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Config{URL: b.direct, KeepDays: 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// pastDays makes the partitions of the n days before the last 30, and some before
// them, each with a record, and returns the next number of the records' holder.
func (b *bundle) pastDays(t *testing.T, n int) uint64 {
	t.Helper()
	var rs []store.Record
	for i := range n {
		day := time.Now().UTC().AddDate(0, 0, -31-i)
		from := day.Format(time.DateOnly)
		b.do(t, fmt.Sprintf("CREATE TABLE spend_records_p%s PARTITION OF spend_records FOR VALUES FROM ('%s 00:00:00+00') TO ('%s 00:00:00+00')",
			day.Format("20060102"), from, day.AddDate(0, 0, 1).Format(time.DateOnly)))
		rs = append(rs, aged(uint64(i+1), day))
	}
	// Before all partitions, and one that cannot stand among them.
	rs = append(rs, aged(uint64(n+1), time.Now().UTC().AddDate(-2, 0, 0)), aged(uint64(n+2), time.Now().UTC()))
	rs[n+1].Usage.Input = -1
	if _, err := b.store.Commit(t.Context(), "old", rs); err != nil {
		t.Fatal(err)
	}
	b.do(t, `UPDATE cursors SET created = created - interval '70 days'`) // as old as what it counts
	return uint64(n + 3)
}

func aged(seq uint64, start time.Time) store.Record {
	return store.Record{Seq: seq, RequestID: fmt.Sprint("r", seq), KeyID: "k", Model: "m", Start: start, End: start, Status: store.StatusSuccess, Attempts: 1, Cost: 7}
}

func (b *bundle) do(t *testing.T, sql string) string {
	t.Helper()
	rows, err := b.query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(rows, " ")
}

const partitions = `SELECT count(*) FROM pg_class WHERE relname ~ '^spend_records_p[0-9]{8}$' AND relkind = 'r'`

// Old days go, the sums stay, and a check knows what it cannot recompute any more.
func TestRetention(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	next := b.pastDays(t, 3)
	if err := b.store.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.do(t, `SELECT count(*) FROM spend_records`); got != "4" {
		t.Fatalf("%s records are left by a collector that keeps all, want 4", got)
	}
	// A collector that died between detach and drop leaves a table.
	leftover := "spend_records_p" + time.Now().UTC().AddDate(0, 0, -32).Format("20060102")
	b.do(t, "ALTER TABLE spend_records DETACH PARTITION "+leftover)
	keep := b.keeping(t)
	before := b.do(t, partitions)
	for range 2 { // again: nothing is left to do
		if err := keep.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.do(t, `SELECT (SELECT count(*) FROM spend_records), (SELECT count(*) FROM dead_letters), (SELECT sum(cost) FROM spend_daily), to_regclass('`+leftover+`') IS NULL`); got != "0|1|35|t" {
		t.Errorf("records|dead letters|daily cost|leftover gone: %s", got)
	}
	if got := b.do(t, partitions); got == before {
		t.Errorf("%s partitions before and after", got)
	}
	if _, err := keep.Commit(t.Context(), "old", []store.Record{aged(next, time.Now().UTC())}); err != nil {
		t.Fatal(err)
	}
	r, err := keep.Verify(t.Context(), store.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	floor := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -30)
	if !r.Explained() || !r.KeptFrom.Equal(floor) || r.Totals.Records != 1 || r.Totals.DailyCost != 14 {
		t.Errorf("kept from %v, want %v; %+v; %+v", r.KeptFrom, floor, r.Totals, r.Differences)
	}
	b.do(t, `UPDATE spend_daily SET cost = cost + 1 WHERE day >= (now() AT TIME ZONE 'UTC')::date - 29`)
	if r, err = keep.Verify(t.Context(), store.VerifyOptions{}); err != nil || r.Differences.Count != 1 {
		t.Errorf("a wrong sum of a day that is kept: %+v %v", r.Differences, err)
	}
}

// Commits go on while days are dropped, and not one is refused.
func TestRetentionUnderLoad(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	b.pastDays(t, 20)
	keep := b.keeping(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	committed, slowest := 0, time.Duration(0)
	for h := range 4 {
		s := open(t, b.direct)
		wg.Go(func() {
			for seq := uint64(1); ; seq++ {
				began := time.Now()
				_, err := s.Commit(t.Context(), store.HolderID(fmt.Sprintf("pod/%d/aa", h)), []store.Record{aged(seq, time.Now().UTC())})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				committed, slowest = committed+1, max(slowest, time.Since(began))
				mu.Unlock()
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	err := keep.Maintain(t.Context())
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.do(t, `SELECT count(*), count(*) FILTER (WHERE start_ts < now() - interval '31 days') FROM spend_records`), fmt.Sprintf("%d|0", committed); got != want {
		t.Errorf("records|old ones: %s, want %s", got, want)
	}
	t.Logf("%d commits meanwhile, the slowest took %v", committed, slowest)
	if r, err := keep.Verify(t.Context(), store.VerifyOptions{}); err != nil || !r.Explained() {
		t.Errorf("%+v %v", r.Differences, err)
	}
}

// A report that runs for long is not waited for: commits would wait too.
func TestRetentionLeavesAReaderAlone(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	b.pastDays(t, 1)
	keep := b.keeping(t)
	reader, err := b.conn.BeginTx(t.Context(), pgx.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Exec(t.Context(), `SELECT count(*) FROM spend_records`); err != nil {
		t.Fatal(err)
	}
	if err := keep.Maintain(t.Context()); err == nil || !strings.Contains(err.Error(), "--keep-days") {
		t.Errorf("beside a reader: %v, want an error that says why", err)
	}
	began := time.Now()
	if err := keep.Maintain(t.Context()); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("asked again at once: %v after %v, want nothing", err, time.Since(began))
	}
	if err := reader.Rollback(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := b.do(t, `SELECT count(*) FROM spend_records WHERE start_ts < now() - interval '30 days'`); got != "2" {
		t.Errorf("%s old records, want 2", got)
	}
}

// Records that came too late for a partition go too, and their young leases and budgets
// say that they cannot be recomputed any more.
func TestRetentionOfLateRecords(t *testing.T) {
	t.Parallel()
	b := migrated(t)
	keep := b.keeping(t)
	limit, id := int64(1000), strings.Repeat("a", 64)
	if err := keep.CreateKey(t.Context(), store.Key{ID: id, Name: "sk-...a", MaxBudget: &limit}); err != nil {
		t.Fatal(err)
	}
	if _, err := keep.Heartbeat(t.Context(), []store.HolderID{"h"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	res, err := keep.Grant(t.Context(), store.Grant{Holder: "h", Seq: 1, Wants: []store.Want{{Entities: []string{store.KeyEntity(id)}, Amount: 100}}})
	if err != nil || len(res.Leases) != 1 {
		t.Fatalf("%+v %v", res, err)
	}
	late := aged(1, time.Now().UTC().AddDate(0, 0, -50))
	late.Charges = []store.LeaseCharge{{LeaseRef: res.Leases[0].LeaseRef, Cost: 7}}
	if _, err := keep.Commit(t.Context(), "h", []store.Record{late}); err != nil {
		t.Fatal(err)
	}
	if _, err := keep.Return(t.Context(), "h", []store.ReturnLease{{LeaseRef: res.Leases[0].LeaseRef, After: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := keep.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := keep.Verify(t.Context(), store.VerifyOptions{})
	if err != nil || !r.Explained() || r.Totals.Records != 0 || r.Unchecked.Count != 1 {
		t.Errorf("%+v %+v %v", r.Totals, r.Differences, err)
	}
}
