package sqlite

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/penstock-gateway/penstock/internal/store"
)

// reconcile brings the current budget rows of an owner in line with what it wants. It
// says whether the owner has a main budget afterwards.
func (t *tx) reconcile(entity string, old, want []store.BudgetSpec, sofar int64, spend *int64) (main bool, err error) {
	if spend != nil && *spend < 0 {
		return false, fmt.Errorf("cannot set spend %d: want 0 or more: %w", *spend, store.ErrInvalid)
	}
	var have []store.BudgetRow
	for _, name := range store.SpecEntities(entity, old, want) {
		rows, err := t.budgetsOf(name)
		if err != nil {
			return false, err
		}
		have = append(have, rows...)
	}
	if err := t.moveRows(store.PlanBudgets(entity, have, want, sofar, spend)); err != nil {
		return false, err
	}
	return len(want) > 0 && want[0].Entity == entity && want[0].Win == "", nil
}

// budgetsOf reads all current rows of an entity.
func (t *tx) budgetsOf(entity string) ([]store.BudgetRow, error) {
	rows, err := t.QueryContext(t.ctx, `SELECT win FROM budgets WHERE current AND entity = ?`, entity)
	if err != nil {
		return nil, err
	}
	wins, err := collect(rows, func(w *string) []any { return []any{w} })
	if err != nil {
		return nil, err
	}
	out := make([]store.BudgetRow, 0, len(wins))
	for _, win := range wins {
		b, err := t.budget(entity, win)
		if err != nil {
			return nil, err
		}
		out = append(out, *b)
	}
	return out, nil
}

func (t *tx) moveRows(m store.BudgetMoves) error {
	for _, id := range m.End {
		if err := t.exec(`UPDATE budgets SET current = 0, until_ts = ? WHERE id = ?`, micros(t.now), id); err != nil {
			return err
		}
	}
	for _, row := range m.Limits {
		if err := t.exec(`UPDATE budgets SET limit_n = ? WHERE id = ?`, row.Limit, row.ID); err != nil {
			return err
		}
	}
	for _, row := range m.Spans {
		end, err := store.PeriodEnd(row.Duration, t.now, t.now)
		if err != nil {
			return err
		}
		if err := t.exec(`UPDATE budgets SET duration = ?, anchor_ts = ?, until_ts = ? WHERE id = ?`, row.Duration, micros(t.now), micros(end), row.ID); err != nil {
			return err
		}
	}
	for i, spec := range m.Open {
		row, err := spec.OpenRow(m.OpenSpent[i], t.now)
		if err != nil {
			return err
		}
		if err := t.insertBudget(&row); err != nil {
			return err
		}
	}
	return nil
}

// templateOf reads the template that settings name. One that does not exist is the
// caller's fault.
func (t *tx) templateOf(settings string) (store.Template, error) {
	id, err := store.TemplateID(settings)
	if err != nil || id == "" {
		return store.Template{}, err
	}
	var out store.Template
	err = t.row(`SELECT max_budget, budget_duration FROM entities WHERE name = ?`, store.EntityName(store.KindTemplate, id)).
		Scan(&out.MaxBudget, &out.Duration)
	if errors.Is(err, sql.ErrNoRows) {
		return out, fmt.Errorf("cannot use budget_id %.40q: there is no such budget: %w", id, store.ErrInvalid)
	}
	return out, err
}
