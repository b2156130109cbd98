package postgres

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// currentBudgets locks the current rows that the names of entities and windows stand
// for in the order of their ids; a row whose period is over is replaced by the next
// one. It also returns the database's clock, read after the locks.
func (t *tx) currentBudgets(names []string) ([]ledger.Budget, time.Time, error) {
	names = slices.DeleteFunc(names, func(e string) bool { return !store.Storable(e) })
	entities, wins := store.SplitWindows(names)
	var rows []store.BudgetRow
	var now time.Time
	var current int
	var b pgx.Batch
	b.Queue(`SELECT `+budgetColumns+` FROM budgets b JOIN unnest($1::text[], $2::text[]) u (entity, win) ON b.entity = u.entity AND b.win = u.win
		WHERE b.current ORDER BY b.id FOR UPDATE OF b`, entities, wins).Query(func(r pgx.Rows) (err error) {
		rows, err = pgx.CollectRows(r, scanBudget)
		return err
	})
	b.Queue(`SELECT clock_timestamp(), count(*) FROM budgets b JOIN unnest($1::text[], $2::text[]) u (entity, win) ON b.entity = u.entity AND b.win = u.win
		WHERE b.current`, entities, wins).
		QueryRow(func(r pgx.Row) error { return r.Scan(&now, &current) })
	if err := t.send(&b); err != nil {
		return nil, now, err
	}
	if current != len(rows) {
		// Somebody rolled a row over while this statement waited for its lock. Locking the
		// successor now would break the lock order, so everything starts over.
		return nil, now, errAgain
	}
	out := make([]ledger.Budget, len(rows))
	for i, row := range rows {
		if row.Over(now) {
			next, err := t.nextPeriod(row, now)
			if err != nil {
				return nil, now, err
			}
			row = next
		}
		out[i] = row.Budget
		out[i].Entity = store.WindowName(row.Entity, row.Win)
	}
	return out, now, nil
}

const budgetColumns = `b.id, b.entity, b.win, b.limit_n, b.spent, b.overrun, b.leased, b.lost, b.anchor_ts, b.until_ts, b.duration`

func scanBudget(row pgx.CollectableRow) (store.BudgetRow, error) {
	var b store.BudgetRow
	var until *time.Time
	err := row.Scan(&b.ID, &b.Entity, &b.Win, &b.Limit, &b.Spent, &b.Overrun, &b.Leased, &b.Lost, &b.Anchor, &until, &b.Duration)
	b.Until = timeOf(until)
	return b, err
}

// nextPeriod ends a locked row whose time is over and makes its successor.
func (t *tx) nextPeriod(b store.BudgetRow, now time.Time) (store.BudgetRow, error) {
	next := store.BudgetRow{Budget: ledger.Budget{Entity: b.Entity, Limit: b.Limit}, Win: b.Win, Anchor: b.Anchor, Duration: b.Duration}
	var err error
	if next.Until, err = store.PeriodEnd(b.Duration, b.Anchor, now); err != nil {
		return next, err
	}
	if err := t.exec(`UPDATE budgets SET current = false WHERE id = $1`, b.ID); err != nil {
		return next, err
	}
	return next, t.insertBudget(&next)
}

// insertBudget writes a current row and sets its id.
func (t *tx) insertBudget(b *store.BudgetRow) error {
	return t.row(`INSERT INTO budgets (entity, win, duration, anchor_ts, from_ts, until_ts, limit_n, spent, overrun)
		VALUES ($1, $2, $3, $4, clock_timestamp(), $5, $6, $7, $8) RETURNING id`,
		b.Entity, b.Win, b.Duration, b.Anchor, nullTime(b.Until), b.Limit, b.Spent, b.Overrun).Scan(&b.ID)
}

// addOpenSpent fills in what the open leases of locked budgets have committed.
func (t *tx) addOpenSpent(budgets []ledger.Budget) error {
	ids := make([]int64, len(budgets))
	for i, b := range budgets {
		ids[i] = b.ID
	}
	rows, err := t.Query(t.ctx, `SELECT budget, sum(spent)::bigint FROM leases WHERE budget = ANY($1::bigint[]) AND state = 'open' GROUP BY budget`, ids)
	if err != nil {
		return err
	}
	var id, spent int64
	_, err = pgx.ForEachRow(rows, []any{&id, &spent}, func() error {
		budgets[slices.Index(ids, id)].OpenSpent = spent
		return nil
	})
	return err
}

// change moves money of budget rows, which it locks in the order of their ids.
func (t *tx) change(changes map[int64]ledger.Delta) error {
	maps.DeleteFunc(changes, func(_ int64, d ledger.Delta) bool { return d == ledger.Delta{} })
	if len(changes) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(changes))
	var spent, overrun, leased, lost, late []int64
	for _, id := range ids {
		d := changes[id]
		spent, overrun = append(spent, d.Spent), append(overrun, d.Overrun)
		leased, lost, late = append(leased, d.Leased), append(lost, d.Lost), append(late, d.Late)
	}
	var b pgx.Batch
	b.Queue(`SELECT FROM budgets WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE`, ids)
	b.Queue(`UPDATE budgets b SET spent = b.spent + u.s, overrun = b.overrun + u.o, leased = b.leased + u.l, lost = b.lost + u.x,
		late_overrun = b.late_overrun + u.y
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) u (id, s, o, l, x, y) WHERE b.id = u.id`,
		ids, spent, overrun, leased, lost, late)
	return t.send(&b)
}

func sortedIDs(holders []store.HolderID) []string {
	ids := make([]string, len(holders))
	for i, h := range holders {
		ids[i] = string(h)
	}
	slices.SortFunc(ids, cmp.Compare[string])
	return slices.Compact(ids)
}

// nullTime is a time as a column has it; the zero time is NULL.
func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
