package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
)

// beginVerify opens the one snapshot of a check. It may take as long as the caller
// waits, and writes nothing, so that no key change waits for it.
const beginVerify = "begin isolation level repeatable read read only; set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0"

// Verify implements store.Verifier.
func (s *Store) Verify(ctx context.Context, o store.VerifyOptions) (store.Report, error) {
	r, err := s.verify(ctx, o)
	if err != nil {
		return store.Report{}, failure("verify the ledger", err)
	}
	return r, nil
}

func (s *Store) verify(ctx context.Context, o store.VerifyOptions) (store.Report, error) {
	c, err := s.admin.acquire(ctx)
	if err != nil {
		return store.Report{}, err
	}
	defer c.Release()
	t, err := c.BeginTx(ctx, pgx.TxOptions{BeginQuery: beginVerify})
	if err != nil {
		return store.Report{}, unavailable(err)
	}
	defer leave(ctx, c.Conn(), t, nil)
	v := &verification{tx: &tx{conn: t, ctx: ctx}, most: o.Most()}
	r := store.Report{Since: o.Since}
	return r, v.run(&r)
}

// verification is one check in its snapshot.
type verification struct {
	*tx
	most int
	// The scope as the statements want it; "-infinity" takes everything.
	read, days, check string
}

func (v *verification) run(r *store.Report) error {
	// The first statement, so that no partition can go after the snapshot is taken.
	if err := v.exec(`LOCK TABLE spend_records IN ACCESS SHARE MODE`); err != nil {
		return err
	}
	var kept *time.Time
	if err := v.row(`SELECT clock_timestamp(), (SELECT kept_from FROM retention)`).Scan(&r.At, &kept); err != nil {
		return err
	}
	r.At, r.KeptFrom = r.At.UTC(), timeOf(kept)
	scope := store.ScopeOf(r.Since, r.KeptFrom)
	v.read, v.days, v.check = since(scope.Read), since(scope.Days), since(scope.Check)
	for _, part := range []func(*store.Report) error{
		v.totals, v.differences, v.leases, v.records, v.deadLetters, v.budgets,
	} {
		if err := part(r); err != nil {
			return err
		}
	}
	return nil
}

func since(t time.Time) string {
	if t.IsZero() {
		return "-infinity"
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func (v *verification) totals(r *store.Report) error {
	t := &r.Totals
	if err := v.row(`SELECT count(*), coalesce(sum(cost), 0)::bigint, count(*) FILTER (WHERE estimated),
		count(*) FILTER (WHERE price_version = '' AND attempts > 0), count(*) FILTER (WHERE corrected_from IS NOT NULL)
		FROM spend_records WHERE start_ts >= $1::text::timestamptz`, v.read).
		Scan(&t.Records, &t.Cost, &t.Estimated, &t.Unpriced, &t.Corrected); err != nil {
		return err
	}
	return v.row(`SELECT (SELECT count(*) FROM cursors), (SELECT count(*) FROM leases), (SELECT count(*) FROM budgets),
		(SELECT count(*) FROM spend_daily WHERE day >= $1::text::date), (SELECT coalesce(sum(cost), 0)::bigint FROM spend_daily WHERE day >= $1::text::date),
		(SELECT coalesce(sum(spent), 0)::bigint FROM budgets WHERE current)
			+ (SELECT coalesce(sum(l.spent), 0)::bigint FROM leases l JOIN budgets b ON b.id = l.budget WHERE b.current AND l.state = 'open'),
		(SELECT coalesce(sum(leased), 0)::bigint FROM budgets)`, v.days).
		Scan(&t.Holders, &t.Leases, &t.Budgets, &t.DailyRows, &t.DailyCost, &t.BudgetSpent, &t.Leased)
}

// found fills a list from a statement whose first two columns are the count and the
// sum of all rows; it is limited here.
func found[T any](v *verification, into *store.List[T], fields func(*T) []any, sql string, args ...any) error {
	rows, err := v.Query(v.ctx, sql, append(args, v.most)...)
	if err != nil {
		return err
	}
	into.First, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (item T, err error) {
		return item, row.Scan(append([]any{&into.Count, &into.Sum}, fields(&item)...)...)
	})
	return err
}

// noTime stands for a time that is not known: Go's zero time.
const noTime = `'0001-01-01 00:00:00+00'::timestamptz`

func (v *verification) leases(r *store.Report) error {
	for _, part := range []struct {
		into         *store.List[store.LeaseFinding]
		amount, when string
	}{
		{&r.OpenLeases, "granted", "l.state = 'open'"},
		{&r.LostLeases, "lost", "l.state = 'lost' AND l.lost > 0"},
		{&r.LateLeases, "late", "l.late > 0"},
	} {
		sql := `SELECT count(*) OVER (), (sum(l.` + part.amount + `) OVER ())::bigint, l.holder, l.seq, l.budget, coalesce(b.entity, ''), l.` + part.amount + `, l.spent,
			coalesce(l.created, ` + noTime + `), coalesce(h.expires, ` + noTime + `)
			FROM leases l LEFT JOIN budgets b ON b.id = l.budget LEFT JOIN holders h ON h.id = l.holder
			WHERE ` + part.when + ` ORDER BY l.` + part.amount + ` DESC, l.holder, l.seq, l.budget LIMIT $1`
		if err := found(v, part.into, func(l *store.LeaseFinding) []any {
			return []any{&l.Holder, &l.Seq, &l.Budget, &l.Entity, &l.Amount, &l.Spent, &l.Created, &l.Expires}
		}, sql); err != nil {
			return err
		}
		for i := range part.into.First {
			l := &part.into.First[i]
			l.Created, l.Expires = l.Created.UTC(), l.Expires.UTC()
		}
	}
	return nil
}

func (v *verification) records(r *store.Report) error {
	for _, part := range []struct {
		into *store.List[store.RecordFinding]
		when string
	}{
		{&r.Interrupted, "status = 'interrupted' AND error_code <> 'record_lost' AND corrected_from IS NULL"},
		{&r.RecordsLost, "error_code = 'record_lost'"},
	} {
		sql := `SELECT count(*) OVER (), (sum(cost) OVER ())::bigint, holder, seq, request_id, key_id, model, start_ts, cost FROM spend_records
			WHERE start_ts >= $1::text::timestamptz AND ` + part.when + ` ORDER BY cost DESC, start_ts DESC, request_id LIMIT $2`
		if err := found(v, part.into, func(f *store.RecordFinding) []any {
			return []any{&f.Holder, &f.Seq, &f.RequestID, &f.KeyID, &f.Model, &f.Start, &f.Cost}
		}, sql, v.read); err != nil {
			return err
		}
		for i := range part.into.First {
			part.into.First[i].Start = part.into.First[i].Start.UTC()
		}
	}
	return nil
}

func (v *verification) deadLetters(r *store.Report) error {
	err := found(v, &r.DeadLetters, func(d *store.DeadLetter) []any {
		return []any{&d.ID, &d.Holder, &d.Seq, &d.RequestID, &d.Reason, &d.At, &d.Cost}
	}, `SELECT count(*) OVER (), (sum(cost) OVER ())::bigint, id, holder, seq, request_id, reason, at, cost
		FROM (SELECT *, coalesce((booked->>'Cost')::bigint, 0) AS cost FROM dead_letters) d
		WHERE at >= $1::text::timestamptz ORDER BY cost DESC, id LIMIT $2`, v.read)
	for i := range r.DeadLetters.First {
		r.DeadLetters.First[i].At = r.DeadLetters.First[i].At.UTC()
	}
	return err
}

func (v *verification) budgets(r *store.Report) error {
	for _, part := range []struct {
		into         *store.List[store.BudgetFinding]
		amount, when string
		args         []any
	}{
		{&r.Overruns, "overrun", "overrun > 0", nil},
		{&r.OverLimit, "spent - overrun + leased - limit_n", "spent - overrun + leased BETWEEN limit_n + 1 AND lowered_from", nil},
		{&r.Unchecked, "spent", "(opening_spent IS NULL OR from_ts < $1::text::timestamptz)", []any{v.check}},
	} {
		limit := "$1"
		if len(part.args) > 0 {
			limit = "$2"
		}
		sql := `SELECT count(*) OVER (), (sum(` + part.amount + `) OVER ())::bigint, id, entity, from_ts, limit_n, spent, ` + part.amount + `
			FROM budgets WHERE ` + part.when + ` ORDER BY ` + part.amount + ` DESC, id LIMIT ` + limit
		if err := found(v, part.into, func(b *store.BudgetFinding) []any {
			return []any{&b.ID, &b.Entity, &b.From, &b.Limit, &b.Spent, &b.Amount}
		}, sql, part.args...); err != nil {
			return err
		}
		for i := range part.into.First {
			part.into.First[i].From = part.into.First[i].From.UTC()
		}
	}
	return nil
}
