package collector_test

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/journal"
	"github.com/penstock-gateway/penstock/internal/record"
	"github.com/penstock-gateway/penstock/internal/store"
)

// worker is a worker of the pod with a real journal.
type worker struct {
	*bundle
	holder  *ledgerv1.Holder
	journal *journal.Journal
}

func (b *bundle) worker(n uint32) *worker {
	b.t.Helper()
	w := &worker{bundle: b, holder: holder(n)}
	j, err := journal.Create(journal.Config{
		Root:         filepath.Join(b.dir, "journal"),
		Identity:     w.identity(),
		SegmentBytes: 32 << 10,
		MaxSegments:  4,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	w.journal = j
	return w
}

func (w *worker) identity() journal.Identity {
	return journal.Identity{PodUID: w.holder.GetPodUid(), Index: w.holder.GetIndex(), Epoch: [16]byte(w.holder.GetEpoch())}
}

// die leaves the journal as a killed process does: unlocked, with all that is in it.
func (w *worker) die() {
	w.t.Helper()
	if err := w.journal.Stop(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *worker) folders() int {
	names, err := filepath.Glob(filepath.Join(w.dir, "journal", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(names)
}

// opening is the record as it is booked when the request is interrupted.
func (w *worker) opening(id, keyID string, lease *ledgerv1.LeaseRef, held int64) []byte {
	w.t.Helper()
	return w.payload(&ledgerv1.SpendRecord{
		RequestId: id, KeyId: keyID, Model: "m", StartMs: 1_770_000_000_000, Status: ledgerv1.SpendRecord_STATUS_INTERRUPTED,
		CostNano: held, HoldNano: held, Attempts: 1, Charges: []*ledgerv1.LeaseCharge{{Lease: lease, CostNano: held}},
	})
}

func (w *worker) payload(rec *ledgerv1.SpendRecord) []byte {
	w.t.Helper()
	raw, err := proto.Marshal(rec)
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

func (w *worker) begin(payload []byte) journal.Entry {
	w.t.Helper()
	e, err := w.journal.Open(payload)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// finish closes an entry at a cost and returns the record as the stream carries it.
func (w *worker) finish(e journal.Entry, id, keyID string, lease *ledgerv1.LeaseRef, cost int64) *ledgerv1.SpendRecord {
	w.t.Helper()
	rec := &ledgerv1.SpendRecord{
		RequestId: id, KeyId: keyID, Model: "m", StartMs: 1_770_000_000_000, EndMs: 1_770_000_001_000,
		Status: ledgerv1.SpendRecord_STATUS_SUCCESS, CostNano: cost, HoldNano: 200, Attempts: 1,
		Charges: []*ledgerv1.LeaseCharge{{Lease: lease, CostNano: cost}},
	}
	seq, err := w.journal.Close(e, w.payload(rec))
	if err != nil {
		w.t.Fatal(err)
	}
	rec.Seq = seq
	return rec
}

// deadWorker leaves a journal with two closed records, of which the first is
// committed, and two open requests, of which the second is at its second attempt.
// 1,000 were budgeted, 900 leased; it costs 50 + 60 + 100 + 300 = 510.
func deadWorker(t *testing.T, b *bundle) (w *worker, hash []byte) {
	t.Helper()
	w, hash = b.worker(1), b.key("sk-one", 1_000)
	id := hex.EncodeToString(hash)
	lease := b.lease(w.holder, hash, 1, 900)
	first := w.begin(w.opening("req-1", id, lease, 200))
	w.begin(w.opening("req-long", id, lease, 100))
	rec := w.finish(first, "req-1", id, lease, 50)
	s := b.open()
	s.send(&ledgerv1.RecordBatch{Holder: w.holder, Records: []*ledgerv1.SpendRecord{rec}})
	s.wantAck(1)
	s.close()
	w.finish(w.begin(w.opening("req-2", id, lease, 200)), "req-2", id, lease, 60)
	retried := w.begin(w.opening("req-retried", id, lease, 150))
	if err := w.journal.Attempt(retried, w.opening("req-retried", id, lease, 300)); err != nil {
		t.Fatal(err)
	}
	return w, hash
}

// wantAdopted checks that a dead worker of deadWorker is booked exactly.
func wantAdopted(t *testing.T, b *bundle, w *worker, hash []byte) {
	t.Helper()
	eventually(t, "the folder is gone", func() bool { return w.folders() == 0 })
	rows, err := b.store.Records(t.Context(), store.RecordFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint64]store.Record{}
	for _, r := range rows {
		got[r.Seq] = r
	}
	if len(rows) != 4 || len(got) != 4 {
		t.Fatalf("%d records under %d numbers, want 4", len(rows), len(got))
	}
	for seq, want := range map[uint64]struct {
		id     string
		status store.Status
		cost   int64
	}{
		1: {"req-1", store.StatusSuccess, 50},
		2: {"req-2", store.StatusSuccess, 60},
		3: {"req-long", store.StatusInterrupted, 100},
		4: {"req-retried", store.StatusInterrupted, 300},
	} {
		if r := got[seq]; r.RequestID != want.id || r.Status != want.status || r.Cost != want.cost || r.End.IsZero() {
			t.Errorf("record %d is %s %s at %d, want %v", seq, r.RequestID, r.Status, r.Cost, want)
		}
	}
	if k, err := b.store.Key(t.Context(), hex.EncodeToString(hash)); err != nil || k.Spend != 510 {
		t.Errorf("spend %d %v, want 510", k.Spend, err)
	}
	beat, err := b.client.Heartbeat(t.Context(), &ledgerv1.HeartbeatRequest{Holder: w.holder})
	if err != nil || !beat.GetFenced() {
		t.Errorf("a dead holder can come back: %v %v", beat, err)
	}
	b.lease(holder(9), hash, 1, 490) // the rest is free, to the last nano-dollar
}

func TestAdoption(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	w, hash := deadWorker(t, b)
	w.die()
	wantAdopted(t, b, w, hash)
	eventually(t, "it is counted", func() bool { return b.c.Stats().Adopted > 0 })
	if s := b.c.Stats(); s.Adopted != 1 || s.Interrupted != 2 || s.AdoptFailures != 0 {
		t.Errorf("counted %+v", s)
	}
}

func TestAdoptionWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	w, hash := deadWorker(t, b)
	b.faults.set(func(f *faultyStore) { f.away, f.calls = store.ErrUnavailable, 0 })
	w.die()
	eventually(t, "two tries", func() bool {
		n := 0
		b.faults.set(func(f *faultyStore) { n = f.calls })
		return n >= 2
	})
	if w.folders() != 1 {
		t.Fatal("the folder is gone, though nothing is booked")
	}
	b.faults.heal()
	wantAdopted(t, b, w, hash)
}

func TestAdoptionThatWasKilledIsDoneAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	w, hash := deadWorker(t, b)
	committed := make(chan struct{})
	b.faults.set(func(f *faultyStore) {
		f.calls = 0
		f.committed = func(n int, ctx context.Context) {
			if n == 1 {
				close(committed)
				<-ctx.Done() // committed, but the adopter never learns of it
			}
		}
	})
	w.die()
	<-committed
	b.kill()
	if w.folders() != 1 {
		t.Fatal("the folder is gone, though the holder is not closed")
	}
	b.start()
	wantAdopted(t, b, w, hash)
}

// damagedWorker has a holder with 90,000 of a budget of 100,000 leased, and a journal
// of which the first segment is lost. Its first two records were sent.
func damagedWorker(t *testing.T, b *bundle) (w *worker, hash []byte, last int64) {
	t.Helper()
	w, hash = b.worker(1), b.key("sk-one", 100_000)
	id := hex.EncodeToString(hash)
	lease := b.lease(w.holder, hash, 1, 90_000)
	request := func() *ledgerv1.SpendRecord {
		return w.finish(w.begin(w.opening("req", id, lease, 200)), "req", id, lease, 10)
	}
	s := b.open()
	s.send(&ledgerv1.RecordBatch{Holder: w.holder, Records: []*ledgerv1.SpendRecord{request(), request()}})
	if err := s.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for w.journal.Stats().Segments < 3 {
		last = int64(request().GetSeq())
	}
	if err := os.Remove(filepath.Join(w.dir, "journal", w.identity().Folder(), "segment-0000")); err != nil {
		t.Fatal(err)
	}
	return w, hash, last
}

// wantFilledIn checks that each number of damagedWorker is booked once, the two that
// were sent and those of the other segments in full, and that no money came free.
func wantFilledIn(t *testing.T, b *bundle, w *worker, hash []byte, last int64) {
	t.Helper()
	eventually(t, "the folder is gone, and counted", func() bool { return w.folders() == 0 && b.c.Stats().Adopted > 0 })
	rows, err := b.store.Records(t.Context(), store.RecordFilter{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	bySeq := map[uint64]store.Record{}
	var lost int64
	for _, r := range rows {
		bySeq[r.Seq] = r
		if r.ErrorCode == record.ErrorLost {
			lost++
		}
	}
	if len(rows) != int(last) || len(bySeq) != int(last) {
		t.Errorf("%d records under %d numbers, want %d", len(rows), len(bySeq), last)
	}
	if bySeq[1].Cost != 10 || bySeq[2].Cost != 10 || bySeq[3].ErrorCode != record.ErrorLost || bySeq[uint64(last)].Cost != 10 {
		t.Errorf("want 1, 2 and the last in full and 3 lost: %+v %+v %+v", bySeq[1], bySeq[2], bySeq[3])
	}
	if n := b.c.Stats(); lost < 8 || n.Lost != lost || n.Adopted != 1 || n.AdoptFailures != 0 {
		t.Errorf("%d records stand as lost, counted %+v", lost, n)
	}
	id := hex.EncodeToString(hash)
	if k, err := b.store.Key(t.Context(), id); err != nil || k.Spend != 10*(last-lost) {
		t.Errorf("spend %d %v, want 10 for each of the %d that were not lost", k.Spend, err, last-lost)
	}
	b.lease(holder(8), hash, 1, 10_000)
	resp, err := b.client.Grant(t.Context(), grant(holder(8), 2, "key:"+id, 1))
	if err != nil || len(resp.GetLeases()) > 0 {
		t.Errorf("money that unknown requests may have spent was granted again: %v %v", resp, err)
	}
}

// TestAdoptionWithoutTheOldestSegment loses the segment behind the cursor.
func TestAdoptionWithoutTheOldestSegment(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *collector.Config) { c.BatchRows = 7 }) // the gap takes several batches
	w, hash, last := damagedWorker(t, b)
	eventually(t, "what was sent is committed", func() bool { return b.c.Stats().Commits == 1 })
	w.die()
	wantFilledIn(t, b, w, hash, last)
}

// TestAdoptionWaitsForWhatWasSent: what the worker sent and the database has not taken
// yet is no longer in the journal, but it is not lost.
func TestAdoptionWaitsForWhatWasSent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	second := make(chan struct{})
	b.faults.set(func(f *faultyStore) {
		f.commit = func(n int) error {
			switch n {
			case 1: // the worker's batch
				<-second
			case 2: // the adopter's first
				close(second)
			}
			return nil
		}
	})
	w, hash, last := damagedWorker(t, b)
	eventually(t, "the batch is on its way", func() bool {
		n := 0
		b.faults.set(func(f *faultyStore) { n = f.calls })
		return n == 1
	})
	w.die()
	wantFilledIn(t, b, w, hash, last)
}

func TestLiveJournalsAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	live, dead := b.worker(1), b.worker(2)
	live.begin([]byte("still being served"))
	dead.begin(dead.payload(&ledgerv1.SpendRecord{RequestId: "req-1", StartMs: 1_770_000_000_000}))
	dead.die()
	eventually(t, "the dead one is adopted", func() bool { return b.c.Stats().Adopted == 1 })
	if n := live.folders(); n != 1 {
		t.Errorf("%d folders, want the live one", n)
	}
	if err := live.journal.Stop(); err != nil {
		t.Error(err)
	}
	b.stop() // before the live one, whose payload is no record, is looked at
}

func TestUnreadablePayloadFreesNoMoney(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	w, hash := b.worker(1), b.key("sk-one", 1_000)
	b.lease(w.holder, hash, 1, 900)
	w.begin([]byte("\xff\xff not a record"))
	w.die()
	eventually(t, "a failure", func() bool { return b.c.Stats().AdoptFailures == 1 })
	if _, err := os.Stat(filepath.Join(b.dir, "journal")); err != nil || w.folders() != 1 {
		t.Errorf("the journal is gone, with %d folders: %v", w.folders(), err)
	}
	resp, err := b.client.Grant(t.Context(), grant(w.holder, 2, "key:"+hex.EncodeToString(hash), 200))
	if err != nil || resp.GetResults()[0].GetOutcome() == ledgerv1.WantResult_OUTCOME_GRANTED {
		t.Errorf("money that may be spent was granted again: %v %v", resp, err)
	}
}
