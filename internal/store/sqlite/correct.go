package sqlite

import (
	"context"
	"fmt"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// TakeBack implements store.Corrector.
func (s *Store) TakeBack(ctx context.Context, c store.TakeBack) (store.Correction, error) {
	var done store.Correction
	err := s.tx(ctx, "take back a lost charge", func(t *tx) error {
		leases, err := t.leases(c.Holder, []store.LeaseRef{c.LeaseRef})
		if err != nil {
			return err
		}
		l := leases[c.LeaseRef]
		switch {
		case l == nil:
			return store.ErrNotFound
		case l.State != ledger.Lost || l.Lost == 0:
			return store.ErrCorrected
		}
		done = store.Correction{Subject: "lease:" + store.LeaseName(c.Holder, c.LeaseRef), Before: l.Lost, Reason: store.CleanText(c.Reason)}
		if err := t.saveAll(c.Holder, leases, map[int64]ledger.Delta{c.Budget: l.TakeBack()}); err != nil {
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
	err := s.tx(ctx, "correct a record", func(t *tx) error {
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

// candidates reads the records that may be meant.
func (t *tx) candidates(c store.CorrectRecord) ([]store.Candidate, error) {
	rows, err := t.QueryContext(t.ctx, `SELECT holder, `+recordColumns+`, corrected_from FROM spend_records
		WHERE request_id = ?1 AND (?2 = '' OR holder = ?2 AND seq = ?3) ORDER BY holder, seq LIMIT 2`, c.RequestID, c.Holder, int64(c.Seq))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []store.Candidate
	for rows.Next() {
		found, err := scanCandidate(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, found)
	}
	return out, rows.Err()
}

// correct moves a record and everything that its cost stands in.
func (t *tx) correct(r store.Candidate, cost int64) error {
	leases, err := t.leases(r.Holder, store.Refs([]store.Record{r.Record}))
	if err != nil {
		return err
	}
	late := make(map[int64]int64)
	for _, c := range r.Charges {
		var amount int64
		if err := t.row(`SELECT late_overrun FROM budgets WHERE id = ?`, c.Budget).Scan(&amount); err != nil {
			return err
		}
		late[c.Budget] = amount
	}
	before := r.Cost
	if err := t.saveAll(r.Holder, leases, r.Adjust(cost, leases, late)); err != nil {
		return err
	}
	if err := t.exec(`UPDATE spend_records SET cost = ?, charges = ?, corrected_from = ? WHERE holder = ? AND seq = ?`,
		cost, text(r.Charges), before, r.Holder, int64(r.Seq)); err != nil {
		return err
	}
	subjects, _ := store.SubjectSums([]store.Record{r.Record})
	for _, s := range subjects {
		if err := t.exec(`UPDATE spend_subjects SET cost = cost + ? WHERE subject = ? AND day = ?`, cost-before, s.Subject, s.Day); err != nil {
			return err
		}
	}
	keys, _ := store.DaySums([]store.Record{r.Record})
	k := keys[0]
	return t.exec(`UPDATE spend_daily SET cost = cost + ? WHERE key_id = ? AND day = ? AND user_id = ? AND team_id = ? AND organization_id = ? AND model = ?`,
		cost-before, k.KeyID, k.Day, k.UserID, k.TeamID, k.OrgID, k.Model)
}

func (t *tx) auditCorrection(c store.Correction, by string) error {
	return t.exec(`INSERT INTO audit (at, actor, action, subject, before, after) VALUES (?, ?, 'correct', ?, ?, ?)`,
		micros(t.now), store.CleanText(by), c.Subject, text(c.Before), text(c))
}
