package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// limitsLock is how long calls about limits lock at once after one found that others
// are at the same limits.
const limitsLock = time.Second

// tryLimits decides a call on what it reads and writes the decision if all of that still
// stands: two statements instead of five, for the long tail of limits that only one
// worker is at. done is false when nothing was written, for whatever reason: the call
// then locks, and meets the same reason or has another result.
func (s *Store) tryLimits(ctx context.Context, sync store.LimitSync) (res store.LimitResult, done bool) {
	if time.Now().UnixNano() < s.limitsLocked.Load() {
		return res, false
	}
	err := s.hot.read(ctx, "sync limits", func(t *tx) error {
		read, err := t.readLimits(sync)
		if !read.next || err != nil {
			return err
		}
		old := make([]string, len(read.meters))
		for i, r := range read.meters {
			old[i] = r.State
		}
		if res, err = store.DecideLimits(sync, read.meters, read.now, read.holders, t.deadHolders); err != nil {
			return err
		}
		done, err = t.swapLimits(sync, read.meters, old)
		if err == nil && !done {
			s.limitsLocked.Store(time.Now().Add(limitsLock).UnixNano())
		}
		return err
	})
	return res, done && err == nil
}

// readLimits reads the rows of a call, parallel to its asks. next is false when one of
// them is missing, or the number is not the holder's next one.
func (t *tx) readLimits(sync store.LimitSync) (lockedLimits, error) {
	l := lockedLimits{next: true}
	subjects, kinds := limitNames(sync)
	rows, err := t.Query(t.ctx, `SELECT clock_timestamp(), (SELECT count(*) FROM holders WHERE NOT closed AND expires > clock_timestamp()),
			(SELECT seq FROM limit_holders WHERE holder = $1), u.subject, u.kind, m.state
		FROM unnest($2::text[], $3::smallint[]) WITH ORDINALITY u (subject, kind, n) LEFT JOIN limit_meters m ON m.subject = u.subject AND m.kind = u.kind
		ORDER BY u.n`, sync.Holder, subjects, kinds)
	if err != nil {
		return l, err
	}
	l.meters, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (store.LimitMeter, error) {
		var m store.LimitMeter
		var kind int16
		var last *int64
		var state *string
		err := row.Scan(&l.now, &l.holders, &last, &m.Subject, &kind, &state)
		if l.next = l.next && last != nil && *last == int64(sync.Seq)-1 && state != nil; l.next {
			m.State = *state
		}
		m.Kind = ledger.LimitKind(kind)
		return m, err
	})
	return l, err
}

// swapLimits writes the states of rows if every row still is as it was read and the
// number still is the next one; else it writes nothing.
func (t *tx) swapLimits(sync store.LimitSync, rows []store.LimitMeter, old []string) (bool, error) {
	subjects, kinds := limitNames(sync)
	states := make([]string, len(rows))
	for i, r := range rows {
		states[i] = r.State
	}
	var swapped bool
	err := t.row(`WITH mine AS (SELECT FROM limit_holders WHERE holder = $1 AND seq = $2::bigint - 1 FOR NO KEY UPDATE),
		same AS (
			SELECT m.subject, m.kind, u.state
			FROM limit_meters m JOIN unnest($3::text[], $4::smallint[], $5::text[], $6::text[]) u (subject, kind, old, state)
			ON m.subject = u.subject AND m.kind = u.kind AND m.state = u.old
			ORDER BY m.subject, m.kind FOR NO KEY UPDATE OF m),
		ok AS (SELECT EXISTS (SELECT FROM mine) AND (SELECT count(*) FROM same) = cardinality($3::text[]) AS yes),
		numbered AS (UPDATE limit_holders h SET seq = $2::bigint, touched = clock_timestamp() FROM ok WHERE ok.yes AND h.holder = $1),
		written AS (
			UPDATE limit_meters m SET state = same.state, touched = clock_timestamp() FROM same, ok
			WHERE ok.yes AND m.subject = same.subject AND m.kind = same.kind)
		SELECT yes FROM ok`, sync.Holder, int64(sync.Seq), subjects, kinds, old, states).Scan(&swapped)
	return swapped, err
}

// limitNames are the keys of the rows that a call's asks stand in.
func limitNames(sync store.LimitSync) (subjects []string, kinds []int16) {
	subjects, kinds = make([]string, len(sync.Asks)), make([]int16, len(sync.Asks))
	for i, a := range sync.Asks {
		subjects[i], kinds[i] = store.CleanText(a.Subject), int16(a.Kind)
	}
	return subjects, kinds
}
