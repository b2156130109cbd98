package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock-gateway/penstock/internal/journal"
	"github.com/penstock-gateway/penstock/internal/record"
	"github.com/penstock-gateway/penstock/internal/store"
)

// adopter is a collector that has taken a dead worker's journal over, in the steps
// in which package collector does it.
type adopter struct {
	pod    *pod
	dead   *journal.Adoption
	holder store.HolderID
	rows   []store.Record // to commit
	all    []store.Record
	top    uint64
	closed bool
}

// adopt begins with a dead folder of p, if there is one that nobody has.
func (w *world) adopt(p *pod) {
	folders, err := journal.Dead(p.root)
	w.fail(err)
	dir := pick(w.rng, folders)
	if dir == "" {
		return
	}
	w.spoil(dir)
	dead, err := journal.Adopt(dir)
	if err != nil {
		w.fail(err)
		return
	}
	a := &adopter{pod: p, dead: dead, holder: store.HolderID(fmt.Sprintf("%s/%d/%x", dead.Identity.PodUID, dead.Identity.Index, dead.Identity.Epoch))}
	if err := w.list(a); err != nil {
		w.fail(err)
	}
	if dead.Damaged > 0 && !w.off.segmentLost {
		w.fail(fmt.Errorf("journal %s is damaged", dir))
	}
	w.adopters = append(w.adopters, a)
	w.note("%s: %d closed and %d open of %s are adopted, next %d", p, len(dead.Closed), len(dead.Open), a.holder, dead.NextSeq)
}

// list makes the rows that a dead worker has to be booked.
func (w *world) list(a *adopter) error {
	next := a.dead.NextSeq
	for _, c := range a.dead.Closed {
		rec := record.Lost(a.dead.Identity, c.Seq, time.Now())
		if !c.Damaged {
			var err error
			if rec, err = record.Decode(c); err != nil {
				return err
			}
		}
		a.all = append(a.all, decodeRecord(rec))
	}
	if w.off.numberFromEntries {
		next = 1
		if n := len(a.all); n > 0 {
			next = a.all[n-1].Seq + 1
		}
	}
	if w.off.numberFromCursor {
		next = w.cursor(a.holder) + 1
		if n := len(a.all); n > 0 {
			next = max(next, a.all[n-1].Seq+1)
		}
	}
	for i, o := range a.dead.Open {
		rec, err := record.Interrupted(o.Payload)
		if err != nil {
			return err
		}
		row := decodeRecord(rec)
		row.Seq = next + uint64(i)
		a.all = append(a.all, row)
	}
	a.rows, a.top = a.all, next-1+uint64(len(a.dead.Open))
	return nil
}

func (w *world) cursor(holder store.HolderID) (last uint64) {
	w.do(func() {
		_ = w.db.conn.QueryRow(context.Background(), `SELECT coalesce(max(last_seq), 0)::bigint FROM cursors WHERE holder = $1`, string(holder)).Scan(&last)
	})
	return last
}

// spoil takes the oldest segment of a dead journal away when the rule about reusing
// segments is off: what was in it is what a segment reused too early has lost.
func (w *world) spoil(dir string) {
	if !w.off.segmentLost {
		return
	}
	type segment struct {
		path string
		data []byte
	}
	var used []segment
	files, _ := filepath.Glob(filepath.Join(dir, "segment-*"))
	for _, path := range files {
		data, err := os.ReadFile(path)
		w.fail(err)
		if !bytes.Equal(data[:256], make([]byte, 256)) {
			used = append(used, segment{path, data})
		}
	}
	if len(used) < 2 {
		return
	}
	generation := func(s segment) byte { return s.data[16] } // small enough for one byte in a walk
	oldest := used[0]
	if generation(used[1]) < generation(oldest) {
		oldest = used[1]
	}
	w.fail(os.WriteFile(oldest.path, make([]byte, len(oldest.data)), 0o600))
}

// adoptOn takes the adopter's next step; the answer of the database may be lost.
func (w *world) adoptOn(a *adopter, rows int, lost bool) {
	switch {
	case w.away:
	case w.off.closeFirst && !a.closed:
		a.closed = true
		w.do(func() { _, err := w.ledger.CloseHolder(context.Background(), a.holder, 0); w.fail(err) })
	case len(a.rows) > 0:
		w.adoptRows(a, min(rows, len(a.rows)), lost)
	default:
		w.adoptEnd(a, lost)
	}
}

func (w *world) adoptRows(a *adopter, n int, lost bool) {
	var err error
	w.do(func() { _, err = w.ledger.Commit(context.Background(), a.holder, a.rows[:n]) })
	w.note("%s: adopter of %s commits %d to %d: %v", a.pod, a.holder, a.rows[0].Seq, a.rows[n-1].Seq, err)
	switch {
	case errors.Is(err, store.ErrGap):
		w.fail(broken{1, fmt.Sprintf("records before %d of %s are in no journal: %v", a.rows[0].Seq, a.holder, err)})
	case err != nil:
		w.fail(err)
	case !lost: // else it will try again
		a.rows = a.rows[n:]
	}
}

func (w *world) adoptEnd(a *adopter, lost bool) {
	var err error
	done := false
	w.do(func() { done, err = w.closeHolder(a) })
	w.note("%s: adopter of %s closes it: %t, %v", a.pod, a.holder, done, err)
	w.fail(err)
	switch {
	case err != nil || lost:
	case done:
		w.fail(a.dead.Remove())
		w.forget(a)
	default:
		w.fail(broken{1, fmt.Sprintf("the cursor of %s is below %d, which was committed", a.holder, a.top)})
	}
}

// closeHolder ends the holder, or as much of it as a mutation leaves.
func (w *world) closeHolder(a *adopter) (bool, error) {
	ctx := context.Background()
	if !w.off.closeNamedOnly {
		return w.ledger.CloseHolder(ctx, a.holder, a.top)
	}
	var named []store.ReturnLease
	for _, ref := range store.Refs(a.all) {
		named = append(named, store.ReturnLease{LeaseRef: ref})
	}
	if _, err := w.ledger.Return(ctx, a.holder, named); err != nil {
		return false, err
	}
	return true, w.db.exec(`UPDATE holders SET closed = true WHERE id = $1`, string(a.holder))
}

func (w *world) forget(a *adopter) {
	for i, x := range w.adopters {
		if x == a {
			w.adopters = append(w.adopters[:i:i], w.adopters[i+1:]...)
			return
		}
	}
}
