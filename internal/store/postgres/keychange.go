package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// deleteChunk is how many keys one transaction deletes: with the three secrets that
// each may have they are fewer changes than Changes returns at once.
const deleteChunk = 300

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
		if err := t.checkNewKey(k); err != nil {
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
		if err := t.moveBudgets(store.Key{ID: k.ID}, k, nil); err != nil {
			return err
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
	before, err := t.lockKey(id)
	if err != nil {
		return store.Key{}, err
	}
	k := before
	p.Apply(&k)
	if err := k.Normalize(); err != nil {
		return store.Key{}, err
	}
	if err := t.checkKeyParents(k, before); err != nil {
		return store.Key{}, err
	}
	if err := t.writeKey(k); err != nil {
		return store.Key{}, invalid(err)
	}
	if err := t.moveBudgets(before, k, p.Spend); err != nil {
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

// moveBudgets brings the budget rows in line with the key.
func (t *tx) moveBudgets(before, k store.Key, spend *int64) error {
	old, err := before.Budgets(store.Template{})
	if err != nil {
		old = nil // as it was stored by a release that did not read these fields
	}
	template, err := t.templateOf(k.SettingsJSON)
	if err != nil {
		return err
	}
	want, err := k.Budgets(template)
	if err != nil {
		return err
	}
	main, err := t.reconcile(store.KeyEntity(k.ID), old, want, before.Spend, spend)
	if err != nil || main {
		return err
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

func (t *tx) clock() (now time.Time, err error) {
	err = t.row(`SELECT clock_timestamp()`).Scan(&now)
	return now, err
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
	if err := t.secretsChanged(ids); err != nil {
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
		if err := t.moveBudgets(before, store.Key{ID: id}, nil); err != nil {
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
