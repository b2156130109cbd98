package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// daysAhead is how far partitions are made in advance.
	daysAhead = 7
	// keepDays is how long rows of closed holders, and changes, are kept.
	keepDays = 7
	// partitionLock is the key of the transaction lock that lets one collector at a
	// time make partitions ("penstock" in ASCII).
	partitionLock int64 = 0x70656e73746f636b
)

// Maintain implements store.Store.
func (s *Store) Maintain(ctx context.Context) error {
	for day := range daysAhead + 1 {
		if err := s.flush.tx(ctx, "make partitions", func(t *tx) error { return t.makePartition(day) }); err != nil {
			return err
		}
	}
	if err := s.flush.tx(ctx, "delete old rows", func(t *tx) error {
		var b pgx.Batch
		for _, q := range []string{
			`DELETE FROM leases WHERE holder IN (SELECT id FROM holders WHERE closed AND closed_at < clock_timestamp() - make_interval(days => $1::int))`,
			`DELETE FROM cursors WHERE holder IN (SELECT id FROM holders WHERE closed AND closed_at < clock_timestamp() - make_interval(days => $1::int))`,
			`DELETE FROM holders WHERE closed AND closed_at < clock_timestamp() - make_interval(days => $1::int)`,
			`DELETE FROM changes WHERE at < clock_timestamp() - make_interval(days => $1::int)`,
			`DELETE FROM limit_meters WHERE touched < clock_timestamp() - make_interval(days => $1::int)`,
			`DELETE FROM limit_holders WHERE touched < clock_timestamp() - make_interval(days => $1::int)`,
		} {
			b.Queue(q, keepDays)
		}
		return t.send(&b)
	}); err != nil {
		return err
	}
	return s.dropOld(ctx)
}

// makePartition makes the partition of the day that is so many days from now
// (UTC), and moves into it what the default partition took for that day. Another
// collector that is at it is not waited for.
func (t *tx) makePartition(ahead int) error {
	var day time.Time
	var exists, mine bool
	if err := t.row(`SELECT d, to_regclass('spend_records_p' || to_char(d, 'YYYYMMDD')) IS NOT NULL, pg_try_advisory_xact_lock($2)
		FROM (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date + $1::int AS d) x`, ahead, partitionLock).Scan(&day, &exists, &mine); err != nil {
		return err
	}
	if exists || !mine {
		return nil
	}
	name := "spend_records_p" + day.Format("20060102")
	from, to := day.Format(time.DateOnly)+" 00:00:00+00", day.AddDate(0, 0, 1).Format(time.DateOnly)+" 00:00:00+00"
	// Names and bounds are made of a date here, so nothing needs quoting. The lock
	// on the default partition is short or not at all: commits must not queue behind it.
	return t.exec(fmt.Sprintf(`SET LOCAL lock_timeout = '2s';
		CREATE TABLE %[1]s (LIKE spend_records INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
		LOCK TABLE spend_records_default IN ACCESS EXCLUSIVE MODE;
		WITH moved AS (DELETE FROM spend_records_default WHERE start_ts >= '%[2]s' AND start_ts < '%[3]s' RETURNING *)
		INSERT INTO %[1]s SELECT * FROM moved;
		ALTER TABLE spend_records ATTACH PARTITION %[1]s FOR VALUES FROM ('%[2]s') TO ('%[3]s')`, name, from, to))
}
