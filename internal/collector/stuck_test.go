package collector_test

import (
	"encoding/hex"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/store"
)

// fenced says whether a worker is told to restart.
func (b *bundle) fenced(h *ledgerv1.Holder) bool {
	b.t.Helper()
	beat, err := b.client.Heartbeat(b.t.Context(), &ledgerv1.HeartbeatRequest{Holder: h})
	if err != nil {
		b.t.Fatal(err)
	}
	return beat.GetFenced()
}

// After a failover the database is behind what a worker was told. Its records can
// never be committed; it is fenced instead of being refused for ever.
func TestLostCommitsFenceTheWorker(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *collector.Config) { c.GapWait = time.Nanosecond })
	h, other := holder(1), holder(2)
	s := b.open()
	s.send(records(h, 5, 6)) // 1 to 4 were acked by a server that is gone
	s.wantAck(0)
	s.send(records(h, 5, 6))
	eventually(t, "the worker is fenced", func() bool { return b.c.Stats().Fenced == 1 })
	if !b.fenced(h) || b.fenced(other) {
		t.Error("want the one worker fenced and no other")
	}
	s.send(records(h, 5, 6))
	eventually(t, "a third gap", func() bool { return b.c.Stats().Gaps == 3 })
	if n := b.c.Stats().Fenced; n != 1 {
		t.Errorf("fenced %d times", n)
	}
}

// A gap that is filled in time is none.
func TestAGapThatIsFilledFencesNobody(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	h := holder(1)
	s := b.open()
	for range 3 {
		s.send(records(h, 5, 6))
	}
	eventually(t, "a gap", func() bool { return b.c.Stats().Gaps > 0 })
	s.send(records(h, 1, 6))
	s.wantAck(6)
	s.close()
	if b.fenced(h) {
		t.Error("a worker that filled its gap is fenced")
	}
}

// A worker whose earlier grant the database has lost can get no money any more.
func TestALostGrantFencesTheWorker(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	h, hash := holder(1), b.key("sk-one", 1_000)
	if b.fenced(h) {
		t.Fatal("fenced too early")
	}
	_, err := b.client.Grant(t.Context(), grant(h, 7, "key:"+hex.EncodeToString(hash), 10))
	wantCode(t, "grants 1 to 6 are not there", err, codes.FailedPrecondition)
	if !b.fenced(h) {
		t.Error("the worker asks for ever")
	}
}

// A live worker's record that charges a lease which is not there fences it; its
// journal's adopter books that record as a dead letter and the others as they are.
func TestRecordsWithoutALeaseAreBuried(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *collector.Config) { c.BatchRows = 3 })
	w, hash := b.worker(1), b.key("sk-one", 1_000)
	id := hex.EncodeToString(hash)
	lease := b.lease(w.holder, hash, 1, 900)
	gone := &ledgerv1.LeaseRef{Seq: 2, BudgetId: lease.GetBudgetId()}
	var batch []*ledgerv1.SpendRecord
	for i := range 10 {
		ref := lease
		if i == 1 || i == 7 {
			ref = gone
		}
		batch = append(batch, w.finish(w.begin(w.opening("req", id, ref, 20)), "req", id, ref, 10))
	}
	s := b.open()
	s.send(&ledgerv1.RecordBatch{Holder: w.holder, Records: batch})
	s.wantEnd("what no retry makes right", codes.Internal)
	if !b.fenced(w.holder) {
		t.Error("the worker sends for ever")
	}
	w.die()
	eventually(t, "the journal is adopted", func() bool { return b.c.Stats().Adopted == 1 })
	if n := b.c.Stats(); n.Buried != 2 || n.Adopted != 1 || n.AdoptFailures != 0 || n.Fenced != 1 {
		t.Errorf("counted %+v", n)
	}
	if k, err := b.store.Key(t.Context(), id); err != nil || k.Spend != 100 {
		t.Errorf("spend %d %v, want all ten", k.Spend, err)
	}
	r, err := b.store.Verify(t.Context(), store.VerifyOptions{})
	if err != nil || !r.Explained() || r.DeadLetters.Count != 2 || r.Totals.Records != 8 {
		t.Errorf("%+v %+v %v", r.Totals, r.Differences, err)
	}
}
