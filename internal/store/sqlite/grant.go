package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// Heartbeat implements store.Ledger.
func (s *Store) Heartbeat(ctx context.Context, holders []store.HolderID, ttl time.Duration) ([]store.HolderState, error) {
	out := make([]store.HolderState, 0, len(holders))
	err := s.tx(ctx, "renew holders", func(tx *tx) error {
		for _, h := range holders {
			st, err := tx.renew(h, tx.now.Add(ttl))
			if err != nil {
				return err
			}
			out = append(out, st)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (t *tx) renew(h store.HolderID, expires time.Time) (store.HolderState, error) {
	if err := t.know(h, expires); err != nil {
		return store.HolderState{}, err
	}
	st := store.HolderState{Holder: h}
	err := t.row(`UPDATE holders SET expires = ? WHERE id = ? AND NOT closed RETURNING reaps`, micros(expires), h).Scan(&st.Reaps)
	if errors.Is(err, sql.ErrNoRows) {
		st.Fenced, err = true, nil
	}
	return st, err
}

// know makes a holder and its cursor when they are missing.
func (t *tx) know(h store.HolderID, expires time.Time) error {
	if err := t.exec(`INSERT INTO holders (id, expires) VALUES (?, ?) ON CONFLICT DO NOTHING`, h, micros(expires)); err != nil {
		return err
	}
	return t.exec(`INSERT INTO cursors (holder, created) VALUES (?, ?) ON CONFLICT DO NOTHING`, h, micros(t.now))
}

// Grant implements store.Ledger.
func (s *Store) Grant(ctx context.Context, g store.Grant) (store.GrantResult, error) {
	if err := store.CheckSeq(g.Seq); err != nil {
		return store.GrantResult{}, err
	}
	var res store.GrantResult
	err := s.tx(ctx, "grant", func(tx *tx) (err error) {
		res, err = tx.grant(g)
		return err
	})
	return res, err
}

func (t *tx) grant(g store.Grant) (store.GrantResult, error) {
	res := store.GrantResult{Status: store.GrantRenewFirst}
	var last uint64
	var live int
	err := t.row(`SELECT grant_seq, reaps, (SELECT count(*) FROM holders WHERE NOT closed AND expires > ?1)
		FROM holders WHERE id = ?2 AND NOT closed AND expires > ?1`, micros(t.now), g.Holder).Scan(&last, &res.Reaps, &live)
	if errors.Is(err, sql.ErrNoRows) {
		return res, nil
	} else if err != nil {
		return res, err
	}
	replayed, err := store.CheckGrantSeq(g.Seq, last)
	if err != nil {
		return res, err
	}
	if replayed {
		res.Status = store.GrantReplayed
		res.Leases, err = t.granted(g)
		return res, err
	}
	res.Status = store.GrantOK
	if err := t.decide(g, live, &res); err != nil {
		return res, err
	}
	return res, t.exec(`UPDATE holders SET grant_seq = ? WHERE id = ?`, int64(g.Seq), g.Holder)
}

// decide serves the wants and writes the leases.
func (t *tx) decide(g store.Grant, live int, res *store.GrantResult) error {
	wants := g.LedgerWants()
	budgets, err := t.currentBudgets(ledger.Entities(wants))
	if err != nil {
		return err
	}
	plan, err := ledger.Decide(wants, budgets, live)
	if err != nil {
		return err
	}
	for _, v := range plan.Verdicts {
		res.Results = append(res.Results, store.ResultOf(v))
	}
	for _, l := range plan.Leases {
		if err := t.change(l.Budget.ID, ledger.Delta{Leased: l.Amount}); err != nil {
			return err
		}
		if err := t.exec(`INSERT INTO leases (holder, seq, budget, state, granted, created) VALUES (?, ?, ?, 'open', ?, ?)`,
			g.Holder, int64(g.Seq), l.Budget.ID, l.Amount, micros(t.now)); err != nil {
			return err
		}
		res.Leases = append(res.Leases, store.LeaseOf(g.Seq, l, t.now))
	}
	return nil
}

// granted answers a repeated grant with what became of its leases.
func (t *tx) granted(g store.Grant) ([]store.Lease, error) {
	rows, err := t.QueryContext(t.ctx, `SELECT l.budget, b.entity, b.win, l.granted, b.until_ts, l.state
		FROM leases l JOIN budgets b ON b.id = l.budget
		WHERE l.holder = ? AND l.seq = ? AND l.state <> 'closed' ORDER BY l.budget`, g.Holder, int64(g.Seq))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []store.Lease
	for rows.Next() {
		l := store.Lease{LeaseRef: store.LeaseRef{Seq: g.Seq}}
		var until sql.NullInt64
		var win string
		if err := rows.Scan(&l.Budget, &l.Entity, &win, &l.Granted, &until, &l.State); err != nil {
			return nil, err
		}
		l.Entity = store.WindowName(l.Entity, win)
		l.UntilIn = store.UntilIn(timeOf(until), t.now)
		out = append(out, l)
	}
	return out, rows.Err()
}

// currentBudgets reads the current rows that the names of entities and windows stand
// for; a row whose period is over is replaced by the next one.
func (t *tx) currentBudgets(names []string) ([]ledger.Budget, error) {
	var out []ledger.Budget
	for _, name := range names {
		b, err := t.budget(store.SplitWindow(name))
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		if b.Over(t.now) {
			if b, err = t.nextPeriod(*b); err != nil {
				return nil, err
			}
		}
		budget := b.Budget
		budget.Entity = name
		out = append(out, budget)
	}
	return out, nil
}

// budget reads the current row of an entity's window; nil when it has none.
func (t *tx) budget(entity, win string) (*store.BudgetRow, error) {
	b := store.BudgetRow{Budget: ledger.Budget{Entity: entity}, Win: win}
	var anchor, until sql.NullInt64
	err := t.row(`SELECT id, limit_n, spent, overrun, leased, lost, anchor_ts, until_ts, duration,
		(SELECT coalesce(sum(spent), 0) FROM leases WHERE budget = budgets.id AND state = 'open')
		FROM budgets WHERE current AND entity = ? AND win = ?`, entity, win).
		Scan(&b.ID, &b.Limit, &b.Spent, &b.Overrun, &b.Leased, &b.Lost, &anchor, &until, &b.Duration, &b.OpenSpent)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	b.Anchor, b.Until = timeOf(anchor), timeOf(until)
	return &b, err
}

// nextPeriod ends a row whose time is over and makes its successor.
func (t *tx) nextPeriod(b store.BudgetRow) (*store.BudgetRow, error) {
	if err := t.exec(`UPDATE budgets SET current = 0 WHERE id = ?`, b.ID); err != nil {
		return nil, err
	}
	end, err := store.PeriodEnd(b.Duration, b.Anchor, t.now)
	if err != nil {
		return nil, err
	}
	next := store.BudgetRow{Budget: ledger.Budget{Entity: b.Entity, Limit: b.Limit, Until: end}, Win: b.Win, Anchor: b.Anchor, Duration: b.Duration}
	err = t.insertBudget(&next)
	return &next, err
}

// insertBudget writes a current row and sets its id.
func (t *tx) insertBudget(b *store.BudgetRow) error {
	return t.row(`INSERT INTO budgets (entity, win, duration, anchor_ts, from_ts, until_ts, limit_n, spent, overrun)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		b.Entity, b.Win, b.Duration, micros(b.Anchor), micros(t.now), micros(b.Until), b.Limit, b.Spent, b.Overrun).Scan(&b.ID)
}

// change moves money of one budget row.
func (t *tx) change(id int64, d ledger.Delta) error {
	return t.exec(`UPDATE budgets SET spent = spent + ?, overrun = overrun + ?, leased = leased + ?, lost = lost + ?, late_overrun = late_overrun + ? WHERE id = ?`,
		d.Spent, d.Overrun, d.Leased, d.Lost, d.Late, id)
}
