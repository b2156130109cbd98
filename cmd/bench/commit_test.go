package main

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// Shares are of runs that followed each other, CPU time is per record, and each target
// that is missed is named.
func TestCommitVerdict(t *testing.T) {
	t.Parallel()
	run := func(rate float64, collector time.Duration) commitSample {
		return commitSample{rows: 1000, took: time.Duration(1000 / rate * float64(time.Second)), collector: 1000 * collector}
	}
	copies := []commitSample{run(1000, 0), run(2000, 0), run(500, 0)}
	for _, c := range []struct {
		why     string
		commits []commitSample
		want    string // part of the verdict; empty: accepted
	}{
		{"as asked for", []commitSample{run(700, 5*time.Microsecond), run(1300, 5*time.Microsecond), run(310, 5*time.Microsecond)}, ""},
		{"too slow in two of three pairs", []commitSample{run(500, 0), run(1000, 0), run(400, 0)}, "50 %"},
		{"too much CPU time", []commitSample{run(700, 9*time.Microsecond), run(1300, 9*time.Microsecond), run(310, 5*time.Microsecond)}, "9µs"},
	} {
		if got := commitDefect(c.commits, copies); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
	o := runOptions{runs: 3, records: 1000, accept: true}
	table := o.commitTable([]commitSample{run(700, 5*time.Microsecond)}, copies[:1])
	for _, part := range []string{"--records 1000 --check", "| 700 | 5.00 µs |", "**70 %**", "**5.00 µs**"} {
		if !strings.Contains(table, part) {
			t.Errorf("the table lacks %q:\n%s", part, table)
		}
	}
}

// Records are numbered without gaps over messages of a worker's size, and are charged to
// the lease of their key.
func TestBatches(t *testing.T) {
	t.Parallel()
	keys := []benchKey{{id: "a", entity: "key:a"}, {id: "b", entity: "key:b"}}
	w := &worker{holder: &ledgerv1.Holder{}, leases: map[string]*ledgerv1.Lease{"key:a": {Seq: 1, BudgetId: 7}, "key:b": {Seq: 1, BudgetId: 8}}}
	all := w.batches(keys, workerBatch+3, rand.New(rand.NewPCG(1, 1)))
	if len(all) != 2 || len(all[0].Records) != workerBatch || len(all[1].Records) != 3 {
		t.Fatalf("%d messages", len(all))
	}
	seq := uint64(0)
	for _, b := range all {
		for _, r := range b.Records {
			seq++
			if want := w.leases["key:"+r.KeyId].BudgetId; r.Seq != seq || r.Charges[0].Lease.BudgetId != want {
				t.Fatalf("record %d: number %d, budget %d, want %d", seq, r.Seq, r.Charges[0].Lease.BudgetId, want)
			}
		}
	}
}
