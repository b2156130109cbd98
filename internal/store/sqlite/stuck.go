package sqlite

import (
	"context"
	"errors"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// Fence implements store.Stuck.
func (s *Store) Fence(ctx context.Context, holder store.HolderID) error {
	return s.tx(ctx, "fence a holder", func(t *tx) error {
		return t.exec(`INSERT INTO holders (id, expires, closed) VALUES (?, ?, 1) ON CONFLICT (id) DO UPDATE SET closed = 1`, holder, micros(t.now))
	})
}

// Bury implements store.Stuck.
func (s *Store) Bury(ctx context.Context, holder store.HolderID, r store.Record) (uint64, error) {
	var last uint64
	err := s.tx(ctx, "bury a record", func(t *tx) (err error) {
		if last, err = t.cursor(holder); err != nil {
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
		return t.exec(`UPDATE cursors SET last_seq = ? WHERE holder = ?`, int64(last), holder)
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
	budgets := make(map[int64]bool)
	for _, c := range r.Charges {
		var known bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM budgets WHERE id = ?)`, c.Budget).Scan(&known); err != nil {
			return err
		}
		budgets[c.Budget] = known
	}
	reason := r.Orphaned(func(ref store.LeaseRef) bool { return leases[ref] != nil }, func(id int64) bool { return budgets[id] })
	if err := t.writeLetter(holder, &r, reason, original); err != nil {
		return err
	}
	// A charge without a lease is one of a closed lease, which is not saved: saveAll
	// updates rows and makes none.
	for _, c := range r.Charges {
		if leases[c.LeaseRef] == nil {
			leases[c.LeaseRef] = &ledger.Lease{State: ledger.Closed}
		}
	}
	changes := make(map[int64]ledger.Delta)
	if err := r.Charge(leases, changes); err != nil {
		return err
	}
	if err := t.saveAll(holder, leases, changes); err != nil {
		return err
	}
	if err := t.addDays([]store.Record{r}); err != nil {
		return err
	}
	return t.addSubjects([]store.Record{r})
}
