package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// Heartbeat implements store.Ledger.
func (s *Store) Heartbeat(ctx context.Context, holders []store.HolderID, ttl time.Duration) ([]store.HolderState, error) {
	ids := sortedIDs(holders)
	reaps := make(map[string]uint32, len(ids))
	err := s.tx(ctx, "renew holders", func(t *tx) error {
		clear(reaps)
		var b pgx.Batch
		b.Queue(`INSERT INTO holders (id, expires) SELECT u, clock_timestamp() FROM unnest($1::text[]) u ON CONFLICT DO NOTHING`, ids)
		b.Queue(`INSERT INTO cursors (holder) SELECT u FROM unnest($1::text[]) u ON CONFLICT DO NOTHING`, ids)
		b.Queue(`WITH mine AS (SELECT id FROM holders WHERE id = ANY($1::text[]) AND NOT closed ORDER BY id FOR NO KEY UPDATE)
			UPDATE holders h SET expires = clock_timestamp() + make_interval(secs => $2::float8) FROM mine WHERE h.id = mine.id RETURNING h.id, h.reaps`,
			ids, ttl.Seconds()).Query(func(rows pgx.Rows) error {
			var id string
			var n uint32
			_, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error { reaps[id] = n; return nil })
			return err
		})
		return t.send(&b)
	})
	if err != nil {
		return nil, err
	}
	out := make([]store.HolderState, len(holders))
	for i, h := range holders {
		n, alive := reaps[string(h)]
		out[i] = store.HolderState{Holder: h, Reaps: n, Fenced: !alive}
	}
	return out, nil
}

// Grant implements store.Ledger.
func (s *Store) Grant(ctx context.Context, g store.Grant) (store.GrantResult, error) {
	if err := store.CheckSeq(g.Seq); err != nil {
		return store.GrantResult{}, err
	}
	var res store.GrantResult
	err := s.tx(ctx, "grant", func(t *tx) (err error) {
		res, err = t.grant(g)
		return err
	})
	if err != nil {
		return store.GrantResult{}, err
	}
	return res, nil
}

// holderRow is a holder as a grant sees it under its lock.
type holderRow struct {
	last  uint64
	reaps uint32
	live  int // holders that live, of all pods
}

func (t *tx) grant(g store.Grant) (store.GrantResult, error) {
	h, err := t.lockHolder(g.Holder)
	if err != nil || h == nil {
		return store.GrantResult{Status: store.GrantRenewFirst}, err
	}
	res := store.GrantResult{Status: store.GrantOK, Reaps: h.reaps}
	replayed, err := store.CheckGrantSeq(g.Seq, h.last)
	if err != nil {
		return res, err
	}
	if replayed {
		res.Status = store.GrantReplayed
		res.Leases, err = t.granted(g)
		return res, err
	}
	return res, t.decide(g, h.live, &res)
}

// lockHolder locks a holder's row; nil when it is closed, expired or unknown. The
// state is read by a second statement, whose clock runs after the wait for the lock.
func (t *tx) lockHolder(id store.HolderID) (*holderRow, error) {
	var found *holderRow
	var b pgx.Batch
	b.Queue(`SELECT FROM holders WHERE id = $1 FOR NO KEY UPDATE`, string(id))
	b.Queue(`SELECT grant_seq, reaps, (SELECT count(*) FROM holders WHERE NOT closed AND expires > clock_timestamp())
		FROM holders WHERE id = $1 AND NOT closed AND expires > clock_timestamp()`, string(id)).Query(func(rows pgx.Rows) error {
		var h holderRow
		_, err := pgx.ForEachRow(rows, []any{&h.last, &h.reaps, &h.live}, func() error { found = &h; return nil })
		return err
	})
	return found, t.send(&b)
}

// decide serves the wants and writes leases and the grant's number.
func (t *tx) decide(g store.Grant, live int, res *store.GrantResult) error {
	wants := g.LedgerWants()
	budgets, now, err := t.currentBudgets(ledger.Entities(wants))
	if err != nil {
		return err
	}
	plan, err := ledger.Decide(wants, budgets, live)
	if err != nil {
		return err
	}
	if plan.Refused() { // only then does the verdict need what open leases have spent
		if err := t.addOpenSpent(budgets); err != nil {
			return err
		}
		if plan, err = ledger.Decide(wants, budgets, live); err != nil {
			return err
		}
	}
	for _, v := range plan.Verdicts {
		res.Results = append(res.Results, store.ResultOf(v))
	}
	for _, l := range plan.Leases {
		res.Leases = append(res.Leases, store.LeaseOf(g.Seq, l, now))
	}
	return t.writeGrant(g, res.Leases)
}

func (t *tx) writeGrant(g store.Grant, leases []store.Lease) error {
	var ids, amounts []int64
	for _, l := range leases {
		ids, amounts = append(ids, l.Budget), append(amounts, l.Granted)
	}
	var b pgx.Batch
	if len(ids) > 0 {
		b.Queue(`UPDATE budgets SET leased = leased + u.g FROM unnest($1::bigint[], $2::bigint[]) u (id, g) WHERE budgets.id = u.id`, ids, amounts)
		b.Queue(`INSERT INTO leases (holder, seq, budget, state, granted) SELECT $1, $2, u.id, 'open', u.g FROM unnest($3::bigint[], $4::bigint[]) u (id, g)`,
			string(g.Holder), int64(g.Seq), ids, amounts)
	}
	b.Queue(`UPDATE holders SET grant_seq = $2 WHERE id = $1`, string(g.Holder), int64(g.Seq))
	return t.send(&b)
}

// granted answers a repeated grant with what became of its leases.
func (t *tx) granted(g store.Grant) ([]store.Lease, error) {
	return query(t, func(row pgx.CollectableRow) (store.Lease, error) {
		l := store.Lease{LeaseRef: store.LeaseRef{Seq: g.Seq}}
		var until *time.Time
		var now time.Time
		var state, win string
		err := row.Scan(&l.Budget, &l.Entity, &win, &l.Granted, &until, &now, &state)
		l.Entity = store.WindowName(l.Entity, win)
		l.State, l.UntilIn = store.LeaseState(state), store.UntilIn(timeOf(until), now)
		return l, err
	}, `SELECT l.budget, b.entity, b.win, l.granted, b.until_ts, clock_timestamp(), l.state FROM leases l JOIN budgets b ON b.id = l.budget
		WHERE l.holder = $1 AND l.seq = $2 AND l.state <> 'closed' ORDER BY l.budget`, string(g.Holder), int64(g.Seq))
}
