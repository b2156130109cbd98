package model

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/hold"
	"github.com/penstock-gateway/penstock/internal/journal"
	"github.com/penstock-gateway/penstock/internal/record"
	"github.com/penstock-gateway/penstock/internal/store"
)

// worker is one process life: the parts that a gateway's worker has for money. What
// they send passes through the world's hands.
type worker struct {
	w       *world
	pod     *pod
	index   int
	number  int // of all workers, in order of their starts
	holder  store.HolderID
	folder  string
	holds   *hold.Manager
	journal *journal.Journal
	records *record.Recorder

	sent  uint64 // last record sent
	acked atomic.Uint64
	dead  atomic.Bool

	leaving bool // takes no more requests
	stopped chan error
	hurry   context.CancelFunc // ends a stop that is under way
	left    bool               // its leases are returned, as far as it came

	grants    []*ledgerv1.GrantResponse // answers that arrived
	firstSent map[uint64]time.Time      // by grant
	opened    uint64                    // numbers given at open, by a mutation
}

func (k *worker) String() string { return fmt.Sprintf("%s/%d#%d", k.pod.uid, k.index, k.number) }

// start begins a process life.
func (w *world) start(p *pod, index int) *worker {
	k := &worker{w: w, pod: p, index: index, number: len(w.workers), firstSent: map[uint64]time.Time{}}
	id := journal.Identity{PodUID: p.uid, Index: uint32(index), Epoch: w.epoch(p, index)}
	wire := &ledgerv1.Holder{PodUid: id.PodUID, Index: id.Index, Epoch: id.Epoch[:]}
	k.holder = store.HolderID(fmt.Sprintf("%s/%d/%x", id.PodUID, id.Index, id.Epoch))
	k.folder = filepath.Join(p.root, id.Folder())
	var err error
	// The smallest journal there is, so that its segments are reused within a walk.
	k.journal, err = journal.Create(journal.Config{Root: p.root, Identity: id, SegmentBytes: 32 << 10, MaxSegments: 2})
	if err != nil { // with an epoch that is not new it may be in the way
		w.fail(err)
		return nil
	}
	k.records = record.New(record.Config{Journal: k.journal, Client: client{k: k}, Holder: wire, Logger: slog.New(slog.DiscardHandler)})
	cfg := hold.Config{
		Client: client{k: k}, Holder: wire, JournalDir: id.Folder(), Acked: k.acked.Load,
		OnFenced: func() { w.fenced(k) }, GrantTimeout: 5 * time.Second, MaxWait: 8 * time.Second,
		// Not round, so that timers of two workers do not fire at once.
		IdleReturn: 2*time.Second + time.Duration(k.number)*137*time.Microsecond,
	}
	if w.rng.IntN(2) == 0 || w.off.returnAtOnce {
		cfg.Acked = nil // the ledger alone says which returns must wait
	}
	k.holds = hold.New(cfg)
	w.fail(k.holds.Start(context.Background()))
	w.note("%s starts", k)
	w.workers = append(w.workers, k)
	p.live[index] = k
	return k
}

// epoch is 128 random bits, of the walk's own chance.
func (w *world) epoch(p *pod, index int) (e [16]byte) {
	if w.off.epochOfPlace {
		sum := sha256.Sum256(fmt.Append(nil, p.uid, index))
		return [16]byte(sum[:16])
	}
	binary.LittleEndian.PutUint64(e[:8], w.rng.Uint64())
	binary.LittleEndian.PutUint64(e[8:], w.rng.Uint64())
	return e
}

// fenced is told by a manager whose holder was closed. It must not happen to a
// process that holds its journal's lock.
func (w *world) fenced(k *worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !k.dead.Load() {
		w.trail = append(w.trail, fmt.Sprintf("     %s is fenced", k))
	}
}

// kill ends the process as kill -9 does: its journal stays as it is.
func (k *worker) kill() error {
	k.dead.Store(true)
	kept := k.folder + ".kept"
	if err := os.CopyFS(kept, os.DirFS(k.folder)); err != nil {
		return err
	}
	k.halt()
	if _, err := os.Stat(k.folder); errors.Is(err, fs.ErrNotExist) { // nothing was open, so its own end removed it
		return os.Rename(kept, k.folder)
	}
	return os.RemoveAll(kept)
}

// halt ends the goroutines and lets the journal go.
func (k *worker) halt() {
	k.dead.Store(true)
	if k.hurry != nil {
		k.hurry()
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = k.holds.Stop(over) // the error says that leases are left
	_ = k.journal.Stop()
	k.pod.live[k.index] = nil
	for _, r := range k.w.requests {
		if r.k == k {
			r.died()
		}
	}
}

// leave begins a graceful stop: no more requests, then leases go back, then records,
// then the journal goes when it is empty.
func (k *worker) leave() {
	k.leaving = true
	k.w.note("%s leaves", k)
}

// leaveOn takes the next step of a graceful stop that can be taken.
func (k *worker) leaveOn() {
	switch {
	case k.openRequests() > 0:
	case k.stopped == nil:
		k.stopped = make(chan error, 1)
		limited, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		k.hurry = cancel
		go func() {
			defer cancel()
			k.stopped <- k.holds.Stop(limited)
		}()
		k.w.settleDown()
	case !k.left:
		select {
		case err := <-k.stopped:
			k.w.note("%s has stopped: %v", k, err)
			k.left = true
			if err != nil {
				k.w.orphaned[k.holder] = true
			}
		default:
		}
	default:
		if s := k.journal.Stats(); s.Unacked > 0 && k.w.rng.IntN(4) > 0 {
			return // the last flush has its time
		}
		k.halt()
		if _, err := os.Stat(k.folder); err == nil {
			delete(k.w.orphaned, k.holder) // it is adopted
		}
		k.w.note("%s is gone", k)
	}
}

func (k *worker) openRequests() int {
	n := 0
	for _, r := range k.w.requests {
		if r.k == k && (r.state == asking || r.state == held || r.state == sent) {
			n++
		}
	}
	return n
}

// send puts a batch of records under way. Like a broken and resumed stream, it may
// begin anywhere between the last ack and the last number sent.
func (k *worker) send(from uint64, rows int) bool {
	batch := k.batch(from, rows)
	if len(batch) == 0 {
		return false
	}
	if k.w.off.roomAtSend {
		k.journal.Ack(batch[len(batch)-1].Seq)
	}
	k.sent = max(k.sent, from+uint64(len(batch)))
	k.w.flight = append(k.w.flight, &message{from: k, rows: batch, at: time.Now(), reply: make(chan answer, 1), deaf: new(atomic.Bool)})
	k.w.note("%s sends records %d to %d", k, batch[0].Seq, batch[len(batch)-1].Seq)
	return true
}

func (k *worker) batch(from uint64, rows int) []store.Record {
	var out []store.Record
	for _, c := range k.journal.Pending(from, rows) {
		rec, err := record.Decode(c)
		if err != nil {
			k.w.fail(err)
			return nil
		}
		r := decodeRecord(rec)
		if k.w.off.numberAtOpen {
			r.Seq = k.w.request(r.RequestID).number
		}
		out = append(out, r)
	}
	return out
}

// ack takes the collector's cursor, as a session of package record does.
func (k *worker) ack(cursor uint64) {
	if k.w.off.numberAtOpen {
		cursor = k.sent // a number at open tells nothing about those closed before
	}
	cursor = min(cursor, k.journal.Stats().NextSeq-1)
	if cursor <= k.acked.Load() {
		k.sent = k.acked.Load() // once more from there
		return
	}
	k.journal.Ack(cursor)
	k.acked.Store(cursor)
	k.sent = max(k.sent, cursor)
}
