package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// deleteChunk is how many keys one transaction deletes: fewer than Changes
// returns at once.
const deleteChunk = 500

// CreateKey implements store.Keys.
func (s *Store) CreateKey(ctx context.Context, k store.Key) error {
	if err := k.Normalize(); err != nil {
		return err
	}
	return s.tx(ctx, "create key", func(t *tx) error {
		aliases, err := json.Marshal(k.Aliases)
		if err != nil {
			return err
		}
		// A key that was deleted and comes again starts at zero.
		if err := t.exec(`INSERT INTO keys (id, name, alias, user_id, team_id, organization_id, models, aliases, blocked, expires, max_budget,
			budget_duration, tags, metadata, settings, created_by, updated_by, created_at, updated_at, spend_offset)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9, $10, $11, $12, $13, $14::text::jsonb, $15::text::jsonb, $16, $16, clock_timestamp(), clock_timestamp(),
			-(SELECT coalesce(sum(cost), 0)::bigint FROM spend_daily WHERE key_id = $1))`,
			k.ID, k.Name, k.Alias, k.UserID, k.TeamID, k.OrganizationID, k.Models, string(aliases), k.Blocked, nullTime(k.Expires), k.MaxBudget,
			k.BudgetDuration, k.Tags, k.MetadataJSON, k.SettingsJSON, k.CreatedBy); err != nil {
			return invalid(err)
		}
		if k.MaxBudget != nil {
			if err := t.openBudget(k, 0); err != nil {
				return err
			}
		}
		return t.changed(k.ID, k.CreatedBy, "create", nil, &k)
	})
}

// invalid marks a value that the database cannot hold as the caller's fault.
func invalid(err error) error {
	if refused(err) && code(err) != uniqueViolation {
		return fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	return err
}

// UpdateKey implements store.Keys.
func (s *Store) UpdateKey(ctx context.Context, id string, p store.KeyPatch) (store.Key, error) {
	var after store.Key
	err := s.tx(ctx, "update key", func(t *tx) (err error) {
		after, err = t.updateKey(id, p)
		return err
	})
	return after, err
}

func (t *tx) updateKey(id string, p store.KeyPatch) (store.Key, error) {
	if !store.Storable(id) {
		return store.Key{}, store.ErrNotFound
	}
	if err := t.exec(`SELECT FROM keys WHERE id = $1 FOR UPDATE`, id); err != nil {
		return store.Key{}, err
	}
	before, err := t.key(id)
	if err != nil {
		return store.Key{}, err
	}
	k := before
	p.Apply(&k)
	if err := k.Normalize(); err != nil {
		return store.Key{}, err
	}
	if err := t.writeKey(k); err != nil {
		return store.Key{}, invalid(err)
	}
	if err := t.moveBudget(before, k, p.Spend); err != nil {
		return store.Key{}, err
	}
	after, err := t.key(id)
	if err != nil {
		return store.Key{}, err
	}
	return after, t.changed(id, p.UpdatedBy, "update", &before, &after)
}

func (t *tx) writeKey(k store.Key) error {
	aliases, err := json.Marshal(k.Aliases)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE keys SET alias = $2, user_id = $3, team_id = $4, organization_id = $5, models = $6, aliases = $7::text::jsonb, blocked = $8,
		expires = $9, max_budget = $10, budget_duration = $11, tags = $12, metadata = $13::text::jsonb, settings = $14::text::jsonb,
		updated_by = $15, updated_at = clock_timestamp(), version = version + 1 WHERE id = $1`,
		k.ID, k.Alias, k.UserID, k.TeamID, k.OrganizationID, k.Models, string(aliases), k.Blocked, nullTime(k.Expires), k.MaxBudget,
		k.BudgetDuration, k.Tags, k.MetadataJSON, k.SettingsJSON, k.UpdatedBy)
}

// moveBudget brings the budget row in line with the key.
func (t *tx) moveBudget(before, k store.Key, spend *int64) error {
	if spend != nil && *spend < 0 {
		return fmt.Errorf("cannot set spend %d: want 0 or more: %w", *spend, store.ErrInvalid)
	}
	switch k.StepFrom(before.MaxBudget) {
	case store.BudgetOpen:
		sofar := before.Spend
		if spend != nil {
			sofar = *spend
		}
		return t.openBudget(k, sofar)
	case store.BudgetDrop:
		if err := t.endBudget(k.ID); err != nil {
			return err
		}
		return t.setOffset(k.ID, spend)
	case store.BudgetAdjust:
		return t.adjustBudget(before, k, spend)
	}
	return t.setOffset(k.ID, spend)
}

// setOffset makes an unbudgeted key report a spend.
func (t *tx) setOffset(id string, spend *int64) error {
	if spend == nil {
		return nil
	}
	return t.exec(`UPDATE keys SET spend_offset = $2 - (SELECT coalesce(sum(cost), 0)::bigint FROM spend_daily WHERE key_id = $1) WHERE id = $1`, id, *spend)
}

// openBudget makes the key's current budget row, its period starting now.
func (t *tx) openBudget(k store.Key, spent int64) error {
	now, err := t.clock()
	if err != nil {
		return err
	}
	end, err := store.PeriodEnd(k.BudgetDuration, now, now)
	if err != nil {
		return err
	}
	d := ledger.Opening(*k.MaxBudget, spent)
	return t.insertBudget(&store.BudgetRow{
		Budget: ledger.Budget{Entity: store.KeyEntity(k.ID), Limit: *k.MaxBudget, Spent: d.Spent, Overrun: d.Overrun, Until: end},
		Anchor: now, Duration: k.BudgetDuration,
	})
}

func (t *tx) clock() (now time.Time, err error) {
	err = t.row(`SELECT clock_timestamp()`).Scan(&now)
	return now, err
}

func (t *tx) endBudget(id string) error {
	return t.exec(`UPDATE budgets SET current = false, until_ts = clock_timestamp() WHERE entity = $1 AND win = '' AND current`, store.KeyEntity(id))
}

// adjustBudget changes limit and period in place; a corrected spend is a reset,
// that is a new row, so that leases of the old one settle where they belong.
func (t *tx) adjustBudget(before, k store.Key, spend *int64) error {
	if spend != nil {
		if err := t.endBudget(k.ID); err != nil {
			return err
		}
		return t.openBudget(k, *spend)
	}
	entity := store.KeyEntity(k.ID)
	if err := t.exec(`UPDATE budgets SET limit_n = $2 WHERE entity = $1 AND win = '' AND current`, entity, *k.MaxBudget); err != nil {
		return err
	}
	if before.BudgetDuration == k.BudgetDuration {
		return nil
	}
	now, err := t.clock()
	if err != nil {
		return err
	}
	end, err := store.PeriodEnd(k.BudgetDuration, now, now)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE budgets SET duration = $2, anchor_ts = $3, until_ts = $4 WHERE entity = $1 AND win = '' AND current`,
		entity, k.BudgetDuration, now, nullTime(end))
}

// DeleteKeys implements store.Keys. Many ids are deleted in several transactions,
// so an error may come after a part of them is gone; deleting them again is fine.
func (s *Store) DeleteKeys(ctx context.Context, ids []string, by string) ([]string, error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !store.Storable(id) })
	slices.Sort(ids)
	var gone []string
	for chunk := range slices.Chunk(slices.Compact(ids), deleteChunk) {
		var part []string
		if err := s.tx(ctx, "delete keys", func(t *tx) (err error) {
			part, err = t.deleteKeys(chunk, by)
			return err
		}); err != nil {
			return gone, err
		}
		gone = append(gone, part...)
	}
	return gone, nil
}

func (t *tx) deleteKeys(ids []string, by string) ([]string, error) {
	if err := t.exec(`SELECT FROM keys WHERE id = ANY($1::text[]) ORDER BY id FOR UPDATE`, ids); err != nil {
		return nil, err
	}
	var gone []string
	for _, id := range ids {
		before, err := t.key(id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		if err := t.exec(`DELETE FROM keys WHERE id = $1`, id); err != nil {
			return nil, err
		}
		if err := t.endBudget(id); err != nil {
			return nil, err
		}
		if err := t.changed(id, by, "delete", &before, nil); err != nil {
			return nil, err
		}
		gone = append(gone, id)
	}
	return gone, nil
}

// changed tells pollers and the audit log.
func (t *tx) changed(id, actor, action string, before, after *store.Key) error {
	texts := make([]*string, 2)
	for i, k := range []*store.Key{before, after} {
		if k == nil {
			continue
		}
		b, err := json.Marshal(k)
		if err != nil {
			return err
		}
		text := string(b)
		texts[i] = &text
	}
	if err := t.exec(`INSERT INTO changes (key_id) VALUES ($1)`, id); err != nil {
		return err
	}
	return t.exec(`INSERT INTO audit (actor, action, subject, before, after) VALUES ($1, $2, $3, $4::text::jsonb, $5::text::jsonb)`,
		store.CleanText(actor), action, store.KeyEntity(id), texts[0], texts[1])
}
