package postgres

import (
	"fmt"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// differences fills in every row that the records do not explain, of each kind the
// largest first.
func (v *verification) differences(r *store.Report) error {
	for _, part := range []struct {
		sql  string
		args []any
	}{
		{daysSQL, []any{v.days}},
		{subjectsSQL, []any{v.days}},
		{leasesAndBudgetsSQL(), []any{v.read, v.check}},
		{cursorsSQL, []any{v.read, v.check}},
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

// daysSQL adds up records and dead letters by day as commits do, and compares. Long
// names are cut in the daily sums, to 256 bytes at most: 64 characters always survive.
const daysSQL = `
WITH booked AS (
	SELECT (start_ts AT TIME ZONE 'UTC')::date AS day, key_id, user_id, team_id, organization_id, model, 1::bigint AS requests, input, output, cached, cache_write, reasoning, cost
	FROM spend_records WHERE start_ts >= $1::text::timestamptz
	UNION ALL
	SELECT (booked->>'Day')::date, booked->>'KeyID', booked->>'UserID', booked->>'TeamID', booked->>'OrgID', booked->>'Model', 1, (booked#>>'{Usage,Input}')::bigint, (booked#>>'{Usage,Output}')::bigint,
		(booked#>>'{Usage,Cached}')::bigint, (booked#>>'{Usage,CacheWrite}')::bigint, (booked#>>'{Usage,Reasoning}')::bigint, (booked->>'Cost')::bigint
	FROM dead_letters WHERE booked IS NOT NULL AND (booked->>'Day')::date >= ($1::text::timestamptz AT TIME ZONE 'UTC')::date
), both_sides AS (
	SELECT day, left(key_id, 64) AS k, left(user_id, 64) AS u, left(team_id, 64) AS t, left(organization_id, 64) AS o, left(model, 64) AS m,
		true AS want, requests, input, output, cached, cache_write, reasoning, cost FROM booked
	UNION ALL
	SELECT day, left(key_id, 64), left(user_id, 64), left(team_id, 64), left(organization_id, 64), left(model, 64),
		false, requests, input, output, cached, cache_write, reasoning, cost
	FROM spend_daily WHERE day >= ($1::text::timestamptz AT TIME ZONE 'UTC')::date
), sums AS (
	SELECT day, k, u, t, o, m,
		coalesce(sum(requests) FILTER (WHERE want), 0) AS requests, coalesce(sum(requests) FILTER (WHERE NOT want), 0) AS have_requests,
		coalesce(sum(input) FILTER (WHERE want), 0) AS input, coalesce(sum(input) FILTER (WHERE NOT want), 0) AS have_input,
		coalesce(sum(output) FILTER (WHERE want), 0) AS output, coalesce(sum(output) FILTER (WHERE NOT want), 0) AS have_output,
		coalesce(sum(cached) FILTER (WHERE want), 0) AS cached, coalesce(sum(cached) FILTER (WHERE NOT want), 0) AS have_cached,
		coalesce(sum(cache_write) FILTER (WHERE want), 0) AS cache_write, coalesce(sum(cache_write) FILTER (WHERE NOT want), 0) AS have_cache_write,
		coalesce(sum(reasoning) FILTER (WHERE want), 0) AS reasoning, coalesce(sum(reasoning) FILTER (WHERE NOT want), 0) AS have_reasoning,
		coalesce(sum(cost) FILTER (WHERE want), 0) AS cost, coalesce(sum(cost) FILTER (WHERE NOT want), 0) AS have_cost
	FROM both_sides GROUP BY day, k, u, t, o, m
)
SELECT count(*) OVER (), (sum(abs(have - want)) OVER ())::bigint, 'spend_daily', concat_ws(' ', day::text, 'key=' || k, 'user=' || nullif(u, ''), 'team=' || nullif(t, ''),
	'organization=' || nullif(o, ''), 'model=' || m), field, want::bigint, have::bigint
FROM sums CROSS JOIN LATERAL (VALUES ('cost', cost, have_cost), ('requests', requests, have_requests), ('input', input, have_input), ('output', output, have_output),
	('cached', cached, have_cached), ('cache_write', cache_write, have_cache_write), ('reasoning', reasoning, have_reasoning)) f (field, want, have)
WHERE want <> have ORDER BY abs(have - want) DESC, day, k, field LIMIT $2`

// subjectsSQL does the same for customers and tags: of each record its customer and the
// first of its tags, 21 in all, each cut to as many characters as have 256 bytes.
const subjectsSQL = `
WITH both_sides AS (
	SELECT s.name AS subject, (r.start_ts AT TIME ZONE 'UTC')::date AS day, true AS want, 1::bigint AS requests, r.input, r.output, r.cost
	FROM spend_records r CROSS JOIN LATERAL (
		SELECT cut.name FROM (
			SELECT 'customer:' || r.end_user AS name, 0 AS place WHERE r.end_user <> ''
			UNION ALL SELECT 'tag:' || tag, place FROM unnest(r.tags) WITH ORDINALITY u (tag, place) WHERE tag <> ''
		) long CROSS JOIN LATERAL (
			SELECT CASE WHEN octet_length(long.name) <= 256 THEN long.name
				ELSE left(long.name, (SELECT max(i) FROM generate_series(64, 256) i WHERE octet_length(left(long.name, i)) <= 256)) END AS name
		) cut GROUP BY cut.name ORDER BY min(place) LIMIT 21
	) s
	WHERE r.start_ts >= $1::text::timestamptz AND (r.end_user <> '' OR r.tags <> '{}')
	UNION ALL
	SELECT s.name, (booked->>'Day')::date, true, 1, (booked#>>'{Usage,Input}')::bigint, (booked#>>'{Usage,Output}')::bigint, (booked->>'Cost')::bigint
	FROM dead_letters CROSS JOIN LATERAL jsonb_array_elements_text(CASE jsonb_typeof(booked->'Subjects') WHEN 'array' THEN booked->'Subjects' ELSE '[]' END) s (name)
	WHERE booked IS NOT NULL AND (booked->>'Day')::date >= ($1::text::timestamptz AT TIME ZONE 'UTC')::date
	UNION ALL
	SELECT subject, day, false, requests, input, output, cost FROM spend_subjects WHERE day >= ($1::text::timestamptz AT TIME ZONE 'UTC')::date
), sums AS (
	SELECT day, subject,
		coalesce(sum(requests) FILTER (WHERE want), 0) AS requests, coalesce(sum(requests) FILTER (WHERE NOT want), 0) AS have_requests,
		coalesce(sum(input) FILTER (WHERE want), 0) AS input, coalesce(sum(input) FILTER (WHERE NOT want), 0) AS have_input,
		coalesce(sum(output) FILTER (WHERE want), 0) AS output, coalesce(sum(output) FILTER (WHERE NOT want), 0) AS have_output,
		coalesce(sum(cost) FILTER (WHERE want), 0) AS cost, coalesce(sum(cost) FILTER (WHERE NOT want), 0) AS have_cost
	FROM both_sides GROUP BY day, subject
)
SELECT count(*) OVER (), (sum(abs(have - want)) OVER ())::bigint, 'spend_subjects', day || ' ' || subject, field, want::bigint, have::bigint
FROM sums CROSS JOIN LATERAL (VALUES ('cost', cost, have_cost), ('requests', requests, have_requests), ('input', input, have_input), ('output', output, have_output)) f (field, want, have)
WHERE want <> have ORDER BY abs(have - want) DESC, day, subject, field LIMIT $2`

// leasesAndBudgetsSQL reads every charge once and holds against it what leases and
// budgets say.
//
// A lease has spent what its records charge. Those that came after its close stand in
// its budget only; and a lease that was lost does not count the overrun of what comes later.
//
// A budget has spent what it began with, what records charge leases that are no longer
// open, and what a reaper charged. Its overrun is what it began with, that of those
// charges, and what came too late for its hold.
func leasesAndBudgetsSQL() string {
	const charges = `SELECT %[1]s.holder, c."Seq" AS seq, c."Budget" AS budget, least(greatest(c."Cost", 0), %[2]d) AS cost,
		least(greatest(c."Overrun", 0), least(greatest(c."Cost", 0), %[2]d)) AS overrun
		FROM %[3]s %[1]s CROSS JOIN LATERAL jsonb_to_recordset(CASE jsonb_typeof(%[4]s) WHEN 'array' THEN %[4]s ELSE '[]' END)
			c ("Seq" bigint, "Budget" bigint, "Cost" bigint, "Overrun" bigint)
		WHERE %[1]s.%[5]s >= $1::text::timestamptz`
	return `WITH charged AS MATERIALIZED (
	SELECT holder, seq, budget, sum(cost) AS cost, sum(overrun) AS overrun FROM (
		` + fmt.Sprintf(charges, "r", ledger.MaxCost, "spend_records", "r.charges", "start_ts") + `
		UNION ALL
		` + fmt.Sprintf(charges, "d", ledger.MaxCost, "dead_letters", "d.booked->'Charges'", "at") + `
	) x GROUP BY holder, seq, budget
), lease_rows AS (
	SELECT coalesce(l.holder, c.holder) AS holder, coalesce(l.seq, c.seq) AS seq, coalesce(l.budget, c.budget) AS budget,
		l.state, l.granted, l.spent, l.overrun, l.lost, l.late, coalesce(c.cost, 0) AS cost, coalesce(c.overrun, 0) AS charged_overrun,
		h.id IS NOT NULL AS held, coalesce(h.reaps, 0) > 0 AS reaped, coalesce(l.created, '-infinity') >= $2::text::timestamptz AS whole
	FROM leases l FULL JOIN charged c ON c.holder = l.holder AND c.seq = l.seq AND c.budget = l.budget
	LEFT JOIN holders h ON h.id = coalesce(l.holder, c.holder)
), lease_differences AS (
	SELECT 'lease' AS kind, concat_ws('/', holder, seq, budget) AS subject, field, want, have
	FROM lease_rows CROSS JOIN LATERAL (VALUES
		('spent', cost, spent, state IS NOT NULL AND whole AND CASE WHEN late > 0 THEN spent > cost ELSE spent <> cost END),
		('overrun', charged_overrun, overrun, state IS NOT NULL AND whole AND CASE WHEN reaped OR late > 0 THEN overrun > charged_overrun ELSE overrun <> charged_overrun END),
		('lost', CASE state WHEN 'lost' THEN greatest(0, granted - (cost - charged_overrun)) ELSE 0 END, lost,
			state IS NOT NULL AND whole AND lost > CASE state WHEN 'lost' THEN greatest(0, granted - (cost - charged_overrun)) ELSE 0 END),
		('holder', 1, 0, state = 'open' AND NOT held),
		('lease', cost, 0, state IS NULL AND held AND seq > 0) -- 0: a dead letter without a lease
	) f (field, want, have, differs) WHERE differs
), settled AS (
	SELECT c.budget, sum(c.cost) AS cost, sum(c.overrun) AS overrun
	FROM charged c LEFT JOIN leases l ON l.holder = c.holder AND l.seq = c.seq AND l.budget = c.budget
	WHERE l.state IS DISTINCT FROM 'open' GROUP BY c.budget
), reserved AS (
	SELECT budget, coalesce(sum(granted) FILTER (WHERE state = 'open'), 0) AS leased, sum(lost) AS lost FROM leases GROUP BY budget
), budget_rows AS (
	SELECT b.*, coalesce(b.id, s.budget, x.budget) AS row_id, coalesce(s.cost, 0) AS settled_cost, coalesce(s.overrun, 0) AS settled_overrun,
		coalesce(x.leased, 0) AS open_granted, coalesce(x.lost, 0) AS reaped,
		b.opening_spent IS NOT NULL AND b.from_ts >= $2::text::timestamptz AS whole
	FROM budgets b FULL JOIN settled s ON s.budget = b.id FULL JOIN reserved x ON x.budget = coalesce(b.id, s.budget)
), budget_differences AS (
	SELECT 'budget' AS kind, coalesce(entity, 'unknown') || ' (row ' || row_id || ')' AS subject, field, want, have
	FROM budget_rows CROSS JOIN LATERAL (VALUES
		('spent', opening_spent + settled_cost + reaped, spent, whole),
		('overrun', opening_overrun + settled_overrun + late_overrun, overrun, whole),
		('leased', open_granted, leased, id IS NOT NULL),
		('lost', reaped, lost, id IS NOT NULL),
		('budget', settled_cost + open_granted, 0, id IS NULL)
	) f (field, want, have, checked) WHERE checked AND (want <> have OR field = 'budget')
	UNION ALL
	SELECT 'budget', entity || ' (row ' || id || ')', 'law', greatest(limit_n, lowered_from), spent - overrun + leased
	FROM budgets WHERE spent - overrun + leased > greatest(limit_n, lowered_from)
), differences AS (SELECT * FROM lease_differences UNION ALL SELECT * FROM budget_differences)
SELECT count(*) OVER (), (sum(abs(have - want)) OVER ())::bigint, kind, subject, field, want::bigint, have::bigint
FROM differences ORDER BY abs(have - want) DESC, kind, subject, field LIMIT $3`
}

// cursorsSQL compares the numbers of each holder's records with its cursor. A holder
// that is closed for long has no cursor any more: its numbers must run from 1 then.
const cursorsSQL = `
WITH numbers AS (
	SELECT holder, count(*) AS n, count(DISTINCT seq) AS present, max(seq) AS top FROM (
		SELECT holder, seq FROM spend_records WHERE start_ts >= $1::text::timestamptz
		UNION ALL SELECT holder, seq FROM dead_letters WHERE at >= $1::text::timestamptz
	) x GROUP BY holder
), holder_rows AS (
	SELECT coalesce(c.holder, s.holder) AS holder, coalesce(s.n, 0) AS n, coalesce(s.present, 0) AS present, coalesce(s.top, 0) AS top, c.last_seq,
		coalesce(c.created, '-infinity') >= $2::text::timestamptz AS whole
	FROM cursors c FULL JOIN numbers s ON s.holder = c.holder
)
SELECT count(*) OVER (), (sum(abs(have - want)) OVER ())::bigint, 'cursor', holder, field, want, have
FROM holder_rows CROSS JOIN LATERAL (VALUES
	('records twice', 0::bigint, n - present, n <> present),
	('records', coalesce(last_seq, top), present, whole AND present <> coalesce(last_seq, top)),
	('highest record', last_seq, top, top > last_seq)
) f (field, want, have, differs) WHERE differs ORDER BY abs(have - want) DESC, holder, field LIMIT $3`
