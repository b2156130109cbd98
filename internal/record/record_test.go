package record

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/journal"
)

// TestEveryRecordArrivesOnce books from several goroutines while the collector
// misbehaves, and compares its database with the numbers that were given.
func TestEveryRecordArrivesOnce(t *testing.T) {
	t.Parallel()
	some := func(v verdict, every int) func(int) verdict {
		return func(n int) verdict {
			if n%every == every-1 {
				return v
			}
			return commitAck
		}
	}
	for _, c := range []struct {
		why    string
		script func(int) verdict
	}{
		{"a good day", nil},
		{"acks come twice", some(commitAckTwice, 1)},
		{"acks are lost: a later one stands for them, or the stream is made anew", some(commitNoAck, 3)},
		{"acks come late", some(commitLateAck, 2)},
		{"the stream breaks after a commit: what comes again is known", some(commitBreak, 4)},
		{"the stream breaks before a commit", some(loseBreak, 4)},
		{"rows are lost and the ack goes back to the cursor", some(lose, 5)},
		{"anything at all", func(int) verdict { return verdict(rand.IntN(int(lose) + 1)) }},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.script)
			b.recorder.Start()
			names := b.bookMany(8, 100)
			b.flush()
			b.stop()
			b.checkOnce(names)
			if err := b.journal.Stop(); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(b.root, "*")); len(left) != 0 {
				t.Errorf("everything is acked and the journal leaves %v", left)
			}
		})
	}
}

// bookMany books from several goroutines and returns the request of each number.
func (b *bundle) bookMany(workers, each int) map[uint64]string {
	var wait sync.WaitGroup
	var mu sync.Mutex
	names := make(map[uint64]string)
	for w := range workers {
		wait.Go(func() {
			for n := range each {
				id := fmt.Sprintf("req-%d-%d", w, n)
				seq := b.book(id)
				mu.Lock()
				names[seq] = id
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return names
}

func (b *bundle) checkOnce(names map[uint64]string) {
	b.t.Helper()
	rows := b.collector.committed()
	if len(rows) != len(names) {
		b.t.Errorf("%d rows for %d records", len(rows), len(names))
	}
	for i, id := range rows {
		if names[uint64(i+1)] != id {
			b.t.Fatalf("row %d is %s, want %s", i+1, id, names[uint64(i+1)])
		}
	}
	if acked := b.recorder.Acked(); acked != uint64(len(names)) {
		b.t.Errorf("acked is %d, want %d", acked, len(names))
	}
	b.collector.mu.Lock() // a batch that was sent again may still be coming in
	defer b.collector.mu.Unlock()
	if b.collector.largest > 20 {
		b.t.Errorf("a batch had %d rows, BatchRows is 20", b.collector.largest)
	}
	if !proto.Equal(b.collector.holder, b.recorder.cfg.Holder) {
		b.t.Errorf("batches name the holder %v", b.collector.holder)
	}
}

func TestTheCollectorRestarts(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.recorder.Start()
	names := make(map[uint64]string)
	for round := range 5 {
		for n := range 50 {
			id := fmt.Sprintf("r%d-%d", round, n)
			names[b.book(id)] = id
		}
		b.server.Stop() // with rows and acks under way
		for n := range 10 {
			id := fmt.Sprintf("away%d-%d", round, n)
			names[b.book(id)] = id
		}
		b.listen()
	}
	b.flush()
	b.stop()
	b.checkOnce(names)
}

func TestRecordsClosedBeforeStartAreSent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	names := b.bookMany(1, 130) // more than the window
	b.recorder.Start()
	b.flush()
	b.stop()
	b.checkOnce(names)
}

func TestWithoutACollectorRecordsStayForAdoption(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.server.Stop()
	b.recorder.cfg.StopFlush = 5 * time.Millisecond
	b.recorder.Start()
	b.book("closed")
	open := sample("open")
	ticket, err := b.recorder.Open(open)
	if err != nil {
		t.Fatal(err)
	}
	open.Attempts, open.CostNano, open.HoldNano = 2, 60_000_000, 60_000_000
	if err := b.recorder.Attempt(ticket, open); err != nil {
		t.Fatal(err)
	}
	if err := b.recorder.Stop(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop without a collector: %v", err)
	}
	if err := b.journal.Stop(); err != nil {
		t.Fatal(err)
	}
	a, err := journal.Adopt(filepath.Join(b.root, b.identity.Folder()))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	closed, err := Decode(a.Closed[0])
	if err != nil || closed.GetRequestId() != "closed" || closed.GetSeq() != 1 || closed.GetStatus() != ledgerv1.SpendRecord_STATUS_SUCCESS {
		t.Errorf("closed record: %v, %v", closed, err)
	}
	held, err := Interrupted(a.Open[0].Payload)
	if err != nil || held.GetRequestId() != "open" || held.GetCostNano() != 60_000_000 || held.GetAttempts() != 2 ||
		held.GetStatus() != ledgerv1.SpendRecord_STATUS_INTERRUPTED || held.GetSeq() != 0 {
		t.Errorf("open record: %v, %v", held, err)
	}
}

func TestAnUnreadablePayloadIsAnError(t *testing.T) {
	t.Parallel()
	bad := []byte{0xff, 0xff, 0xff}
	if _, err := Decode(journal.Closed{Seq: 7, Payload: bad}); err == nil || !strings.Contains(err.Error(), "7") {
		t.Errorf("decode: %v, want an error that names the number", err)
	}
	if _, err := Interrupted(bad); err == nil {
		t.Error("interrupted: no error")
	}
}

// TestADefectiveRowDoesNotStopTheOthers puts bytes into the journal that are no record.
func TestADefectiveRowDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.book("before")
	e, err := b.journal.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.journal.Close(e, []byte{0xff}); err != nil {
		t.Fatal(err)
	}
	b.book("behind")
	b.recorder.Start()
	b.flush()
	b.stop()
	rows := b.collector.committed()
	if len(rows) != 3 || rows[0] != "before" || rows[1] != Lost(b.identity, 2, time.Now()).GetRequestId() || rows[2] != "behind" {
		t.Errorf("rows are %v", rows)
	}
}

// TestAnyTextCanBeClosed opens short and closes with everything that a client or an
// upstream can make long.
func TestAnyTextCanBeClosed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for _, c := range []struct{ why, text string }{
		{"long", strings.Repeat("x", 100_000)},
		{"long characters, cut in between", strings.Repeat("€", 50_000)},
		{"not UTF-8, which protobuf refuses", strings.Repeat("\xff", 3000)},
		{"NUL, which PostgreSQL refuses", strings.Repeat("\x00", 3000)},
		{"half a character", "\xe2\x82"},
	} {
		rec := &ledgerv1.SpendRecord{RequestId: c.why}
		ticket, err := b.recorder.Open(rec)
		if err != nil {
			t.Fatalf("%s: %v", c.why, err)
		}
		shared := []string{c.text, "tag"}
		*rec = ledgerv1.SpendRecord{
			RequestId: c.why, RequestedModel: c.text, Model: c.text, ModelId: c.text, Provider: c.text, ApiBase: c.text,
			EndUser: c.text, KeyAlias: c.text, ErrorCode: c.text, UpstreamId: c.text, ClientIp: c.text, PriceVersion: c.text,
			Tags: shared, CostNano: 5, HoldNano: 7, Charges: sample("").Charges,
		}
		if _, err := b.recorder.Close(ticket, rec); err != nil {
			t.Errorf("%s: %v", c.why, err)
		}
		if shared[0] != c.text {
			t.Errorf("%s: a tag list that others share was written to", c.why)
		}
	}
	if b.recorder.Shortened() == 0 {
		t.Error("no close had to be shortened: the test tests nothing")
	}
	for _, c := range b.journal.Pending(0, 10) {
		rec, err := Decode(c)
		if err != nil || rec.GetCostNano() != 5 || rec.GetHoldNano() != 7 || len(rec.GetCharges()) != 1 || rec.GetRequestId() == "" {
			t.Errorf("money and identity are to stay whole: %v, %v", rec, err)
		}
	}
}

func TestCleanText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"gpt-4o", "gpt-4o"},
		{"", ""},
		{"0123456789", "01234567"},
		{"123456€", "123456"},
		{"12345€9", "12345€"},
		{"a\x00b", "a?b"},
		{"a\xffb", "a?b"},
	} {
		if got := cleanText(c.in, 8); got != c.want {
			t.Errorf("cleanText(%q, 8) = %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzCleanText(f *testing.F) {
	f.Add("12345€9", 7)
	f.Add("\xff\x00\xe2\x82", 3)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit &= 0xff
		got := cleanText(s, limit)
		if len(got) > limit || strings.IndexByte(got, 0) >= 0 || strings.ToValidUTF8(got, "") != got {
			t.Errorf("cleanText(%q, %d) = %q", s, limit, got)
		}
		if len(s) <= limit && strings.ToValidUTF8(s, "") == s && strings.IndexByte(s, 0) < 0 && got != s {
			t.Errorf("a good text was changed: %q to %q", s, got)
		}
	})
}
