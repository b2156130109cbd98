package collector

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/journal"
	"github.com/penstock-gateway/penstock/internal/record"
	"github.com/penstock-gateway/penstock/internal/store"
)

// adoptPause is how long a folder that cannot be adopted is left alone. The reason
// is permanent in all likelihood, and the log must not be flooded with it.
const adoptPause = time.Minute

// adopter looks for journals whose process is dead, books what they hold, and ends
// their holders. It only sees the folders of its own pod.
type adopter struct {
	c     *Collector
	pause map[string]time.Time // by folder: when to look again
}

func newAdopter(c *Collector) *adopter {
	return &adopter{c: c, pause: map[string]time.Time{}}
}

// run scans until ctx ends.
func (a *adopter) run(ctx context.Context) {
	for {
		a.scan(ctx)
		if !sleep(ctx, jitter(a.c.cfg.ScanEvery)) {
			return
		}
	}
}

// scan adopts every dead folder that there is.
func (a *adopter) scan(ctx context.Context) {
	folders, err := journal.Dead(a.c.cfg.journalPath())
	if err != nil {
		a.c.log.Error("cannot look for journals of dead workers", "error", err)
		return
	}
	for _, dir := range folders {
		if time.Now().Before(a.pause[dir]) {
			continue
		}
		delete(a.pause, dir)
		if err := a.adopt(ctx, dir); err != nil && ctx.Err() == nil {
			a.c.stats.adoptFailures.Add(1)
			a.pause[dir] = time.Now().Add(adoptPause)
			a.c.log.Error("cannot adopt the journal of a dead worker", "folder", dir, "error", err)
		}
	}
}

// adopt takes one folder over, holding its lock to the end.
func (a *adopter) adopt(ctx context.Context, dir string) error {
	dead, err := journal.Adopt(dir)
	switch {
	case errors.Is(err, journal.ErrLocked), errors.Is(err, fs.ErrNotExist):
		return nil // somebody else was first
	case err != nil:
		return err
	}
	if err := a.settle(ctx, dead); err != nil {
		dead.Release()
		return err
	}
	if err := dead.Remove(); err != nil {
		return err
	}
	a.c.stats.adopted.Add(1)
	a.c.stats.interrupted.Add(int64(len(dead.Open)))
	a.c.log.Info("adopted the journal of a dead worker", "folder", dir,
		"closed", len(dead.Closed), "interrupted", len(dead.Open), "damaged", dead.Damaged)
	return nil
}

// settle books all rows and ends the holder. Where parts of the journal could not be
// read, or numbers are missing before its first one, requests may be unknown that cost
// money: the holder then stays for the reaper, which charges its leases as lost
// instead of freeing them.
func (a *adopter) settle(ctx context.Context, dead *journal.Adoption) error {
	rows, err := adoptedRows(dead, time.Now())
	if err != nil {
		return err
	}
	id := dead.Identity
	holder := holderName(id.PodUID, id.Index, id.Epoch[:])
	missing, err := a.commit(ctx, id, rows)
	if err != nil {
		return err
	}
	unreadable := missing
	for _, c := range dead.Closed {
		if c.Damaged {
			unreadable++
		}
	}
	a.c.stats.lost.Add(unreadable)
	if dead.Damaged > 0 || missing > 0 {
		a.c.log.Error("a dead worker's journal is damaged, its leases will be charged as lost",
			"holder", holder, "damaged", dead.Damaged, "records_lost", unreadable)
		return nil
	}
	top := dead.NextSeq - 1 + uint64(len(dead.Open))
	closed, err := a.close(ctx, holder, top)
	if err == nil && !closed {
		err = fmt.Errorf("cannot close holder %s: its cursor is below %d, which was committed", holder, top)
	}
	return err
}

// adoptedRows is what a dead worker has to be booked: its closed records, then what
// it had open, numbered from the journal's next number on in order of opening.
// Numbers never come from the cursor: two adopters would book a request twice.
func adoptedRows(dead *journal.Adoption, now time.Time) ([]store.Record, error) {
	recs := make([]*ledgerv1.SpendRecord, 0, len(dead.Closed)+len(dead.Open))
	for _, c := range dead.Closed {
		if c.Damaged {
			recs = append(recs, record.Lost(dead.Identity, c.Seq, now))
			continue
		}
		rec, err := record.Decode(c)
		if err != nil {
			return nil, err
		}
		recs = append(recs, rec)
	}
	for i, o := range dead.Open {
		rec, err := record.Interrupted(o.Payload)
		if err != nil {
			return nil, err
		}
		rec.Seq = dead.NextSeq + uint64(i)
		if rec.EndMs == 0 {
			rec.EndMs = now.UnixMilli() // when it really ended is not known
		}
		recs = append(recs, rec)
	}
	if len(recs) == 0 {
		return nil, nil
	}
	return decodeRecords(recs)
}

// commit writes rows in batches and waits while the database is away. It returns how
// many numbers before the first row it had to fill in as lost.
func (a *adopter) commit(ctx context.Context, id journal.Identity, rows []store.Record) (missing int64, err error) {
	holder := holderName(id.PodUID, id.Index, id.Epoch[:])
	size := a.c.cfg.BatchRows
	for filled := false; len(rows) > 0; {
		n := min(len(rows), size)
		_, err := a.commitBatch(ctx, holder, rows[:n])
		if errors.Is(err, store.ErrNoLease) && n > 1 {
			size = n / 2 // until the record that charges it is alone
			continue
		}
		if errors.Is(err, store.ErrNoLease) {
			err, size = a.bury(ctx, holder, rows[0], err), a.c.cfg.BatchRows
		}
		if errors.Is(err, store.ErrGap) && !filled {
			filled = true
			if missing, err = a.fill(ctx, id, rows[:n]); err == nil {
				continue
			}
		}
		if err != nil {
			return missing, fmt.Errorf("cannot commit adopted records %d to %d of %s: %w",
				rows[0].Seq, rows[n-1].Seq, holder, err)
		}
		rows = rows[n:]
	}
	return missing, nil
}

// bury books a record as a dead letter that charges a lease the database does not
// have. No retry would change that, and the records behind it would wait for ever.
func (a *adopter) bury(ctx context.Context, holder store.HolderID, r store.Record, why error) error {
	err := a.retry(ctx, func(ctx context.Context) error {
		_, err := a.c.cfg.Store.Bury(ctx, holder, r)
		return err
	})
	if err != nil {
		return err
	}
	a.c.stats.buried.Add(1)
	a.c.log.Error("a record of a dead worker is booked as a dead letter", "holder", holder, "seq", r.Seq, "request_id", r.RequestID, "why", why)
	return nil
}

func (a *adopter) commitBatch(ctx context.Context, holder store.HolderID, rows []store.Record) (cursor uint64, err error) {
	err = a.retry(ctx, func(ctx context.Context) error {
		cursor, err = a.c.cfg.Store.Commit(ctx, holder, rows)
		return err
	})
	return cursor, err
}

// maxMissing is more records than a journal has room for. A wider gap means that the
// database has gone back to an older state, which filling in would hide.
const maxMissing = 1 << 20

// fill books the numbers between the cursor and batch as lost: the oldest segment of
// the journal is gone, and nothing behind a gap can be committed. It returns how many.
func (a *adopter) fill(ctx context.Context, id journal.Identity, batch []store.Record) (int64, error) {
	holder, first := holderName(id.PodUID, id.Index, id.Epoch[:]), batch[0].Seq
	// What the worker sent before it died may still be on its way to the database.
	for a.c.lanes.busy(holder) {
		if !sleep(ctx, a.c.cfg.BatchWait) {
			return 0, ctx.Err()
		}
	}
	cursor, err := a.commitBatch(ctx, holder, batch)
	if !errors.Is(err, store.ErrGap) {
		return 0, err
	}
	if first <= cursor+1 || first-cursor-1 > maxMissing {
		return 0, fmt.Errorf("cannot fill in from cursor %d to %d: %w", cursor, first, err)
	}
	a.c.log.Error("records of a dead worker are missing before its journal's first one, they are booked as lost",
		"holder", holder, "from", cursor+1, "to", first-1)
	now := time.Now()
	for seq := cursor + 1; seq < first; {
		var lost []*ledgerv1.SpendRecord
		for ; seq < first && len(lost) < a.c.cfg.BatchRows; seq++ {
			lost = append(lost, record.Lost(id, seq, now))
		}
		rows, err := decodeRecords(lost)
		if err != nil {
			return 0, err
		}
		if _, err := a.commitBatch(ctx, holder, rows); err != nil {
			return 0, err
		}
	}
	return int64(first - cursor - 1), nil
}

func (a *adopter) close(ctx context.Context, holder store.HolderID, top uint64) (closed bool, err error) {
	err = a.retry(ctx, func(ctx context.Context) error {
		closed, err = a.c.cfg.Store.CloseHolder(ctx, holder, top)
		return err
	})
	return closed, err
}

// retry runs call until the database has an answer to it.
func (a *adopter) retry(ctx context.Context, call func(context.Context) error) error {
	var pause backoff
	for {
		limited, cancel := context.WithTimeout(ctx, commitTimeout)
		err := call(limited)
		cancel()
		if err == nil || !retryable(err) || !pause.wait(ctx) {
			return err
		}
	}
}
