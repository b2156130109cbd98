package sqlite

import (
	"fmt"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// differences fills in every row that the records do not explain, of each kind the
// largest first. The reasoning stands beside the same statements in store/postgres.
func (v *verification) differences(r *store.Report) error {
	read, check := since(v.scope.Read), since(v.scope.Check)
	for _, part := range []struct {
		sql  string
		args []any
	}{
		{daysSQL, []any{since(v.scope.Days), day(v.scope.Days)}},
		{subjectsSQL, []any{since(v.scope.Days), day(v.scope.Days)}},
		{leasesAndBudgetsSQL(), []any{read, check}},
		{cursorsSQL, []any{read, check}},
	} {
		var some store.List[store.Difference]
		if err := found(v, &some, func(d *store.Difference) []any {
			return []any{&d.Kind, &d.Subject, &d.Field, &d.Want, &d.Have}
		}, part.sql, part.args...); err != nil {
			return err
		}
		r.Differences.Count += some.Count
		r.Differences.Sum += some.Sum
		r.Differences.First = append(r.Differences.First, some.First...)
	}
	return nil
}

const daysSQL = `
WITH both_sides AS (
	SELECT date(start_ts / 1000000, 'unixepoch') AS day, key_id, user_id, team_id, organization_id, model, 1 AS want, 1 AS requests, input, output, cached, cache_write, reasoning, cost
	FROM spend_records WHERE start_ts >= ?1
	UNION ALL
	SELECT booked->>'Day', booked->>'KeyID', booked->>'UserID', booked->>'TeamID', booked->>'OrgID', booked->>'Model', 1, 1, booked->>'$.Usage.Input', booked->>'$.Usage.Output',
		booked->>'$.Usage.Cached', booked->>'$.Usage.CacheWrite', booked->>'$.Usage.Reasoning', booked->>'Cost'
	FROM dead_letters WHERE booked IS NOT NULL AND booked->>'Day' >= ?2
	UNION ALL
	SELECT day, key_id, user_id, team_id, organization_id, model, 0, requests, input, output, cached, cache_write, reasoning, cost
	FROM spend_daily WHERE day >= ?2
), fields (field) AS (
	VALUES ('cost'), ('requests'), ('input'), ('output'), ('cached'), ('cache_write'), ('reasoning')
), numbers AS (
	SELECT day, substr(key_id, 1, 64) AS k, substr(user_id, 1, 64) AS u, substr(team_id, 1, 64) AS t, substr(organization_id, 1, 64) AS o, substr(model, 1, 64) AS m, field, want AS wanted,
		CASE field WHEN 'cost' THEN cost WHEN 'requests' THEN requests WHEN 'input' THEN input WHEN 'output' THEN output
			WHEN 'cached' THEN cached WHEN 'cache_write' THEN cache_write ELSE reasoning END AS number
	FROM both_sides CROSS JOIN fields
), sums AS (
	SELECT day || ' key=' || k || iif(u = '', '', ' user=' || u) || iif(t = '', '', ' team=' || t) || iif(o = '', '', ' organization=' || o) || ' model=' || m AS subject,
		field, sum(iif(wanted, number, 0)) AS want, sum(iif(wanted, 0, number)) AS have
	FROM numbers GROUP BY day, k, u, t, o, m, field
)
SELECT count(*) OVER (), sum(abs(have - want)) OVER (), 'spend_daily', subject, field, want, have
FROM sums WHERE want <> have ORDER BY abs(have - want) DESC, subject, field`

const subjectsSQL = `
WITH RECURSIVE sizes (n) AS (
	VALUES (64) UNION ALL SELECT n + 1 FROM sizes WHERE n < 256
), names AS (
	SELECT rowid AS record, 'customer:' || end_user AS name, -1 AS place, start_ts, input, output, cost FROM spend_records WHERE end_user <> '' AND start_ts >= ?1
	UNION ALL
	SELECT r.rowid, 'tag:' || t.value, t.key, start_ts, input, output, cost FROM spend_records r CROSS JOIN json_each(r.tags) t
	WHERE t.value <> '' AND start_ts >= ?1
), cut AS (
	SELECT record, place, start_ts, input, output, cost, iif(octet_length(name) <= 256, name,
		substr(name, 1, (SELECT max(n) FROM sizes WHERE octet_length(substr(name, 1, n)) <= 256))) AS name FROM names
), firsts AS (
	SELECT *, row_number() OVER (PARTITION BY record ORDER BY min(place)) AS n FROM cut GROUP BY record, name
), both_sides AS (
	SELECT name AS subject, date(start_ts / 1000000, 'unixepoch') AS day, 1 AS wanted, 1 AS requests, input, output, cost FROM firsts WHERE n <= 21
	UNION ALL
	SELECT s.value, booked->>'Day', 1, 1, booked->>'$.Usage.Input', booked->>'$.Usage.Output', booked->>'Cost'
	FROM dead_letters CROSS JOIN json_each(coalesce(booked->'Subjects', '[]')) s WHERE s.type = 'text' AND booked->>'Day' >= ?2
	UNION ALL
	SELECT subject, day, 0, requests, input, output, cost FROM spend_subjects WHERE day >= ?2
), fields (field) AS (
	VALUES ('cost'), ('requests'), ('input'), ('output')
), sums AS (
	SELECT day || ' ' || subject AS subject, field, sum(iif(wanted, number, 0)) AS want, sum(iif(wanted, 0, number)) AS have FROM (
		SELECT day, subject, field, wanted, CASE field WHEN 'cost' THEN cost WHEN 'requests' THEN requests WHEN 'input' THEN input ELSE output END AS number
		FROM both_sides CROSS JOIN fields
	) GROUP BY day, subject, field
)
SELECT count(*) OVER (), sum(abs(have - want)) OVER (), 'spend_subjects', subject, field, want, have
FROM sums WHERE want <> have ORDER BY abs(have - want) DESC, subject, field`

func leasesAndBudgetsSQL() string {
	const charges = `SELECT holder, c.value->>'Seq' AS seq, c.value->>'Budget' AS budget, min(max(c.value->>'Cost', 0), %[1]d) AS cost,
		min(max(c.value->>'Overrun', 0), min(max(c.value->>'Cost', 0), %[1]d)) AS overrun
		FROM %[2]s CROSS JOIN json_each(coalesce(%[3]s, '[]')) c WHERE c.type = 'object' AND %[4]s >= ?1`
	return `WITH charged AS MATERIALIZED (
	SELECT holder, seq, budget, sum(cost) AS cost, sum(overrun) AS overrun FROM (
		` + fmt.Sprintf(charges, ledger.MaxCost, "spend_records", "charges", "start_ts") + `
		UNION ALL
		` + fmt.Sprintf(charges, ledger.MaxCost, "dead_letters", "booked->'Charges'", "at") + `
	) GROUP BY holder, seq, budget
), lease_rows AS (
	SELECT coalesce(l.holder, c.holder) AS holder, coalesce(l.seq, c.seq) AS seq, coalesce(l.budget, c.budget) AS budget,
		l.state, l.granted, l.spent, l.overrun, l.lost, l.late, coalesce(c.cost, 0) AS cost, coalesce(c.overrun, 0) AS charged_overrun,
		coalesce(l.created >= ?2, ?2 < 0) AS whole
	FROM leases l FULL JOIN charged c ON c.holder = l.holder AND c.seq = l.seq AND c.budget = l.budget
), judged AS (
	SELECT r.*, h.id IS NOT NULL AS held, coalesce(h.reaps, 0) > 0 AS reaped,
		iif(state = 'lost', max(0, granted - (cost - charged_overrun)), 0) AS most_lost
	FROM lease_rows r LEFT JOIN holders h ON h.id = r.holder
), lease_differences AS (
	SELECT holder, seq, budget, 'spent' AS field, cost AS want, spent AS have FROM judged
		WHERE state IS NOT NULL AND whole AND iif(late > 0, spent > cost, spent <> cost)
	UNION ALL SELECT holder, seq, budget, 'overrun', charged_overrun, overrun FROM judged
		WHERE state IS NOT NULL AND whole AND iif(reaped OR late > 0, overrun > charged_overrun, overrun <> charged_overrun)
	UNION ALL SELECT holder, seq, budget, 'lost', most_lost, lost FROM judged WHERE state IS NOT NULL AND whole AND lost > most_lost
	UNION ALL SELECT holder, seq, budget, 'holder', 1, 0 FROM judged WHERE state = 'open' AND NOT held
	UNION ALL SELECT holder, seq, budget, 'lease', cost, 0 FROM judged WHERE state IS NULL AND held AND seq > 0 -- 0: a dead letter without a lease
), settled AS (
	SELECT c.budget, sum(c.cost) AS cost, sum(c.overrun) AS overrun
	FROM charged c LEFT JOIN leases l ON l.holder = c.holder AND l.seq = c.seq AND l.budget = c.budget
	WHERE l.state IS NOT 'open' GROUP BY c.budget
), reserved AS (
	SELECT budget, sum(iif(state = 'open', granted, 0)) AS leased, sum(lost) AS lost FROM leases GROUP BY budget
), moved AS (
	SELECT budget, sum(cost) AS cost, sum(overrun) AS overrun, sum(leased) AS leased, sum(lost) AS lost FROM (
		SELECT budget, cost, overrun, 0 AS leased, 0 AS lost FROM settled UNION ALL SELECT budget, 0, 0, leased, lost FROM reserved
	) GROUP BY budget
), budget_rows AS (
	SELECT b.id, b.entity, b.limit_n, b.lowered_from, b.spent, b.overrun, b.leased, b.lost, b.opening_spent, b.opening_overrun, b.late_overrun,
		coalesce(b.id, m.budget) AS row_id, coalesce(m.cost, 0) AS settled_cost, coalesce(m.overrun, 0) AS settled_overrun,
		coalesce(m.leased, 0) AS open_granted, coalesce(m.lost, 0) AS reaped, b.opening_spent IS NOT NULL AND b.from_ts >= ?2 AS whole
	FROM budgets b FULL JOIN moved m ON m.budget = b.id
), budget_differences AS (
	SELECT row_id, entity, 'spent' AS field, opening_spent + settled_cost + reaped AS want, spent AS have FROM budget_rows WHERE whole
	UNION ALL SELECT row_id, entity, 'overrun', opening_overrun + settled_overrun + late_overrun, overrun FROM budget_rows WHERE whole
	UNION ALL SELECT row_id, entity, 'leased', open_granted, leased FROM budget_rows WHERE id IS NOT NULL
	UNION ALL SELECT row_id, entity, 'lost', reaped, lost FROM budget_rows WHERE id IS NOT NULL
	UNION ALL SELECT row_id, entity, 'budget', settled_cost + open_granted, NULL FROM budget_rows WHERE id IS NULL
	UNION ALL SELECT row_id, entity, 'law', max(limit_n, coalesce(lowered_from, 0)), spent - overrun + leased FROM budget_rows
		WHERE spent - overrun + leased > max(limit_n, coalesce(lowered_from, 0))
), differences AS (
	SELECT 'lease' AS kind, holder || '/' || seq || '/' || budget AS subject, field, want, have FROM lease_differences
	UNION ALL
	SELECT 'budget', coalesce(entity, 'unknown') || ' (row ' || row_id || ')', field, want, coalesce(have, 0) FROM budget_differences WHERE want IS NOT have
)
SELECT count(*) OVER (), sum(abs(have - want)) OVER (), kind, subject, field, want, have
FROM differences ORDER BY abs(have - want) DESC, kind, subject, field`
}

const cursorsSQL = `
WITH numbers AS (
	SELECT holder, count(*) AS n, count(DISTINCT seq) AS present, max(seq) AS top FROM (
		SELECT holder, seq FROM spend_records WHERE start_ts >= ?1
		UNION ALL SELECT holder, seq FROM dead_letters WHERE at >= ?1
	) GROUP BY holder
), holder_rows AS (
	SELECT coalesce(c.holder, s.holder) AS holder, coalesce(s.n, 0) AS n, coalesce(s.present, 0) AS present, coalesce(s.top, 0) AS top, c.last_seq,
		coalesce(c.created >= ?2, ?2 < 0) AS whole
	FROM cursors c FULL JOIN numbers s ON s.holder = c.holder
), differences AS (
	SELECT holder, 'records twice' AS field, 0 AS want, n - present AS have FROM holder_rows WHERE n <> present
	UNION ALL SELECT holder, 'records', coalesce(last_seq, top), present FROM holder_rows WHERE whole AND present <> coalesce(last_seq, top)
	UNION ALL SELECT holder, 'highest record', last_seq, top FROM holder_rows WHERE top > last_seq
)
SELECT count(*) OVER (), sum(abs(have - want)) OVER (), 'cursor', holder, field, want, have
FROM differences ORDER BY abs(have - want) DESC, holder, field`
