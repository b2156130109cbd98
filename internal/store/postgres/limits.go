package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// SyncLimits implements store.Limits. It first tries without locks, in two statements;
// where others are at the same limits, or a row is missing, it locks. Rows are locked in
// the order limit_holders, limit_meters, each by its key.
func (s *Store) SyncLimits(ctx context.Context, sync store.LimitSync) (store.LimitResult, error) {
	if err := store.CheckSeq(sync.Seq); err != nil {
		return store.LimitResult{}, err
	}
	if res, done := s.tryLimits(ctx, sync); done {
		return res, nil
	}
	var res store.LimitResult
	err := s.tx(ctx, "sync limits", func(t *tx) (err error) {
		res, err = t.syncLimits(sync)
		return err
	})
	if err != nil {
		return store.LimitResult{}, err
	}
	return res, nil
}

func (t *tx) syncLimits(sync store.LimitSync) (store.LimitResult, error) {
	locked, err := t.lockLimits(sync)
	if err != nil {
		return store.LimitResult{}, err
	}
	if !locked.next {
		return store.LimitResult{Replayed: true}, t.checkLimitSeq(sync)
	}
	rows := store.LimitRows(sync.Asks, locked.meters)
	res, err := store.DecideLimits(sync, rows, locked.now, locked.holders, t.deadHolders)
	if err != nil {
		return res, err
	}
	return res, t.writeLimits(store.SortLimitRows(rows))
}

// lockedLimits is what a call found under its locks.
type lockedLimits struct {
	next    bool // the number is the holder's next one, and is taken
	now     time.Time
	holders int
	meters  []store.LimitMeter
}

// lockLimits takes the number and locks the rows in one round trip. The clock is read
// after the call has arrived, which is all that the rules need of it.
func (t *tx) lockLimits(sync store.LimitSync) (lockedLimits, error) {
	var l lockedLimits
	subjects, kinds := limitNames(sync)
	var b pgx.Batch
	b.Queue(`INSERT INTO limit_holders (holder, seq, touched) VALUES ($1, $2, clock_timestamp())
		ON CONFLICT (holder) DO UPDATE SET seq = excluded.seq, touched = excluded.touched WHERE limit_holders.seq = excluded.seq - 1
		RETURNING touched, (SELECT count(*) FROM holders WHERE NOT closed AND expires > clock_timestamp())`,
		sync.Holder, int64(sync.Seq)).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&l.now, &l.holders}, func() error { l.next = true; return nil })
		return err
	})
	b.Queue(`SELECT subject, kind, state FROM limit_meters WHERE (subject, kind) IN (SELECT * FROM unnest($1::text[], $2::smallint[]))
		ORDER BY subject, kind FOR NO KEY UPDATE`, subjects, kinds).Query(func(rows pgx.Rows) (err error) {
		l.meters, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (store.LimitMeter, error) {
			var m store.LimitMeter
			var kind int16
			err := row.Scan(&m.Subject, &kind, &m.State)
			m.Kind = ledger.LimitKind(kind)
			return m, err
		})
		return err
	})
	return l, t.send(&b)
}

// checkLimitSeq tells a number that was answered from one that is beyond the next.
func (t *tx) checkLimitSeq(sync store.LimitSync) error {
	var last uint64
	if err := t.row(`SELECT seq FROM limit_holders WHERE holder = $1`, sync.Holder).Scan(&last); err != nil {
		return err
	}
	_, err := store.CheckGrantSeq(sync.Seq, last)
	return err
}

// deadHolders are those of ids whose process has ended for sure: their journals were
// adopted under the lock that a living process holds. One that merely expired may be
// cut off and still have requests running.
func (t *tx) deadHolders(ids []string) (map[string]bool, error) {
	closed, err := query(t, pgx.RowTo[string], `SELECT id FROM holders WHERE closed AND id = ANY($1::text[])`, ids)
	dead := make(map[string]bool, len(closed))
	for _, id := range closed {
		dead[id] = true
	}
	return dead, err
}

// writeLimits writes the states of rows, which are in lock order. A new row that
// somebody else has made meanwhile was not locked, so all is decided again.
func (t *tx) writeLimits(rows []store.LimitMeter) error {
	var subjects, states [2][]string // of known rows, of new ones
	var kinds [2][]int16
	for _, r := range rows {
		at := 0
		if r.New {
			at = 1
		}
		subjects[at], kinds[at], states[at] = append(subjects[at], r.Subject), append(kinds[at], int16(r.Kind)), append(states[at], r.State)
	}
	var made int
	err := t.row(`WITH known AS (
			UPDATE limit_meters m SET state = u.state, touched = clock_timestamp()
			FROM unnest($1::text[], $2::smallint[], $3::text[]) u (subject, kind, state) WHERE m.subject = u.subject AND m.kind = u.kind),
		made AS (
			INSERT INTO limit_meters (subject, kind, state, touched)
			SELECT u.subject, u.kind, u.state, clock_timestamp() FROM unnest($4::text[], $5::smallint[], $6::text[]) u (subject, kind, state)
			ON CONFLICT DO NOTHING RETURNING 1)
		SELECT count(*) FROM made`, subjects[0], kinds[0], states[0], subjects[1], kinds[1], states[1]).Scan(&made)
	if err == nil && made != len(subjects[1]) {
		return errAgain
	}
	return err
}
