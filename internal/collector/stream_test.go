package collector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/store"
)

// recorder is a worker's side of a Record stream.
type recorder struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[ledgerv1.RecordBatch, ledgerv1.RecordAck]
}

func (b *bundle) open() *recorder {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	b.t.Cleanup(cancel)
	stream, err := b.client.Record(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	return &recorder{t: b.t, stream: stream}
}

func (r *recorder) send(batches ...*ledgerv1.RecordBatch) {
	r.t.Helper()
	for _, b := range batches {
		if err := r.stream.Send(b); err != nil && !errors.Is(err, io.EOF) {
			r.t.Fatal(err)
		}
	}
}

// wantAck reads acks until one names seq; earlier ones must be lower.
func (r *recorder) wantAck(seq uint64) {
	r.t.Helper()
	for {
		ack, err := r.stream.Recv()
		if err != nil {
			r.t.Fatalf("no ack of %d: %v", seq, err)
		}
		if ack.GetLastSeq() == seq {
			return
		}
		if ack.GetLastSeq() > seq {
			r.t.Fatalf("ack of %d, want %d", ack.GetLastSeq(), seq)
		}
	}
}

// wantEnd reads until the stream ends.
func (r *recorder) wantEnd(why string, code codes.Code) {
	r.t.Helper()
	_, err := r.stream.Recv()
	if err == nil {
		r.t.Errorf("%s: an ack, want the end", why)
		return
	}
	wantCode(r.t, why, err, code)
}

// close ends the worker's side and waits for the collector's.
func (r *recorder) close() {
	r.t.Helper()
	if err := r.stream.CloseSend(); err != nil {
		r.t.Fatal(err)
	}
	for { // an ack may come twice: of batches that were committed together
		if _, err := r.stream.Recv(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			r.t.Errorf("the stream ended with %v", err)
			return
		}
	}
}

// records is a batch with the numbers first to last.
func records(h *ledgerv1.Holder, first, last uint64, charges ...*ledgerv1.LeaseCharge) *ledgerv1.RecordBatch {
	batch := &ledgerv1.RecordBatch{Holder: h}
	for seq := first; seq <= last; seq++ {
		batch.Records = append(batch.Records, &ledgerv1.SpendRecord{
			Seq: seq, RequestId: fmt.Sprintf("req-%d-%d", h.GetIndex(), seq), KeyId: "k", Model: "m",
			StartMs: 1_770_000_000_000, EndMs: 1_770_000_001_000, Status: ledgerv1.SpendRecord_STATUS_SUCCESS,
			Usage: &ledgerv1.Usage{InputTokens: 10, OutputTokens: 5}, CostNano: 7, HoldNano: 9, Attempts: 1, Charges: charges,
		})
	}
	return batch
}

// wantRecords checks that the database has each number once.
func (b *bundle) wantRecords(h *ledgerv1.Holder, last uint64) {
	b.t.Helper()
	rows, err := b.store.Records(b.t.Context(), store.RecordFilter{Limit: 10_000})
	if err != nil {
		b.t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range rows {
		seen[r.RequestID]++
	}
	for seq := uint64(1); seq <= last; seq++ {
		if n := seen[fmt.Sprintf("req-%d-%d", h.GetIndex(), seq)]; n != 1 {
			b.t.Errorf("record %d stands %d times in the database", seq, n)
		}
	}
	if len(rows) != int(last) {
		b.t.Errorf("%d records in the database, want %d", len(rows), last)
	}
	days, err := b.store.DailySpend(b.t.Context(), store.RecordFilter{})
	if err != nil || len(days) != 1 || days[0].Cost != 7*int64(last) {
		b.t.Errorf("daily sums %v %v, want a cost of %d", days, err, 7*last)
	}
}

func TestRecordsOnceWhenKilledBetweenCommitAndAck(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	h, committed := holder(1), make(chan struct{})
	b.faults.set(func(f *faultyStore) {
		f.committed = func(n int, ctx context.Context) {
			if n == 1 {
				close(committed)
				<-ctx.Done() // the answer never arrives
			}
		}
	})
	s := b.open()
	s.send(records(h, 1, 6))
	<-committed
	b.kill()
	if _, err := s.stream.Recv(); err == nil {
		t.Error("acked by a killed collector")
	}
	b.start()
	s = b.open()
	s.send(records(h, 1, 4), records(h, 5, 9)) // other boundaries than before
	s.wantAck(9)
	s.close()
	b.wantRecords(h, 9)
}

func TestReplayAcrossStreams(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	h := holder(1)
	s := b.open()
	s.send(records(h, 1, 3), records(h, 4, 4), records(h, 5, 8))
	s.wantAck(8)
	s.close()
	for _, r := range [][2]uint64{{1, 8}, {3, 5}, {7, 12}, {2, 13}, {13, 13}} {
		s := b.open()
		s.send(records(h, r[0], r[1]))
		s.wantAck(max(8, r[1]))
		s.close()
	}
	b.wantRecords(h, 13)
}

func TestGapIsAckedWithTheCursor(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	h := holder(1)
	s := b.open()
	s.send(records(h, 1, 2))
	s.wantAck(2)
	s.send(records(h, 5, 6))
	s.wantAck(2)
	s.send(records(h, 3, 6))
	s.wantAck(6)
	s.close()
	b.wantRecords(h, 6)
	if n := b.c.Stats().Gaps; n != 1 {
		t.Errorf("%d gaps counted", n)
	}
}

func TestNothingIsAckedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	h := holder(1)
	b.faults.set(func(f *faultyStore) { f.away = fmt.Errorf("away: %w", store.ErrUnavailable) })
	s := b.open()
	s.send(records(h, 1, 3), records(h, 4, 5))
	eventually(t, "three tries", func() bool { return b.c.Stats().CommitRetries >= 3 })
	if n := b.c.Stats().RecordsCommitted; n != 0 {
		t.Fatalf("%d records acked by nobody", n)
	}
	b.faults.heal()
	s.wantAck(5)
	s.close()
	b.wantRecords(h, 5)
}

func TestBatchesAreMergedAndCommittedOneAtATime(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	b := setup(t, func(c *collector.Config) { c.BatchRows, c.BatchWait = 10, time.Hour })
	h, entered := holder(1), make(chan struct{})
	b.faults.set(func(f *faultyStore) {
		f.commit = func(n int) error {
			if n == 1 {
				close(entered)
				<-release
			}
			return nil
		}
	})
	s := b.open()
	for seq := uint64(1); seq <= 10; seq++ {
		s.send(records(h, seq, seq))
	}
	<-entered // full: an hour was not waited for
	s.send(records(h, 11, 15), records(h, 16, 19), records(h, 20, 24))
	eventually(t, "all has arrived", func() bool { return b.c.Stats().RecordsReceived == 24 })
	close(release)
	b.stop() // a stop does not wait for an hour either
	s.wantAck(24)
	s.wantEnd("after a stop", codes.Unavailable)
	b.wantRecords(h, 24)
	b.faults.set(func(f *faultyStore) {
		if got := fmt.Sprint(f.sizes); got != "[[1 10] [11 19] [20 24]]" || f.overlap {
			t.Errorf("commits %s, overlapping: %v", got, f.overlap)
		}
	})
}

func TestHoldersDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	b := setup(t, nil)
	b.faults.set(func(f *faultyStore) {
		f.commit = func(n int) error {
			if n == 1 {
				<-release
			}
			return nil
		}
	})
	slow, quick := b.open(), b.open()
	slow.send(records(holder(1), 1, 2))
	eventually(t, "the first commit hangs", func() bool {
		n := 0
		b.faults.set(func(f *faultyStore) { n = f.calls })
		return n == 1
	})
	quick.send(records(holder(2), 1, 3))
	quick.wantAck(3)
	close(release)
	slow.wantAck(2)
}

func TestStopGivesUpInTime(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *collector.Config) { c.BatchRows = 2 })
	h := holder(1)
	b.faults.set(func(f *faultyStore) { f.away = store.ErrUnavailable })
	s := b.open()
	for seq := uint64(1); seq <= 20; seq++ { // more than a lane takes: the reader waits
		s.send(records(h, seq, seq))
	}
	eventually(t, "a try", func() bool { return b.c.Stats().CommitRetries >= 1 })
	b.kill()
	if ack, err := s.stream.Recv(); err == nil {
		t.Errorf("acked %d without a database", ack.GetLastSeq())
	}
	b.faults.heal()
	b.start()
	s = b.open()
	s.send(records(h, 1, 20)) // nothing was lost: the worker still has it
	s.wantAck(20)
	b.wantRecords(h, 20)
}

func TestRefusedRecords(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	h := holder(1)
	hole := records(h, 1, 3)
	hole.Records = append(hole.Records[:1], hole.Records[2])
	twice := records(h, 1, 2)
	twice.Records[1].Seq = 1
	for why, batch := range map[string]*ledgerv1.RecordBatch{
		"no records":         {Holder: h},
		"number 0":           records(h, 0, 0),
		"a hole":             hole,
		"a number twice":     twice,
		"an unknown message": {Holder: h, Records: []*ledgerv1.SpendRecord{nil}},
		"beyond int64":       records(h, math.MaxUint64-1, math.MaxUint64-1),
		"charge to nothing":  records(h, 1, 1, &ledgerv1.LeaseCharge{CostNano: 1}),
	} {
		s := b.open()
		s.send(batch)
		s.wantEnd(why, codes.InvalidArgument)
	}
	s := b.open()
	s.send(records(h, 1, 1))
	s.wantAck(1)
	s.send(records(holder(2), 1, 1))
	s.wantEnd("two holders on one stream", codes.InvalidArgument)

	s = b.open()
	s.send(records(h, 2, 2, &ledgerv1.LeaseCharge{Lease: &ledgerv1.LeaseRef{Seq: 9, BudgetId: 9}, CostNano: 1}))
	s.wantEnd("a lease that does not exist is an error, never silence", codes.Internal)
	b.wantRecords(h, 1)
}
