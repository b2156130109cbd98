package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// leaseMap is leases of one holder, locked.
type leaseMap map[store.LeaseRef]*ledger.Lease

// settle applies one rule to locked leases of a holder and writes what it changed.
func (t *tx) settle(holder store.HolderID, leases leaseMap, rule func(store.LeaseRef, *ledger.Lease) ledger.Delta) error {
	changes := make(map[int64]ledger.Delta)
	for ref, l := range leases {
		changes[ref.Budget] = changes[ref.Budget].Add(rule(ref, l))
	}
	if err := t.saveLeases(holder, leases); err != nil {
		return err
	}
	return t.change(changes)
}

// leases locks the leases that refs name; those that do not exist are missing
// from the map.
func (t *tx) leases(holder store.HolderID, refs []store.LeaseRef) (leaseMap, error) {
	if len(refs) == 0 {
		return leaseMap{}, nil
	}
	seqs, budgets := columns(refs)
	return t.lockLeases(`SELECT l.seq, l.budget, l.state, l.granted, l.spent, l.overrun, l.lost, l.late
		FROM leases l JOIN unnest($2::bigint[], $3::bigint[]) u (seq, budget) ON l.seq = u.seq AND l.budget = u.budget
		WHERE l.holder = $1 ORDER BY l.seq, l.budget FOR NO KEY UPDATE OF l`, string(holder), seqs, budgets)
}

// leasesIn locks all leases of a holder that are in one of the states.
func (t *tx) leasesIn(holder store.HolderID, states ...string) (leaseMap, error) {
	return t.lockLeases(`SELECT seq, budget, state, granted, spent, overrun, lost, late FROM leases
		WHERE holder = $1 AND state <> 'closed' AND state = ANY($2::text[]) ORDER BY seq, budget FOR NO KEY UPDATE`, string(holder), states)
}

func (t *tx) lockLeases(sql string, args ...any) (leaseMap, error) {
	rows, err := t.Query(t.ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	out := make(leaseMap)
	var ref store.LeaseRef
	var l ledger.Lease
	var state string
	_, err = pgx.ForEachRow(rows, []any{&ref.Seq, &ref.Budget, &state, &l.Granted, &l.Spent, &l.Overrun, &l.Lost, &l.Late}, func() error {
		row := l
		row.State = ledger.State(state)
		out[ref] = &row
		return nil
	})
	return out, err
}

// saveLeases writes locked leases back.
func (t *tx) saveLeases(holder store.HolderID, leases leaseMap) error {
	if len(leases) == 0 {
		return nil
	}
	var seqs, budgets, granted, spent, overrun, lost, late []int64
	var states []string
	for ref, l := range leases {
		seqs, budgets = append(seqs, int64(ref.Seq)), append(budgets, ref.Budget)
		states, granted = append(states, string(l.State)), append(granted, l.Granted)
		spent, overrun = append(spent, l.Spent), append(overrun, l.Overrun)
		lost, late = append(lost, l.Lost), append(late, l.Late)
	}
	return t.exec(`UPDATE leases l SET state = u.state, granted = u.granted, spent = u.spent, overrun = u.overrun, lost = u.lost, late = u.late
		FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[])
		u (seq, budget, state, granted, spent, overrun, lost, late)
		WHERE l.holder = $1 AND l.seq = u.seq AND l.budget = u.budget`,
		string(holder), seqs, budgets, states, granted, spent, overrun, lost, late)
}

func columns(refs []store.LeaseRef) (seqs, budgets []int64) {
	for _, r := range refs {
		seqs, budgets = append(seqs, int64(r.Seq)), append(budgets, r.Budget)
	}
	return seqs, budgets
}

// Return implements store.Ledger. A cursor only grows, so that a value read
// before the locks is safe: what it covers is committed.
func (s *Store) Return(ctx context.Context, holder store.HolderID, leases []store.ReturnLease) ([]store.LeaseRef, error) {
	var pending []store.LeaseRef
	err := s.tx(ctx, "return leases", func(t *tx) error {
		last, err := t.readCursor(holder)
		if err != nil {
			return err
		}
		var ready []store.LeaseRef
		ready, pending = store.SplitReturns(leases, last)
		locked, err := t.leases(holder, ready)
		if err != nil {
			return err
		}
		return t.settle(holder, locked, func(_ store.LeaseRef, l *ledger.Lease) ledger.Delta { return l.Close() })
	})
	if err != nil {
		return nil, err
	}
	return pending, nil
}

func (t *tx) readCursor(holder store.HolderID) (last uint64, err error) {
	err = t.row(`SELECT last_seq FROM cursors WHERE holder = $1`, string(holder)).Scan(&last)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return last, err
}

// Trim implements store.Ledger.
func (s *Store) Trim(ctx context.Context, holder store.HolderID, leases []store.TrimLease) error {
	refs, to := store.TrimTargets(leases)
	return s.tx(ctx, "trim leases", func(t *tx) error {
		locked, err := t.leases(holder, refs)
		if err != nil {
			return err
		}
		return t.settle(holder, locked, func(ref store.LeaseRef, l *ledger.Lease) ledger.Delta { return l.Trim(to[ref]) })
	})
}

// Reap implements store.Ledger: one transaction per holder, so that locks on
// budgets are short.
func (s *Store) Reap(ctx context.Context, margin time.Duration) (int, error) {
	for reaped := 0; ; reaped++ {
		found := false
		err := s.tx(ctx, "reap holders", func(t *tx) (err error) {
			found, err = t.reapOne(margin)
			return err
		})
		if err != nil || !found {
			return reaped, err
		}
	}
}

// reapOne charges the open leases of one expired holder; false when there is none.
func (t *tx) reapOne(margin time.Duration) (bool, error) {
	// "<> 'closed'" says nothing new to people; it lets the planner use leases_live.
	var id string
	err := t.row(`SELECT id FROM holders h WHERE expires + make_interval(secs => $1::float8) <= clock_timestamp()
		AND EXISTS (SELECT FROM leases l WHERE l.holder = h.id AND l.state = 'open' AND l.state <> 'closed')
		ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`, margin.Seconds()).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	holder := store.HolderID(id)
	open, err := t.leasesIn(holder, string(ledger.Open))
	if err != nil || len(open) == 0 {
		return false, err // returned meanwhile; the next reap finds the others
	}
	if err := t.settle(holder, open, func(_ store.LeaseRef, l *ledger.Lease) ledger.Delta { return l.Reap() }); err != nil {
		return false, err
	}
	return true, t.exec(`UPDATE holders SET reaps = reaps + 1 WHERE id = $1`, id)
}

// CloseHolder implements store.Ledger.
func (s *Store) CloseHolder(ctx context.Context, holder store.HolderID, top uint64) (bool, error) {
	done := false
	err := s.tx(ctx, "close holder", func(t *tx) (err error) {
		done, err = t.closeHolder(holder, top)
		return err
	})
	return done && err == nil, err
}

func (t *tx) closeHolder(holder store.HolderID, top uint64) (bool, error) {
	if err := t.exec(`INSERT INTO holders (id, expires) VALUES ($1, clock_timestamp()) ON CONFLICT DO NOTHING`, string(holder)); err != nil {
		return false, err
	}
	if err := t.exec(`SELECT FROM holders WHERE id = $1 FOR UPDATE`, string(holder)); err != nil {
		return false, err
	}
	last, err := t.lockCursor(holder)
	if err != nil || last < top {
		return false, err
	}
	live, err := t.leasesIn(holder, string(ledger.Open), string(ledger.Lost))
	if err != nil {
		return false, err
	}
	if err := t.settle(holder, live, func(_ store.LeaseRef, l *ledger.Lease) ledger.Delta { return l.Close() }); err != nil {
		return false, err
	}
	return true, t.exec(`UPDATE holders SET closed = true, closed_at = coalesce(closed_at, clock_timestamp()) WHERE id = $1`, string(holder))
}
