package collector

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// commitTimeout gives up a commit whose connection hangs. It is safe to try again:
// the cursor drops what was committed after all.
const commitTimeout = 30 * time.Second

// laneDepth is how many full batches may wait per holder before its stream is no
// longer read; from there on the worker's journal is the queue.
const laneDepth = 4

// item is one batch of one stream on its way to the database. done is called
// exactly once, from the lane: with the cursor after a commit or a gap, or with the
// error for which the batch is given up. It must not block.
type item struct {
	rows []store.Record
	at   time.Time
	done func(cursor uint64, err error)
}

func (it *item) first() uint64 { return it.rows[0].Seq }
func (it *item) last() uint64  { return it.rows[len(it.rows)-1].Seq }

// lanes keeps one queue per holder. A lane's goroutine exists while rows wait.
type lanes struct {
	c *Collector

	mu     sync.Mutex
	open   map[store.HolderID]*lane
	closed bool
	wg     sync.WaitGroup
}

func newLanes(c *Collector) *lanes {
	return &lanes{c: c, open: map[store.HolderID]*lane{}}
}

// lane merges the batches of one holder and commits them one after the other.
type lane struct {
	holder store.HolderID
	items  []*item
	rows   int
	full   chan struct{} // signals that rows reached a full batch; capacity 1
	room   chan struct{} // closed and replaced whenever a batch was taken
}

// push queues it. While the lane is full it waits, until ctx ends.
func (ls *lanes) push(ctx context.Context, holder store.HolderID, it *item) error {
	for {
		room, err := ls.tryPush(holder, it)
		if room == nil {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// close takes no more items and waits until those that wait are settled.
func (ls *lanes) close() {
	ls.mu.Lock()
	ls.closed = true
	ls.mu.Unlock()
	ls.wg.Wait()
}

// busy tells whether rows of holder wait or are being committed.
func (ls *lanes) busy(holder store.HolderID) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.open[holder] != nil
}

// waiting says whether rows of any holder wait or are being committed.
func (ls *lanes) waiting() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.open) > 0
}

// tryPush queues it, or returns what will be closed when there is room.
func (ls *lanes) tryPush(holder store.HolderID, it *item) (<-chan struct{}, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return nil, errStopping
	}
	l := ls.open[holder]
	if l == nil {
		l = &lane{holder: holder, full: make(chan struct{}, 1), room: make(chan struct{})}
		ls.open[holder] = l
		ls.wg.Go(func() { ls.run(l) })
	}
	if l.rows >= laneDepth*ls.c.cfg.BatchRows {
		return l.room, nil
	}
	l.items = append(l.items, it)
	l.rows += len(it.rows)
	if l.rows >= ls.c.cfg.BatchRows {
		select {
		case l.full <- struct{}{}:
		default:
		}
	}
	return nil, nil
}

// run commits until the lane is empty.
func (ls *lanes) run(l *lane) {
	for {
		ls.gather(l)
		batch := ls.take(l)
		if batch == nil {
			return
		}
		cursor, err := ls.commit(l.holder, merge(batch))
		for _, it := range batch {
			it.done(cursor, err)
		}
	}
}

// gather waits until a batch is full or its first rows have waited long enough.
func (ls *lanes) gather(l *lane) {
	ls.mu.Lock()
	var wait time.Duration
	if len(l.items) > 0 && l.rows < ls.c.cfg.BatchRows {
		wait = ls.c.cfg.BatchWait - time.Since(l.items[0].at)
	}
	ls.mu.Unlock()
	if wait <= 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.full:
	case <-ls.c.stopping.Done():
	}
}

// take removes the items of the next batch, or returns nil and forgets the lane when
// nothing waits.
func (ls *lanes) take(l *lane) []*item {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(l.items) == 0 {
		delete(ls.open, l.holder)
		return nil
	}
	n := follow(l.items, ls.c.cfg.BatchRows)
	batch := l.items[:n:n]
	l.items = l.items[n:]
	for _, it := range batch {
		l.rows -= len(it.rows)
	}
	close(l.room)
	l.room = make(chan struct{})
	return batch
}

// follow counts the items that make one batch: those that continue the first one
// without a gap, up to limit rows. One that starts before the first one (a resumed
// stream behind a broken one) stands alone, because it fills the gap that the first
// one may have.
func follow(items []*item, limit int) int {
	n, rows, last := 1, len(items[0].rows), items[0].last()
	for n < len(items) {
		it := items[n]
		if it.first() < items[0].first() || it.first() > last+1 || rows+len(it.rows) > limit {
			break
		}
		rows += len(it.rows)
		last = max(last, it.last())
		n++
	}
	return n
}

// merge joins items that follow each other. Numbers that come twice (a stream that
// broke and was resumed) are the same records, so that the first one serves.
func merge(batch []*item) []store.Record {
	if len(batch) == 1 {
		return batch[0].rows
	}
	rows := append([]store.Record(nil), batch[0].rows...)
	for _, it := range batch[1:] {
		known := rows[len(rows)-1].Seq + 1 - it.first()
		rows = append(rows, it.rows[min(known, uint64(len(it.rows))):]...)
	}
	return rows
}

// commit writes rows, however long the database is away, and returns the cursor. A
// gap is no error here: nothing was written and the cursor tells the worker from
// where to send again.
func (ls *lanes) commit(holder store.HolderID, rows []store.Record) (uint64, error) {
	var retry backoff
	for {
		cursor, err := ls.tryCommit(holder, rows)
		switch {
		case err == nil:
			ls.c.stats.commits.Add(1)
			ls.c.stats.committed.Add(int64(len(rows)))
			ls.c.stuck.moved(holder)
			return cursor, nil
		case errors.Is(err, store.ErrGap):
			ls.c.stats.gaps.Add(1)
			ls.c.log.Warn("records arrived with a gap", "holder", holder, "cursor", cursor, "first", rows[0].Seq)
			ls.c.stuck.gap(holder, cursor, rows[0].Seq)
			return cursor, nil
		case errors.Is(err, store.ErrNoLease):
			ls.c.stuck.fence(holder, "a record charges a lease that the database does not have", "error", err)
			return 0, err
		case !retryable(err):
			ls.c.log.Error("cannot commit records", "holder", holder,
				"first", rows[0].Seq, "last", rows[len(rows)-1].Seq, "error", err)
			return 0, err
		}
		ls.c.stats.retries.Add(1)
		if retry.next == 0 {
			ls.c.outage.failed(err)
			ls.c.log.Info("records wait for the database", "holder", holder, "rows", len(rows))
		}
		if !retry.wait(ls.c.work) {
			return 0, errStopping
		}
	}
}

func (ls *lanes) tryCommit(holder store.HolderID, rows []store.Record) (uint64, error) {
	ctx, cancel := context.WithTimeout(ls.c.work, commitTimeout)
	defer cancel()
	cursor, err := ls.c.cfg.Store.Commit(ctx, holder, rows)
	if err != nil && ls.c.work.Err() != nil {
		return 0, errStopping
	}
	return cursor, err
}
