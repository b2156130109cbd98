package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// TakeBack implements store.Corrector.
func (s *Store) TakeBack(ctx context.Context, c store.TakeBack) (store.Correction, error) {
	var done store.Correction
	err := s.admin.tx(ctx, "take back a lost charge", func(t *tx) error {
		locked, err := t.leases(c.Holder, []store.LeaseRef{c.LeaseRef})
		if err != nil {
			return err
		}
		l := locked[c.LeaseRef]
		switch {
		case l == nil:
			return store.ErrNotFound
		case l.State != ledger.Lost || l.Lost == 0:
			return store.ErrCorrected
		}
		done = store.Correction{Subject: "lease:" + store.LeaseName(c.Holder, c.LeaseRef), Before: l.Lost, Reason: store.CleanText(c.Reason)}
		if err := t.settle(c.Holder, locked, func(_ store.LeaseRef, l *ledger.Lease) ledger.Delta { return l.TakeBack() }); err != nil {
			return err
		}
		return t.auditCorrection(done, c.By)
	})
	return done, err
}

// CorrectRecord implements store.Corrector.
func (s *Store) CorrectRecord(ctx context.Context, c store.CorrectRecord) (store.Correction, error) {
	if err := c.Check(); err != nil {
		return store.Correction{}, err
	}
	var done store.Correction
	err := s.admin.tx(ctx, "correct a record", func(t *tx) error {
		found, err := t.candidates(c)
		if err != nil {
			return err
		}
		r, err := c.Choose(found)
		if err != nil {
			return err
		}
		done = store.Correction{Subject: fmt.Sprintf("record:%s/%d", r.Holder, r.Seq), Before: r.Cost, After: c.Cost, Reason: store.CleanText(c.Reason)}
		if err := t.correct(r, c.Cost); err != nil {
			return err
		}
		return t.auditCorrection(done, c.By)
	})
	return done, err
}

// candidates locks the records that may be meant: two corrections of one record meet here.
func (t *tx) candidates(c store.CorrectRecord) ([]store.Candidate, error) {
	w := &where{}
	w.equal("request_id", c.RequestID)
	if c.Holder != "" {
		w.equal("holder", string(c.Holder))
		w.add("seq = ?", int64(c.Seq))
	}
	return query(t, scanCandidate, `SELECT `+readColumns+` FROM spend_records`+w.String()+` ORDER BY holder, seq LIMIT 2 FOR UPDATE`, w.args...)
}

// correct moves a record and everything that its cost stands in.
func (t *tx) correct(r store.Candidate, cost int64) error {
	leases, err := t.leases(r.Holder, store.Refs([]store.Record{r.Record}))
	if err != nil {
		return err
	}
	late, err := t.lateOverruns(&r.Record)
	if err != nil {
		return err
	}
	before := r.Cost
	changes := r.Adjust(cost, leases, late)
	if err := t.saveLeases(r.Holder, leases); err != nil {
		return err
	}
	if err := t.change(changes); err != nil {
		return err
	}
	charges, err := json.Marshal(r.Charges)
	if err != nil {
		return err
	}
	if err := t.exec(`UPDATE spend_records SET cost = $5, charges = $6::text::jsonb, corrected_from = $7
		WHERE request_id = $1 AND start_ts = $2 AND holder = $3 AND seq = $4`,
		r.RequestID, r.Start, string(r.Holder), int64(r.Seq), cost, string(charges), before); err != nil {
		return err
	}
	return t.correctDay(r, cost-before)
}

// lateOverruns locks the budgets that a record charges and reads what came late.
func (t *tx) lateOverruns(r *store.Record) (map[int64]int64, error) {
	var ids []int64
	for _, c := range r.Charges {
		ids = append(ids, c.Budget)
	}
	rows, err := t.Query(t.ctx, `SELECT id, late_overrun FROM budgets WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE`, ids)
	if err != nil {
		return nil, err
	}
	late := make(map[int64]int64)
	var id, amount int64
	_, err = pgx.ForEachRow(rows, []any{&id, &amount}, func() error { late[id] = amount; return nil })
	return late, err
}

// correctDay moves the sums that the record went into.
func (t *tx) correctDay(r store.Candidate, by int64) error {
	keys, _ := store.DaySums([]store.Record{r.Record})
	k := keys[0]
	subjects, _ := store.SubjectSums([]store.Record{r.Record})
	for _, s := range subjects {
		if err := t.exec(`UPDATE spend_subjects SET cost = cost + $1 WHERE subject = $2 AND day = $3::text::date AND shard = $4::int`,
			by, s.Subject, s.Day, shard(r.Holder)); err != nil {
			return err
		}
	}
	done, err := t.Exec(t.ctx, `UPDATE spend_daily SET cost = cost + $1 WHERE key_id = $2 AND day = $3::text::date AND user_id = $4 AND team_id = $5
		AND organization_id = $6 AND model = $7 AND shard = $8::int`, by, k.KeyID, k.Day, k.UserID, k.TeamID, k.OrgID, k.Model, shard(r.Holder))
	if err == nil && done.RowsAffected() != 1 {
		err = fmt.Errorf("the daily sum of record %d of %s is not there: run penstock ledger verify", r.Seq, r.Holder)
	}
	return err
}

func (t *tx) auditCorrection(c store.Correction, by string) error {
	after, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO audit (actor, action, subject, before, after) VALUES ($1, 'correct', $2, to_jsonb($3::bigint), $4::text::jsonb)`,
		store.CleanText(by), c.Subject, c.Before, string(after))
}
