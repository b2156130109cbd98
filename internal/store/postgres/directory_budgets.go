package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
)

// reconcile brings the current budget rows of an owner in line with what it wants. It
// says whether the owner has a main budget afterwards.
func (t *tx) reconcile(entity string, old, want []store.BudgetSpec, sofar int64, spend *int64) (main bool, err error) {
	if spend != nil && *spend < 0 {
		return false, fmt.Errorf("cannot set spend %d: want 0 or more: %w", *spend, store.ErrInvalid)
	}
	have, err := t.lockBudgets(store.SpecEntities(entity, old, want))
	if err != nil {
		return false, err
	}
	if err := t.moveRows(store.PlanBudgets(entity, have, want, sofar, spend)); err != nil {
		return false, err
	}
	return len(want) > 0 && want[0].Entity == entity && want[0].Win == "", nil
}

// lockBudgets locks all current rows of entities in the order of their ids.
func (t *tx) lockBudgets(entities []string) ([]store.BudgetRow, error) {
	rows, err := query(t, scanBudget, `SELECT `+budgetColumns+` FROM budgets b WHERE b.current AND b.entity = ANY($1::text[]) ORDER BY b.id FOR UPDATE`, entities)
	if err != nil {
		return nil, err
	}
	var current int
	if err := t.row(`SELECT count(*) FROM budgets WHERE current AND entity = ANY($1::text[])`, entities).Scan(&current); err != nil {
		return nil, err
	}
	if current != len(rows) {
		return nil, errAgain // a grant made the next period's row meanwhile
	}
	return rows, nil
}

func (t *tx) moveRows(m store.BudgetMoves) error {
	now, err := t.clock()
	if err != nil {
		return err
	}
	var b pgx.Batch
	for _, id := range m.End {
		b.Queue(`UPDATE budgets SET current = false, until_ts = clock_timestamp() WHERE id = $1`, id)
	}
	for _, row := range m.Limits {
		b.Queue(`UPDATE budgets SET limit_n = $2 WHERE id = $1`, row.ID, row.Limit)
	}
	for _, row := range m.Spans {
		end, err := store.PeriodEnd(row.Duration, now, now)
		if err != nil {
			return err
		}
		b.Queue(`UPDATE budgets SET duration = $2, anchor_ts = $3, until_ts = $4 WHERE id = $1`, row.ID, row.Duration, now, nullTime(end))
	}
	if err := t.send(&b); err != nil {
		return err
	}
	for i, spec := range m.Open {
		row, err := spec.OpenRow(m.OpenSpent[i], now)
		if err != nil {
			return err
		}
		if err := t.insertBudget(&row); err != nil {
			return err
		}
	}
	return nil
}

// templateOf reads the template that settings name, and keeps it from changing until
// the transaction ends. One that does not exist is the caller's fault.
func (t *tx) templateOf(settings string) (store.Template, error) {
	id, err := store.TemplateID(settings)
	if err != nil || id == "" {
		return store.Template{}, err
	}
	var out store.Template
	err = t.row(`SELECT max_budget, budget_duration FROM entities WHERE name = $1 FOR SHARE`, store.EntityName(store.KindTemplate, store.CleanText(id))).
		Scan(&out.MaxBudget, &out.Duration)
	if errors.Is(err, pgx.ErrNoRows) {
		return out, fmt.Errorf("cannot use budget_id %.40q: there is no such budget: %w", id, store.ErrInvalid)
	}
	return out, err
}
