package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// Verify implements store.Verifier.
func (s *Store) Verify(ctx context.Context, o store.VerifyOptions) (store.Report, error) {
	t, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return store.Report{}, failure("verify the ledger", err)
	}
	defer func() { _ = t.Rollback() }() // it has written nothing
	now := time.Now().UTC()
	v := &verification{tx: &tx{Tx: t, ctx: ctx, now: now}, most: o.Most(), scope: store.ScopeOf(o.Since, time.Time{})}
	r := store.Report{At: now, Since: o.Since}
	for _, part := range []func(*store.Report) error{v.totals, v.differences, v.leases, v.records, v.deadLetters, v.budgets} {
		if err := part(&r); err != nil {
			return store.Report{}, failure("verify the ledger", err)
		}
	}
	return r, nil
}

// verification is one check in its snapshot.
type verification struct {
	*tx
	most  int
	scope store.Scope
}

// since is a time of the scope as the file has it; no time is before all others.
func since(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return t.UnixMicro()
}

// day is a midnight of the scope as spend_daily has it; "" is before all others.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

func (v *verification) totals(r *store.Report) error {
	t := &r.Totals
	if err := v.row(`SELECT count(*), coalesce(sum(cost), 0), count(*) FILTER (WHERE estimated),
		count(*) FILTER (WHERE price_version = '' AND attempts > 0), count(corrected_from) FROM spend_records WHERE start_ts >= ?`, since(v.scope.Read)).
		Scan(&t.Records, &t.Cost, &t.Estimated, &t.Unpriced, &t.Corrected); err != nil {
		return err
	}
	return v.row(`SELECT (SELECT count(*) FROM cursors), (SELECT count(*) FROM leases), (SELECT count(*) FROM budgets),
		(SELECT count(*) FROM spend_daily WHERE day >= ?1), (SELECT coalesce(sum(cost), 0) FROM spend_daily WHERE day >= ?1),
		(SELECT coalesce(sum(spent), 0) FROM budgets WHERE current)
			+ (SELECT coalesce(sum(l.spent), 0) FROM leases l JOIN budgets b ON b.id = l.budget WHERE b.current AND l.state = 'open'),
		(SELECT coalesce(sum(leased), 0) FROM budgets)`, day(v.scope.Days)).
		Scan(&t.Holders, &t.Leases, &t.Budgets, &t.DailyRows, &t.DailyCost, &t.BudgetSpent, &t.Leased)
}

// found fills a list from a statement whose first two columns are the count and the
// sum of all rows; it is limited here.
func found[T any](v *verification, into *store.List[T], fields func(*T) []any, query string, args ...any) error {
	rows, err := v.QueryContext(v.ctx, query+` LIMIT ?`, append(args, v.most)...)
	if err != nil {
		return err
	}
	into.First, err = collect(rows, func(item *T) []any {
		return append([]any{&into.Count, &into.Sum}, fields(item)...)
	})
	return err
}

// at scans a time that may be NULL.
type at struct{ to *time.Time }

func (a at) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*a.to = time.Time{}
	case int64:
		*a.to = time.UnixMicro(v).UTC()
	default:
		return errors.New("a time is not a number")
	}
	return nil
}

func (v *verification) leases(r *store.Report) error {
	for _, part := range []struct {
		into         *store.List[store.LeaseFinding]
		amount, when string
	}{
		{&r.OpenLeases, "granted", "l.state = 'open'"},
		{&r.LostLeases, "lost", "l.state = 'lost' AND l.lost > 0"},
		{&r.LateLeases, "late", "l.late > 0"},
	} {
		if err := found(v, part.into, func(l *store.LeaseFinding) []any {
			return []any{&l.Holder, &l.Seq, &l.Budget, &l.Entity, &l.Amount, &l.Spent, at{&l.Created}, at{&l.Expires}}
		}, `SELECT count(*) OVER (), sum(l.`+part.amount+`) OVER (), l.holder, l.seq, l.budget, coalesce(b.entity, ''), l.`+part.amount+`, l.spent, l.created, h.expires
			FROM leases l LEFT JOIN budgets b ON b.id = l.budget LEFT JOIN holders h ON h.id = l.holder
			WHERE `+part.when+` ORDER BY l.`+part.amount+` DESC, l.holder, l.seq, l.budget`); err != nil {
			return err
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
		if err := found(v, part.into, func(f *store.RecordFinding) []any {
			return []any{&f.Holder, &f.Seq, &f.RequestID, &f.KeyID, &f.Model, at{&f.Start}, &f.Cost}
		}, `SELECT count(*) OVER (), sum(cost) OVER (), holder, seq, request_id, key_id, model, start_ts, cost FROM spend_records
			WHERE start_ts >= ? AND `+part.when+` ORDER BY cost DESC, start_ts DESC, request_id`, since(v.scope.Read)); err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) deadLetters(r *store.Report) error {
	return found(v, &r.DeadLetters, func(d *store.DeadLetter) []any {
		return []any{&d.ID, &d.Holder, &d.Seq, &d.RequestID, &d.Reason, at{&d.At}, &d.Cost}
	}, `SELECT count(*) OVER (), sum(cost) OVER (), id, holder, seq, request_id, reason, at, cost
		FROM (SELECT *, coalesce(booked->>'Cost', 0) AS cost FROM dead_letters) WHERE at >= ? ORDER BY cost DESC, id`, since(v.scope.Read))
}

func (v *verification) budgets(r *store.Report) error {
	for _, part := range []struct {
		into         *store.List[store.BudgetFinding]
		amount, when string
		args         []any
	}{
		{&r.Overruns, "overrun", "overrun > 0", nil},
		{&r.OverLimit, "spent - overrun + leased - limit_n", "spent - overrun + leased BETWEEN limit_n + 1 AND lowered_from", nil},
		{&r.Unchecked, "spent", "(opening_spent IS NULL OR from_ts < ?)", []any{since(v.scope.Check)}},
	} {
		if err := found(v, part.into, func(b *store.BudgetFinding) []any {
			return []any{&b.ID, &b.Entity, at{&b.From}, &b.Limit, &b.Spent, &b.Amount}
		}, `SELECT count(*) OVER (), sum(`+part.amount+`) OVER (), id, entity, from_ts, limit_n, spent, `+part.amount+`
			FROM budgets WHERE `+part.when+` ORDER BY `+part.amount+` DESC, id`, part.args...); err != nil {
			return err
		}
	}
	return nil
}
