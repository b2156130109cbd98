package ledgertest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var holderA = &ledgerv1.Holder{PodUid: "pod", Epoch: []byte("0123456789abcdef")}

// leased returns a ledger whose holder has 40 of 100.
func leased(t *testing.T) (*Ledger, *ledgerv1.LeaseRef) {
	t.Helper()
	l := New(Config{})
	l.AddBudget("key:a", 100)
	c := l.Client()
	if _, err := c.Heartbeat(t.Context(), &ledgerv1.HeartbeatRequest{Holder: holderA}); err != nil {
		t.Fatal(err)
	}
	resp := grant(t, l, 1, 40)
	if resp.GetStatus() != ledgerv1.GrantResponse_STATUS_OK || l.Budget("key:a").Leased != 40 {
		t.Fatalf("%v", resp)
	}
	return l, &ledgerv1.LeaseRef{Seq: 1, BudgetId: resp.GetLeases()[0].GetBudgetId()}
}

func grant(t *testing.T, l *Ledger, seq uint64, amount int64) *ledgerv1.GrantResponse {
	t.Helper()
	resp, err := l.Client().Grant(t.Context(), &ledgerv1.GrantRequest{
		Holder: holderA, Seq: seq, Wants: []*ledgerv1.Want{{Entities: []string{"key:a"}, AmountNano: amount}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func charge(seq uint64, ref *ledgerv1.LeaseRef, cost, over int64) *ledgerv1.SpendRecord {
	return &ledgerv1.SpendRecord{Seq: seq, Charges: []*ledgerv1.LeaseCharge{{Lease: ref, CostNano: cost, OverrunNano: over}}}
}

func giveBack(t *testing.T, l *Ledger, ref *ledgerv1.LeaseRef, after uint64) *ledgerv1.ReturnResponse {
	t.Helper()
	resp, err := l.Client().Return(t.Context(), &ledgerv1.ReturnRequest{
		Holder: holderA, Leases: []*ledgerv1.ReturnLease{{Lease: ref, AfterSeq: after}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// A double that is kinder than the ledger would hide a worker's mistakes.
func TestRulesOfTheLedger(t *testing.T) {
	t.Parallel()
	t.Run("a repeated grant moves no money", func(t *testing.T) {
		t.Parallel()
		l, _ := leased(t)
		if resp := grant(t, l, 1, 40); resp.GetStatus() != ledgerv1.GrantResponse_STATUS_REPLAYED || len(resp.GetLeases()) != 1 {
			t.Errorf("%v", resp)
		}
		if b := l.Budget("key:a"); b.Leased != 40 {
			t.Errorf("%+v", b)
		}
	})
	t.Run("a return waits for its records", func(t *testing.T) {
		t.Parallel()
		l, ref := leased(t)
		if resp := giveBack(t, l, ref, 1); len(resp.GetPending()) != 1 {
			t.Errorf("%v", resp)
		}
		if last, err := l.Commit(holderA, charge(2, ref, 1, 0)); last != 0 || err != nil {
			t.Errorf("a gap must write nothing: %d, %v", last, err)
		}
		_, _ = l.Commit(holderA, charge(1, ref, 30, 0))
		_, _ = l.Commit(holderA, charge(1, ref, 30, 0)) // a replay
		if resp := giveBack(t, l, ref, 1); len(resp.GetClosed()) != 1 {
			t.Errorf("%v", resp)
		}
		if b := l.Budget("key:a"); b.Spent != 30 || b.Leased != 0 || l.Err() != nil {
			t.Errorf("%+v, %v", b, l.Err())
		}
	})
	t.Run("a record of a lost lease replaces its charge", func(t *testing.T) {
		t.Parallel()
		l, ref := leased(t)
		l.Reap(holderA)
		if b := l.Budget("key:a"); b.Spent != 40 || b.Lost != 40 || b.Leased != 0 {
			t.Errorf("%+v", b)
		}
		_, _ = l.Commit(holderA, charge(1, ref, 35, 5))
		giveBack(t, l, ref, 1)
		if b := l.Budget("key:a"); b.Spent != 35 || b.Lost != 0 || b.Overrun != 5 {
			t.Errorf("%+v", b)
		}
	})
	t.Run("a fenced holder gets nothing", func(t *testing.T) {
		t.Parallel()
		l, _ := leased(t)
		l.Fence(holderA)
		if resp := grant(t, l, 2, 1); resp.GetStatus() != ledgerv1.GrantResponse_STATUS_RENEW_FIRST {
			t.Errorf("%v", resp)
		}
	})
}

// What a worker must never do is remembered.
func TestBrokenRulesAreRemembered(t *testing.T) {
	t.Parallel()
	l, ref := leased(t)
	giveBack(t, l, ref, 0)
	_, _ = l.Commit(holderA, charge(1, ref, 30, 0), charge(2, &ledgerv1.LeaseRef{Seq: 9}, 1, 0))
	_, _ = l.Client().Grant(t.Context(), &ledgerv1.GrantRequest{Holder: holderA, Seq: 9})
	err := l.Err()
	if err == nil {
		t.Fatal("nothing was noticed")
	}
	for _, want := range []string{"was closed before its record came", "no lease", "sent seq 9 after 1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestRecordStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, ref := leased(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stream, err := l.Client().Record(ctx)
		if err != nil {
			t.Fatal(err)
		}
		batch := &ledgerv1.RecordBatch{Holder: holderA, Records: []*ledgerv1.SpendRecord{charge(1, ref, 3, 0)}}
		if err := stream.Send(batch); err != nil {
			t.Fatal(err)
		}
		if ack, err := stream.Recv(); err != nil || ack.GetLastSeq() != 1 {
			t.Errorf("ack %v, %v", ack, err)
		}
		l.BreakStreams()
		if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("a broken stream: %v", err)
		}
		if err := stream.Send(batch); !errors.Is(err, io.EOF) {
			t.Errorf("sending on a broken stream: %v", err)
		}
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _ := leased(t)
		faults := []Fault{{LoseRequest: true}, {LoseReply: true}, {Delay: time.Minute}}
		next := 0
		l.SetPlan(func(string) Fault { next++; return faults[next-1] })
		for i, want := range []int{0, 1, 0} { // how many beats arrive
			before := l.Calls("Heartbeat")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := l.Client().Heartbeat(ctx, &ledgerv1.HeartbeatRequest{Holder: holderA})
			cancel()
			if got := l.Calls("Heartbeat") - before; err == nil || got != want {
				t.Errorf("fault %d: error %v, %d arrived, want %d", i, err, got, want)
			}
		}
	})
}
