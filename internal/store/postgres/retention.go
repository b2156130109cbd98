package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// detachWait is how long a detach waits for its lock. As long, commits wait behind it.
	detachWait = "500ms"
	// detachTries and detachPause: after so many waits in a row something holds the table
	// for long, such as a report; it is left alone until detachLater.
	detachTries = 3
	detachPause = 300 * time.Millisecond
	detachLater = 30 * time.Minute
	// oldRows is how many rows one transaction deletes.
	oldRows = 10_000
)

// retention drops records by their age.
type retention struct {
	days  int          // 0: never
	later atomic.Int64 // Unix seconds: no detach before
}

// dropOld drops the partitions whose days are older than what is kept, and what the
// default partition has from before. What is gone is noted in the transaction in
// which it goes, so that no check misses it. Dead letters stay: they are few.
//
// A partition is detached first, which only touches catalogs, and dropped when nobody
// can see it any more. DETACH … CONCURRENTLY, which would wait for nobody, is not
// possible beside a default partition; so the lock is waited for briefly, and again.
// All of it goes the administrators' way to the database: commits have their own.
func (s *Store) dropOld(ctx context.Context) error {
	if s.retention.days == 0 || time.Now().Unix() < s.retention.later.Load() {
		return nil
	}
	var floor time.Time
	var old []partition
	if err := s.admin.tx(ctx, "find old partitions", func(t *tx) (err error) {
		floor, old, err = t.oldPartitions(s.retention.days)
		return err
	}); err != nil {
		return err
	}
	for _, p := range old {
		if err := s.drop(ctx, p); err != nil {
			return err
		}
	}
	return s.deleteOld(ctx, floor)
}

// partition is the records of one day.
type partition struct {
	name     string
	attached bool
}

// oldPartitions lists the days before the floor, also what a collector that died
// between detach and drop has left.
func (t *tx) oldPartitions(days int) (floor time.Time, old []partition, err error) {
	if err := t.row(`SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date - $1::int`, days).Scan(&floor); err != nil {
		return floor, nil, err
	}
	old, err = query(t, func(row pgx.CollectableRow) (p partition, err error) {
		return p, row.Scan(&p.name, &p.attached)
	}, `SELECT c.relname::text, i.inhrelid IS NOT NULL FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
		WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'spend_records'::regclass)
		AND c.relkind = 'r' AND c.relname ~ '^spend_records_p[0-9]{8}$' AND c.relname < 'spend_records_p' || $1::text ORDER BY c.relname`,
		floor.Format("20060102"))
	return floor, old, err
}

// drop detaches and drops one partition.
func (s *Store) drop(ctx context.Context, p partition) error {
	for try := 1; p.attached; try++ {
		gone := false
		err := s.admin.tx(ctx, "detach "+p.name, func(t *tx) (err error) {
			gone, err = t.detach(p)
			return err
		})
		switch {
		case err == nil && !gone:
			return nil // another collector is at it
		case err == nil:
			p.attached = false
			continue
		case code(err) != lockNotAvailable:
			return err
		case try == detachTries:
			s.retention.later.Store(time.Now().Add(detachLater).Unix())
			return fmt.Errorf("cannot drop %s (--keep-days): a long statement is using spend_records; it is tried again later", p.name)
		}
		if err := pause(ctx, detachPause); err != nil {
			return unavailable(err)
		}
	}
	return s.admin.tx(ctx, "drop "+p.name, func(t *tx) error {
		return t.exec(`SET LOCAL lock_timeout = '` + detachWait + `'; DROP TABLE IF EXISTS ` + p.name) // its name is letters and digits
	})
}

// detach takes a partition out; false when another collector makes or drops some.
func (t *tx) detach(p partition) (bool, error) {
	var mine bool
	var day time.Time
	if err := t.row(`SELECT pg_try_advisory_xact_lock($1), to_date(right($2::text, 8), 'YYYYMMDD') + 1`, partitionLock, p.name).Scan(&mine, &day); err != nil || !mine {
		return false, err
	}
	if err := t.exec(`SET LOCAL lock_timeout = '` + detachWait + `'; LOCK TABLE ONLY spend_records IN ACCESS EXCLUSIVE MODE`); err != nil {
		return false, err
	}
	var attached bool
	if err := t.row(`SELECT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass($1))`, p.name).Scan(&attached); err != nil || !attached {
		return err == nil, err
	}
	if err := t.exec(`ALTER TABLE spend_records DETACH PARTITION ` + p.name); err != nil {
		return false, err
	}
	return true, t.keptFrom(day)
}

// keptFrom notes from when on all records are there.
func (t *tx) keptFrom(day time.Time) error {
	return t.exec(`INSERT INTO retention (kept_from) VALUES ($1::text::timestamptz)
		ON CONFLICT (one) DO UPDATE SET kept_from = greatest(retention.kept_from, excluded.kept_from)`, day.Format(time.DateOnly)+" 00:00:00+00")
}

// deleteOld deletes what has no partition of its own.
func (s *Store) deleteOld(ctx context.Context, floor time.Time) error {
	for n := oldRows; n == oldRows; {
		if err := s.admin.tx(ctx, "delete old records", func(t *tx) (err error) {
			n, err = t.deleteOld(floor)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// deleteOld deletes some rows of the default partition. They are there because they
// came late, so that their leases and budgets may well be younger than what is kept:
// it is noted there that not all can be recomputed any more.
func (t *tx) deleteOld(floor time.Time) (int, error) {
	rows, err := t.Query(t.ctx, `DELETE FROM spend_records_default WHERE ctid = ANY (ARRAY(SELECT ctid FROM spend_records_default
		WHERE start_ts < $1::text::timestamptz LIMIT $2)) RETURNING holder`, floor.Format(time.DateOnly)+" 00:00:00+00", oldRows)
	if err != nil {
		return 0, err
	}
	holders, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(holders) == 0 {
		return 0, err
	}
	n := len(holders)
	slices.Sort(holders)
	holders = slices.Compact(holders)
	for _, q := range []string{
		`UPDATE cursors SET created = NULL WHERE holder = ANY($1::text[])`,
		`UPDATE leases SET created = NULL WHERE holder = ANY($1::text[])`,
		`UPDATE budgets SET opening_spent = NULL WHERE id IN (SELECT budget FROM leases WHERE holder = ANY($1::text[]))`,
	} {
		if err := t.exec(q, holders); err != nil {
			return n, err
		}
	}
	return n, t.keptFrom(floor)
}

// pause sleeps, or returns why it must not.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
