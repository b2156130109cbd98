package collector_test

import (
	"context"
	"encoding/hex"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/store"
)

type watcher struct {
	t    *testing.T
	recv func() (*ledgerv1.ChangesResponse, error)
}

func (b *bundle) watch(after int64) *watcher {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	b.t.Cleanup(cancel)
	stream, err := b.client.Changes(ctx, &ledgerv1.ChangesRequest{Holder: holder(1), After: after})
	if err != nil {
		b.t.Fatal(err)
	}
	return &watcher{t: b.t, recv: stream.Recv}
}

func (w *watcher) next() *ledgerv1.ChangesResponse {
	w.t.Helper()
	m, err := w.recv()
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

func TestChangesArriveWithinASecond(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *collector.Config) { c.PollEvery = 0 }) // the default pace
	hash := b.key("sk-one", 1)
	b.stop() // so that the key's making is no news any more
	b.start()
	streams := []*watcher{b.watch(0), b.watch(0)}
	for _, w := range streams {
		w.next() // the position
	}
	blocked := true
	if _, err := b.store.UpdateKey(t.Context(), hex.EncodeToString(hash), store.KeyPatch{Blocked: &blocked}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i, w := range streams {
		m := w.next()
		if m.GetAll() || len(m.GetKeyIds()) != 1 || m.GetKeyIds()[0] != hex.EncodeToString(hash) {
			t.Errorf("stream %d got %v", i, m)
		}
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("a revocation took %v", took)
	}
}

func TestChangesThatWereMissed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.key("sk-one", 1)
	first := b.watch(0).next()
	for first.GetPosition() == 0 { // the key's own change may still be on its way
		first = b.watch(0).next()
	}
	if m := b.watch(first.GetPosition()).next(); m.GetAll() || m.GetPosition() != first.GetPosition() {
		t.Errorf("nothing was missed, but got %v", m)
	}
	b.stop()
	b.key("sk-two", 1) // while no collector looks
	b.start()
	if m := b.watch(first.GetPosition()).next(); !m.GetAll() || m.GetPosition() <= first.GetPosition() {
		t.Errorf("a change was missed, but got %v", m)
	}
}

func TestChangesWaitForTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.stop()
	b.faults.set(func(f *faultyStore) { f.away = store.ErrUnavailable })
	b.start()
	w := b.watch(0)
	b.faults.heal()
	w.next()
	b.stop()
	_, err := w.recv()
	wantCode(t, "a stop ends the stream", err, codes.Unavailable)
}
