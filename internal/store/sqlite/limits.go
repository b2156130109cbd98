package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/penstock-gateway/penstock/internal/store"
)

// SyncLimits implements store.Limits.
func (s *Store) SyncLimits(ctx context.Context, sync store.LimitSync) (store.LimitResult, error) {
	if err := store.CheckSeq(sync.Seq); err != nil {
		return store.LimitResult{}, err
	}
	var res store.LimitResult
	err := s.tx(ctx, "sync limits", func(tx *tx) (err error) {
		res, err = tx.syncLimits(sync)
		return err
	})
	if err != nil {
		return store.LimitResult{}, err
	}
	return res, nil
}

func (t *tx) syncLimits(sync store.LimitSync) (store.LimitResult, error) {
	last := sync.Seq - 1 // a holder that is not known begins anywhere
	err := t.row(`SELECT seq FROM limit_holders WHERE holder = ?`, sync.Holder).Scan(&last)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return store.LimitResult{}, err
	}
	if replayed, err := store.CheckGrantSeq(sync.Seq, last); replayed || err != nil {
		return store.LimitResult{Replayed: replayed}, err
	}
	rows, err := t.limitRows(sync)
	if err != nil {
		return store.LimitResult{}, err
	}
	var holders int
	if err := t.row(`SELECT count(*) FROM holders WHERE NOT closed AND expires > ?`, micros(t.now)).Scan(&holders); err != nil {
		return store.LimitResult{}, err
	}
	res, err := store.DecideLimits(sync, rows, t.now, holders, t.deadHolders)
	if err != nil {
		return res, err
	}
	return res, t.writeLimits(sync, rows)
}

func (t *tx) limitRows(sync store.LimitSync) ([]store.LimitMeter, error) {
	var found []store.LimitMeter
	for _, r := range store.LimitRows(sync.Asks, nil) {
		err := t.row(`SELECT state FROM limit_meters WHERE subject = ? AND kind = ?`, r.Subject, r.Kind).Scan(&r.State)
		switch {
		case err == nil:
			r.New = false
			found = append(found, r)
		case !errors.Is(err, sql.ErrNoRows):
			return nil, err
		}
	}
	return store.LimitRows(sync.Asks, found), nil
}

// deadHolders are those of ids whose process has ended for sure: their journals were
// adopted under the lock that a living process holds.
func (t *tx) deadHolders(ids []string) (map[string]bool, error) {
	dead := map[string]bool{}
	for _, id := range ids {
		var closed bool
		err := t.row(`SELECT closed FROM holders WHERE id = ?`, id).Scan(&closed)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		if closed {
			dead[id] = true
		}
	}
	return dead, nil
}

func (t *tx) writeLimits(sync store.LimitSync, rows []store.LimitMeter) error {
	for _, r := range rows {
		if err := t.exec(`INSERT INTO limit_meters (subject, kind, state, touched) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET state = excluded.state, touched = excluded.touched`, r.Subject, r.Kind, r.State, micros(t.now)); err != nil {
			return err
		}
	}
	return t.exec(`INSERT INTO limit_holders (holder, seq, touched) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET seq = excluded.seq, touched = excluded.touched`, sync.Holder, int64(sync.Seq), micros(t.now))
}
