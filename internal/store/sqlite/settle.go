package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// Commit implements store.Ledger.
func (s *Store) Commit(ctx context.Context, holder store.HolderID, records []store.Record) (uint64, error) {
	var last uint64
	err := s.tx(ctx, "commit records", func(tx *tx) (err error) {
		if last, err = tx.cursor(holder); err != nil {
			return err
		}
		fresh, err := store.Fresh(records, last)
		if err != nil || len(fresh) == 0 {
			return err
		}
		if err := tx.commit(holder, fresh); err != nil {
			return err
		}
		last = fresh[len(fresh)-1].Seq
		return tx.exec(`UPDATE cursors SET last_seq = ? WHERE holder = ?`, int64(last), holder)
	})
	if err != nil && !errors.Is(err, store.ErrGap) {
		return 0, err
	}
	return last, err
}

// cursor makes the holder's cursor when it is missing and reads it.
func (t *tx) cursor(holder store.HolderID) (last uint64, err error) {
	if err := t.exec(`INSERT INTO cursors (holder, created) VALUES (?, ?) ON CONFLICT DO NOTHING`, holder, micros(t.now)); err != nil {
		return 0, err
	}
	return last, t.row(`SELECT last_seq FROM cursors WHERE holder = ?`, holder).Scan(&last)
}

// commit writes records and moves their money.
func (t *tx) commit(holder store.HolderID, given []store.Record) error {
	records := slices.Clone(given) // the caller may send them again
	for i := range records {
		records[i].Clean()
	}
	leases, err := t.leases(holder, store.Refs(records))
	if err != nil {
		return err
	}
	changes := make(map[int64]ledger.Delta)
	for i := range records {
		if err := records[i].Charge(leases, changes); err != nil {
			return err
		}
		if err := t.insertRecord(holder, &records[i]); err != nil {
			return err
		}
	}
	if err := t.saveAll(holder, leases, changes); err != nil {
		return err
	}
	if err := t.addDays(records); err != nil {
		return err
	}
	return t.addSubjects(records)
}

// leases reads the holder's leases that refs name; those that do not exist are
// missing from the map.
func (t *tx) leases(holder store.HolderID, refs []store.LeaseRef) (map[store.LeaseRef]*ledger.Lease, error) {
	out := make(map[store.LeaseRef]*ledger.Lease, len(refs))
	for _, ref := range refs {
		var l ledger.Lease
		err := t.row(`SELECT state, granted, spent, overrun, lost, late FROM leases WHERE holder = ? AND seq = ? AND budget = ?`,
			holder, int64(ref.Seq), ref.Budget).Scan(&l.State, &l.Granted, &l.Spent, &l.Overrun, &l.Lost, &l.Late)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		} else if err != nil {
			return nil, err
		}
		out[ref] = &l
	}
	return out, nil
}

// saveAll writes changed leases and budgets.
func (t *tx) saveAll(holder store.HolderID, leases map[store.LeaseRef]*ledger.Lease, changes map[int64]ledger.Delta) error {
	for ref, l := range leases {
		if err := t.exec(`UPDATE leases SET state = ?, granted = ?, spent = ?, overrun = ?, lost = ?, late = ? WHERE holder = ? AND seq = ? AND budget = ?`,
			l.State, l.Granted, l.Spent, l.Overrun, l.Lost, l.Late, holder, int64(ref.Seq), ref.Budget); err != nil {
			return err
		}
	}
	for id, d := range changes {
		if err := t.change(id, d); err != nil {
			return err
		}
	}
	return nil
}

// settle applies one rule to leases of a holder.
func (t *tx) settle(holder store.HolderID, refs []store.LeaseRef, rule func(store.LeaseRef, *ledger.Lease) ledger.Delta) error {
	leases, err := t.leases(holder, refs)
	if err != nil {
		return err
	}
	changes := make(map[int64]ledger.Delta)
	for ref, l := range leases {
		changes[ref.Budget] = changes[ref.Budget].Add(rule(ref, l))
	}
	return t.saveAll(holder, leases, changes)
}

// Return implements store.Ledger.
func (s *Store) Return(ctx context.Context, holder store.HolderID, leases []store.ReturnLease) ([]store.LeaseRef, error) {
	var pending []store.LeaseRef
	err := s.tx(ctx, "return leases", func(tx *tx) error {
		last, err := tx.cursor(holder)
		if err != nil {
			return err
		}
		var ready []store.LeaseRef
		ready, pending = store.SplitReturns(leases, last)
		return tx.settle(holder, ready, func(_ store.LeaseRef, l *ledger.Lease) ledger.Delta { return l.Close() })
	})
	if err != nil {
		return nil, err
	}
	return pending, nil
}

// Trim implements store.Ledger.
func (s *Store) Trim(ctx context.Context, holder store.HolderID, leases []store.TrimLease) error {
	refs, to := store.TrimTargets(leases)
	return s.tx(ctx, "trim leases", func(tx *tx) error {
		return tx.settle(holder, refs, func(ref store.LeaseRef, l *ledger.Lease) ledger.Delta { return l.Trim(to[ref]) })
	})
}

// Reap implements store.Ledger.
func (s *Store) Reap(ctx context.Context, margin time.Duration) (int, error) {
	reaped := 0
	err := s.tx(ctx, "reap holders", func(tx *tx) error {
		holders, err := tx.expired(margin)
		if err != nil {
			return err
		}
		for _, h := range holders {
			if err := tx.reap(h); err != nil {
				return err
			}
		}
		reaped = len(holders)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return reaped, nil
}

func (t *tx) expired(margin time.Duration) ([]store.HolderID, error) {
	rows, err := t.QueryContext(t.ctx, `SELECT id FROM holders WHERE expires <= ?
		AND EXISTS (SELECT 1 FROM leases WHERE holder = id AND state = 'open') ORDER BY id`, micros(t.now.Add(-margin)))
	if err != nil {
		return nil, err
	}
	return collect(rows, func(h *store.HolderID) []any { return []any{h} })
}

func (t *tx) reap(h store.HolderID) error {
	refs, err := t.refs(h, ledger.Open)
	if err != nil {
		return err
	}
	if err := t.settle(h, refs, func(_ store.LeaseRef, l *ledger.Lease) ledger.Delta { return l.Reap() }); err != nil {
		return err
	}
	return t.exec(`UPDATE holders SET reaps = reaps + 1 WHERE id = ?`, h)
}

// refs lists the holder's leases in any of the states.
func (t *tx) refs(h store.HolderID, states ...ledger.State) ([]store.LeaseRef, error) {
	var out []store.LeaseRef
	for _, st := range states {
		rows, err := t.QueryContext(t.ctx, `SELECT seq, budget FROM leases WHERE holder = ? AND state = ?`, h, st)
		if err != nil {
			return nil, err
		}
		refs, err := collect(rows, func(r *store.LeaseRef) []any { return []any{&r.Seq, &r.Budget} })
		if err != nil {
			return nil, err
		}
		out = append(out, refs...)
	}
	return out, nil
}

// CloseHolder implements store.Ledger.
func (s *Store) CloseHolder(ctx context.Context, holder store.HolderID, top uint64) (bool, error) {
	done := false
	err := s.tx(ctx, "close holder", func(tx *tx) error {
		if err := tx.know(holder, tx.now); err != nil {
			return err
		}
		last, err := tx.cursor(holder)
		if err != nil || last < top {
			return err
		}
		refs, err := tx.refs(holder, ledger.Open, ledger.Lost)
		if err != nil {
			return err
		}
		if err := tx.settle(holder, refs, func(_ store.LeaseRef, l *ledger.Lease) ledger.Delta { return l.Close() }); err != nil {
			return err
		}
		done = true
		return tx.exec(`UPDATE holders SET closed = 1, closed_at = coalesce(closed_at, ?) WHERE id = ?`, micros(tx.now), holder)
	})
	return done && err == nil, err
}

// collect scans all rows into values whose fields the function names.
func collect[T any](rows *sql.Rows, fields func(*T) []any) ([]T, error) {
	defer rows.Close()
	var out []T
	for rows.Next() {
		var v T
		if err := rows.Scan(fields(&v)...); err != nil {
			return nil, fmt.Errorf("cannot read a row: %w", err)
		}
		out = append(out, v)
	}
	return out, rows.Err()
}
