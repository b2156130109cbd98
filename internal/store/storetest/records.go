package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// Batches may be sent again with other boundaries; a hole writes nothing.
func commitReplay(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	rec := func(from, to uint64) (out []store.Record) {
		for seq := from; seq <= to; seq++ {
			out = append(out, record(seq, id, cent, 0, l))
		}
		return out
	}
	last, err := e.Commit(e.ctx, e.holder, rec(2, 3))
	equal(e, "a batch beyond the next number", errors.Is(err, store.ErrGap), true)
	equal(e, "cursor beside the gap", last, 0)
	equal(e, "1 to 3", e.commit(rec(1, 3)...), 3)
	equal(e, "the same again", e.commit(rec(1, 3)...), 3)
	equal(e, "2 to 5", e.commit(rec(2, 5)...), 5)
	last, err = e.Commit(e.ctx, e.holder, rec(7, 7))
	equal(e, "a hole after 5", errors.Is(err, store.ErrGap), true)
	equal(e, "cursor beside the hole", last, 5)
	_, err = e.Commit(e.ctx, e.holder, slices.Concat(rec(6, 6), rec(8, 8)))
	equal(e, "a hole within a batch", errors.Is(err, store.ErrGap), true)
	equal(e, "an empty batch asks for the cursor", e.commit(), 5)
	equal(e, "records", e.sql(`SELECT count(*), sum(cost), min(seq), max(seq) FROM spend_records`), fmt.Sprintf("5|%d|1|5", 5*cent))
	equal(e, "lease", e.sql(`SELECT spent FROM leases`), fmt.Sprint(5*cent))
	equal(e, "daily sum", e.sql(`SELECT sum(cost), sum(requests) FROM spend_daily`), fmt.Sprintf("%d|5", 5*cent))
}

// A record that cannot stand among the others moves its money, advances the
// cursor in order, and is kept; texts are cleaned.
func commitPoison(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	rs := make([]store.Record, 9)
	for i := range rs {
		rs[i] = record(uint64(i+1), id, cent, 0, l)
	}
	rs[1].Cost = -5 // its charge of a cent stands
	rs[3].Start = time.Date(292_278_994, 1, 1, 0, 0, 0, 0, time.UTC)
	rs[5].UserID = "nul\x00 and \xff\xfe bytes"
	rs[5].Tags = []string{"t\x00"}
	rs[6].Usage.Input = math.MaxInt64
	rs[7].Cost, rs[7].Charges[0].Cost = math.MaxInt64, -7 // a negative charge gives nothing back
	equal(e, "cursor", e.commit(rs...), 9)
	equal(e, "dead letters in order", e.sql(`SELECT seq FROM dead_letters ORDER BY id`), "2\n4\n7\n8")
	equal(e, "the rest", e.sql(`SELECT count(*) FROM spend_records`), "5")
	equal(e, "all moved their money", e.sql(`SELECT spent FROM leases`), fmt.Sprint(8*cent))
	got, err := e.Records(e.ctx, store.RecordFilter{RequestID: "req-0006"})
	e.ok(err)
	equal(e, "cleaned", got[0].UserID, "nul and \uFFFD bytes")
	equal(e, "cleaned tag", got[0].Tags[0], "t")
	equal(e, "the caller's record is left alone", rs[5].UserID, "nul\x00 and \xff\xfe bytes")
}

// Money for a lease that does not exist is an error, never nothing in silence.
func commitUnknownLease(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	_, err := e.Commit(e.ctx, e.holder, []store.Record{record(1, id, cent, 0, l), record(2, id, cent, 0, store.LeaseRef{Seq: 9, Budget: l.Budget})})
	if !errors.Is(err, store.ErrNoLease) || errors.Is(err, store.ErrUnavailable) {
		e.Fatalf("got %v, want ErrNoLease", err)
	}
	equal(e, "nothing was written", e.sql(`SELECT (SELECT count(*) FROM spend_records), (SELECT spent FROM leases)`), "0|0")
	equal(e, "without charges", e.commit(record(1, id, cent, 0)), 1)
}

// Holders that commit at once in other orders of the same keys neither deadlock
// nor lose a sum.
func commitConcurrent(e *env) {
	const holders, batches, keys = 4, 10, 8
	var wg sync.WaitGroup
	for h := range holders {
		wg.Go(func() {
			holder := store.HolderID(fmt.Sprintf("pod-%d/0/cc", h))
			for b := range batches {
				var rs []store.Record
				for k := range keys {
					seq := uint64(b*keys + k + 1)
					rs = append(rs, record(seq, keyID(fmt.Sprint((k*(2*h+1)+b)%keys)), cent, 0))
				}
				if _, err := e.Commit(e.ctx, holder, rs); err != nil {
					e.Error(err)
				}
			}
		})
	}
	wg.Wait()
	const all = holders * batches * keys
	equal(e, "daily sums", e.sql(`SELECT sum(requests), sum(cost) FROM spend_daily`), fmt.Sprintf("%d|%d", all, all*cent))
	equal(e, "records", e.sql(`SELECT count(*) FROM spend_records`), fmt.Sprint(all))
}

// A record comes back as it went in.
func spendRecords(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	r := record(1, id, 3*cent, cent, l)
	r.KeyAlias, r.TeamID, r.OrganizationID, r.EndUser, r.Tags = "alias", "t1", "o1", "Ż中🙂", []string{"a", "b,\"c\""}
	r.RequestedModel, r.ModelID, r.Provider, r.APIBase = "gpt", "m-1", "openai", "https://api.example/v1"
	r.FirstToken, r.Stream, r.ErrorCode, r.Estimated = r.Start.Add(time.Millisecond), true, "none", true
	r.Usage.Cached, r.Usage.CacheWrite, r.Usage.Reasoning = 4, 3, 1
	r.PriceVersion, r.UpstreamID, r.ClientIP, r.OutputCap, r.Attempts = "p1", "chatcmpl-1", "10.0.0.1", 256, 2
	e.commit(r)
	got, err := e.Records(e.ctx, store.RecordFilter{KeyID: id})
	e.ok(err)
	equal(e, "records", len(got), 1)
	equal(e, "record", fmt.Sprintf("%+v", got[0]), fmt.Sprintf("%+v", r))
	for name, f := range map[string]store.RecordFilter{
		"other key": {KeyID: "x"}, "other user": {UserID: "x"}, "other id": {RequestID: "x"},
		"ends before": {To: r.Start}, "begins after": {From: r.Start.Add(time.Microsecond)},
	} {
		got, err := e.Records(e.ctx, f)
		e.ok(err)
		equal(e, name, len(got), 0)
	}
}

// Pages follow each other without a gap or a double, also within one instant.
func spendPages(e *env) {
	var rs []store.Record
	for seq := uint64(1); seq <= 25; seq++ {
		r := record(seq, "k", cent, 0)
		r.Start = start.Add(time.Duration(seq/10) * time.Second) // up to ten at once
		rs = append(rs, r)
	}
	e.commit(rs...)
	var seen []string
	f := store.RecordFilter{From: start, To: start.Add(time.Minute), Limit: 4}
	for {
		page, err := e.Records(e.ctx, f)
		e.ok(err)
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			seen = append(seen, r.RequestID)
		}
		last := page[len(page)-1]
		f.BeforeStart, f.BeforeID = last.Start, last.RequestID
	}
	equal(e, "rows", len(seen), 25)
	equal(e, "newest first", slices.IsSortedFunc(seen, func(a, b string) int { return -compare(a, b) }), true)
	equal(e, "no double", len(slices.Compact(slices.Clone(seen))), 25)
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Days are added up per key and model, in UTC, from the sums and from the records.
func spendDays(e *env) {
	midnight := time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC)
	rs := []store.Record{record(1, "k1", cent, 0), record(2, "k1", 2*cent, 0), record(3, "k2", 4*cent, 0), record(4, "k1", 8*cent, 0)}
	rs[0].Start, rs[3].Start = midnight.Add(-time.Millisecond), midnight
	rs[3].Model = "other"
	e.commit(rs...)
	for name, f := range map[string]store.RecordFilter{
		"whole days": {From: midnight.AddDate(0, 0, -1), To: midnight.AddDate(0, 0, 1)},
		"finer":      {From: midnight.AddDate(0, 0, -1).Add(time.Second), To: midnight.Add(time.Second)},
	} {
		days, err := e.DailySpend(e.ctx, f)
		e.ok(err)
		var got []string
		for _, d := range days {
			got = append(got, fmt.Sprintf("%s %s %s %d %d %d", d.Day.Format(time.DateOnly), d.KeyID, d.Model, d.Requests, d.Cost/cent, d.Usage.Input))
		}
		equal(e, name, fmt.Sprint(got), "[2026-03-14 k1 gpt-x 2 3 20 2026-03-14 k2 gpt-x 1 4 10 2026-03-15 k1 other 1 8 10]")
	}
	days, err := e.DailySpend(e.ctx, store.RecordFilter{KeyID: "k2", UserID: "u1"})
	e.ok(err)
	equal(e, "one key", len(days), 1)
	days, err = e.DailySpend(e.ctx, store.RecordFilter{To: midnight})
	e.ok(err)
	equal(e, "before midnight", len(days), 2)
}
