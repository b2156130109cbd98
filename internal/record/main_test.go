package record

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// verdict is what a collector does with one batch.
type verdict int

const (
	commitAck      verdict = iota
	commitAckTwice         // the ack is repeated
	commitNoAck            // the ack is lost, the stream stays
	commitLateAck          // the ack comes behind the next batch
	commitBreak            // the ack is lost with the stream
	loseBreak              // the stream breaks before the commit
	lose                   // the rows are lost, the stream stays: the next batch meets a gap
)

// collector is a ledger service with a cursor and a database of request ids; a
// script says what befalls each batch.
type collector struct {
	ledgerv1.UnimplementedLedgerServer
	script func(n int) verdict

	mu      sync.Mutex
	batches int
	cursor  uint64
	rows    []string // committed, in order
	seen    map[string]int
	holder  *ledgerv1.Holder
	largest int
}

func (c *collector) Record(stream grpc.BidiStreamingServer[ledgerv1.RecordBatch, ledgerv1.RecordAck]) error {
	var late []uint64
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		v, cursor := c.take(batch)
		acks := append(late, cursor)
		late = nil
		switch v {
		case commitAckTwice:
			acks = append(acks, cursor)
		case commitNoAck:
			acks = nil
		case commitLateAck:
			acks, late = acks[:len(acks)-1], []uint64{cursor}
		case commitBreak, loseBreak:
			return status.Error(codes.Unavailable, "broken by the test")
		}
		for _, seq := range acks {
			if err := stream.Send(&ledgerv1.RecordAck{LastSeq: seq}); err != nil {
				return err
			}
		}
	}
}

// take commits by the ledger's rules: a gap writes nothing, known rows are dropped.
func (c *collector) take(batch *ledgerv1.RecordBatch) (verdict, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.script(c.batches)
	c.batches++
	c.holder = batch.GetHolder()
	c.largest = max(c.largest, len(batch.GetRecords()))
	for i, rec := range batch.GetRecords() {
		c.seen[rec.GetRequestId()]++
		if want := batch.GetRecords()[0].GetSeq() + uint64(i); rec.GetSeq() != want {
			panic(fmt.Sprintf("a batch has number %d in the place of %d", rec.GetSeq(), want))
		}
	}
	if v == lose || v == loseBreak || batch.GetRecords()[0].GetSeq() > c.cursor+1 {
		return v, c.cursor
	}
	for _, rec := range batch.GetRecords() {
		if rec.GetSeq() > c.cursor {
			c.rows = append(c.rows, rec.GetRequestId())
			c.cursor = rec.GetSeq()
		}
	}
	return v, c.cursor
}

func (c *collector) committed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.rows...)
}

// bundle is a recorder with its journal and a collector's socket.
type bundle struct {
	t         *testing.T
	root      string // of the journal
	socket    string
	collector *collector
	server    *grpc.Server
	journal   *journal.Journal
	identity  journal.Identity
	recorder  *Recorder
}

// setup starts everything but the recorder's sender. No script commits everything.
func setup(t *testing.T, script func(n int) verdict) *bundle {
	t.Helper()
	b := &bundle{t: t, root: t.TempDir(), socket: filepath.Join(t.TempDir(), "s"), identity: journal.Identity{PodUID: "pod", Index: 1}}
	rand.Read(b.identity.Epoch[:])
	if script == nil {
		script = func(int) verdict { return commitAck }
	}
	b.collector = &collector{script: script, seen: map[string]int{}}
	b.listen()
	t.Cleanup(func() { b.server.Stop() })
	var err error
	b.journal, err = journal.Create(journal.Config{
		Root: b.root, Identity: b.identity, SegmentBytes: 256 << 10, MaxSegments: 4, Full: journal.Block, BlockFor: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.journal.Stop() }) // many tests stop it themselves and look
	conn, err := grpc.NewClient("unix:"+b.socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: time.Millisecond, Multiplier: 1, MaxDelay: time.Millisecond}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	b.recorder = New(Config{
		Journal: b.journal, Client: ledgerv1.NewLedgerClient(conn),
		Holder:    &ledgerv1.Holder{PodUid: b.identity.PodUID, Index: b.identity.Index, Epoch: b.identity.Epoch[:]},
		BatchRows: 20, Window: 100, BatchWait: time.Millisecond, AckTimeout: 100 * time.Millisecond,
		BackoffMin: time.Millisecond, BackoffMax: 5 * time.Millisecond, StopFlush: 20 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	return b
}

func (b *bundle) listen() {
	b.t.Helper()
	os.Remove(b.socket) // the last server leaves it, so that its end cannot remove the next one's
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: b.socket, Net: "unix"})
	if err != nil {
		b.t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	server := grpc.NewServer()
	ledgerv1.RegisterLedgerServer(server, b.collector)
	go func() { _ = server.Serve(l) }() // ends with the server's Stop
	b.server = server
}

// sample is a record as a request would open it.
func sample(id string) *ledgerv1.SpendRecord {
	return &ledgerv1.SpendRecord{
		RequestId: id, KeyId: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		CallType: "chat_completion", RequestedModel: "gpt-4o", Model: "gpt-4o-2024-08-06", ModelId: "m1",
		Provider: "openai", ApiBase: "https://api.example.com/v1", StartMs: 1_700_000_000_000,
		CostNano: 30_000_000, HoldNano: 30_000_000, Attempts: 1, OutputCap: 16_384,
		Charges: []*ledgerv1.LeaseCharge{{Lease: &ledgerv1.LeaseRef{Seq: 1, BudgetId: 2}, CostNano: 30_000_000}},
	}
}

// book opens and closes one record and returns its number.
func (b *bundle) book(id string) uint64 {
	rec := sample(id)
	ticket, err := b.recorder.Open(rec)
	if err != nil {
		b.t.Error(err)
		return 0
	}
	rec.Status, rec.CostNano = ledgerv1.SpendRecord_STATUS_SUCCESS, 1_000_000
	seq, err := b.recorder.Close(ticket, rec)
	if err != nil {
		b.t.Error(err)
	}
	return seq
}

func (b *bundle) flush() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := b.recorder.Flush(ctx); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) stop() {
	b.t.Helper()
	if err := b.recorder.Stop(context.Background()); err != nil {
		b.t.Fatal(err)
	}
}
