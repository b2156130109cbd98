package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// Fence implements store.Stuck. The time of closing stays open: what the holder has
// must be kept until it is settled.
func (s *Store) Fence(ctx context.Context, holder store.HolderID) error {
	return s.flush.tx(ctx, "fence a holder", func(t *tx) error {
		return t.exec(`INSERT INTO holders (id, expires, closed) VALUES ($1, clock_timestamp(), true) ON CONFLICT (id) DO UPDATE SET closed = true`, string(holder))
	})
}

// Bury implements store.Stuck.
func (s *Store) Bury(ctx context.Context, holder store.HolderID, r store.Record) (uint64, error) {
	var last uint64
	err := s.flush.tx(ctx, "bury a record", func(t *tx) (err error) {
		if last, err = t.lockCursor(holder); err != nil {
			return err
		}
		fresh, err := store.Fresh([]store.Record{r}, last)
		if err != nil || len(fresh) == 0 {
			return err
		}
		if err := t.buryOrphan(holder, r); err != nil {
			return err
		}
		last = r.Seq
		return t.exec(`UPDATE cursors SET last_seq = $2 WHERE holder = $1`, string(holder), int64(last))
	})
	if err != nil && !errors.Is(err, store.ErrGap) {
		return 0, err
	}
	return last, err
}

func (t *tx) buryOrphan(holder store.HolderID, r store.Record) error {
	r.Clean()
	original := r.Payload()
	leases, err := t.leases(holder, store.Refs([]store.Record{r}))
	if err != nil {
		return err
	}
	budgets, err := t.knownBudgets(&r)
	if err != nil {
		return err
	}
	reason := r.Orphaned(func(ref store.LeaseRef) bool { return leases[ref] != nil }, func(id int64) bool { return slices.Contains(budgets, id) })
	if err := t.writeLetter(holder, &r, reason, original); err != nil {
		return err
	}
	changes := make(map[int64]ledger.Delta)
	if err := r.Charge(withUnleased(leases, &r), changes); err != nil {
		return err
	}
	if err := t.saveLeases(holder, leases); err != nil {
		return err
	}
	if err := t.change(changes); err != nil {
		return err
	}
	if err := t.addDays(holder, []store.Record{r}); err != nil {
		return err
	}
	return t.addSubjects(holder, []store.Record{r})
}

// withUnleased adds a closed lease for each charge that has none, so that its cost
// goes to the budget. It is not saved.
func withUnleased(leases leaseMap, r *store.Record) leaseMap {
	all := make(leaseMap, len(r.Charges))
	for _, c := range r.Charges {
		if all[c.LeaseRef] = leases[c.LeaseRef]; all[c.LeaseRef] == nil {
			all[c.LeaseRef] = &ledger.Lease{State: ledger.Closed}
		}
	}
	return all
}

// knownBudgets lists the budgets that a record charges and that are there. No budget
// row is ever deleted.
func (t *tx) knownBudgets(r *store.Record) ([]int64, error) {
	var ids []int64
	for _, c := range r.Charges {
		ids = append(ids, c.Budget)
	}
	return query(t, pgx.RowTo[int64], `SELECT id FROM budgets WHERE id = ANY($1::bigint[])`, ids)
}
