package hold

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cents makes the figures of a test readable.
const cents = 10_000_000

// worker is a Manager with what stands around it in a real worker: it numbers
// records at their close and streams them to the ledger in order.
type worker struct {
	*Manager
	t      *testing.T
	ledger *ledgertest.Ledger
	holder *ledgerv1.Holder
	acked  atomic.Uint64

	mu      sync.Mutex
	nextSeq uint64
	records []*ledgerv1.SpendRecord // not acked
	hush    bool                    // records stay here
	done    chan struct{}
}

func newWorker(t *testing.T, l *ledgertest.Ledger, index uint32, set func(*Config)) *worker {
	t.Helper()
	epoch := bytes.Repeat([]byte{byte(index + 1)}, 16)
	w := &worker{
		t: t, ledger: l, done: make(chan struct{}),
		holder: holderOf(epoch),
	}
	cfg := Config{Client: l.Client(), Holder: w.holder, Acked: w.acked.Load}
	if set != nil {
		set(&cfg)
	}
	w.Manager = New(cfg)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	go w.stream()
	t.Cleanup(w.kill)
	return w
}

// stream commits records a little after they were closed.
func (w *worker) stream() {
	for {
		select {
		case <-w.done:
			return
		case <-time.After(time.Duration(1+rand.IntN(40)) * time.Millisecond):
			w.flush()
		}
	}
}

func (w *worker) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hush || len(w.records) == 0 {
		return
	}
	n := 1 + rand.IntN(len(w.records))
	last, err := w.ledger.Commit(w.holder, w.records[:n]...)
	if err != nil {
		return
	}
	for len(w.records) > 0 && w.records[0].GetSeq() <= last {
		w.records = w.records[1:]
	}
	w.acked.Store(last)
}

func (w *worker) setHush(hush bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hush = hush
}

// settle closes the request's record and then its hold, as a worker does.
func (w *worker) settle(h *Hold, cost int64) {
	charges := h.Charges(cost)
	w.mu.Lock()
	w.nextSeq++
	seq := w.nextSeq
	w.records = append(w.records, &ledgerv1.SpendRecord{Seq: seq, CostNano: cost, Charges: charges})
	w.mu.Unlock()
	h.Settle(cost, seq)
}

// stop ends the worker and fails the test when it leaves money behind.
func (w *worker) stop() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), 30*time.Second)
	defer cancel()
	if err := w.Stop(ctx); err != nil {
		w.t.Error(err)
	}
}

// kill ends what stop did not.
func (w *worker) kill() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.Stop(ctx)
	close(w.done)
}

func holderOf(epoch []byte) *ledgerv1.Holder {
	return &ledgerv1.Holder{PodUid: "pod", Epoch: epoch}
}

func (w *worker) must(want Want) *Hold {
	w.t.Helper()
	h, err := w.Hold(w.t.Context(), want)
	if err != nil {
		w.t.Fatalf("Hold(%+v): %v", want, err)
	}
	return h
}

// settled fails the test unless the ledger is at rest with this spend.
func settled(t *testing.T, l *ledgertest.Ledger, entity string, spent int64) {
	t.Helper()
	if err := l.Err(); err != nil {
		t.Error(err)
	}
	b := l.Budget(entity)
	if b.Leased != 0 || b.Lost != 0 || b.Spent != spent {
		t.Errorf("%s: %+v, want spent %d, nothing leased or lost", entity, b, spent)
	}
}
