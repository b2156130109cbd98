package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// keySelect reads a key with what its reported spend is made from.
const keySelect = `SELECT k.id, k.name, k.alias, k.user_id, k.team_id, k.organization_id, k.models, k.aliases, k.blocked, k.expires,
	k.max_budget, k.budget_duration, k.tags, k.metadata, k.settings, k.created_by, k.created_at, k.updated_by, k.updated_at, k.version,
	k.spend_offset + (SELECT coalesce(sum(d.cost), 0) FROM spend_daily d WHERE d.key_id = k.id),
	b.id, b.spent, b.anchor_ts, b.until_ts, b.duration,
	(SELECT coalesce(sum(l.spent), 0) FROM leases l WHERE l.budget = b.id AND l.state = 'open')
	FROM keys k LEFT JOIN budgets b ON b.entity = 'key:' || k.id AND b.win = '' AND b.current`

// CreateKey implements store.Keys.
func (s *Store) CreateKey(ctx context.Context, k store.Key) error {
	if err := k.Normalize(); err != nil {
		return err
	}
	return s.tx(ctx, "create key", func(tx *tx) error {
		if err := tx.checkNewKey(k); err != nil {
			return err
		}
		// A key that was deleted and comes again starts at zero.
		err := tx.exec(`INSERT INTO keys (id, name, alias, user_id, team_id, organization_id, models, aliases, blocked, expires, max_budget,
			budget_duration, spend_offset, tags, metadata, settings, created_by, created_at, updated_by, updated_at)
			VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12, -(SELECT coalesce(sum(cost), 0) FROM spend_daily WHERE key_id = ?1), ?13,?14,?15,?16,?17,?16,?17)`,
			k.ID, k.Name, k.Alias, k.UserID, k.TeamID, k.OrganizationID, text(k.Models), text(k.Aliases), k.Blocked, micros(k.Expires), k.MaxBudget,
			k.BudgetDuration, text(k.Tags), k.MetadataJSON, k.SettingsJSON, k.CreatedBy, micros(tx.now))
		if unique(err) {
			return store.ErrConflict
		} else if err != nil {
			return err
		}
		if err := tx.moveBudgets(store.Key{ID: k.ID}, k, nil); err != nil {
			return err
		}
		return tx.changed(k.ID, k.CreatedBy, "create", nil, &k)
	})
}

// changed tells pollers and the audit log.
func (t *tx) changed(id, actor, action string, before, after *store.Key) error {
	if err := t.exec(`INSERT INTO changes (key_id, at) VALUES (?, ?)`, id, micros(t.now)); err != nil {
		return err
	}
	return t.exec(`INSERT INTO audit (at, actor, action, subject, before, after) VALUES (?, ?, ?, ?, ?, ?)`,
		micros(t.now), store.CleanText(actor), action, store.KeyEntity(id), auditText(before), auditText(after))
}

func auditText(k *store.Key) any {
	if k == nil {
		return nil
	}
	return text(k)
}

// Key implements store.Keys.
func (s *Store) Key(ctx context.Context, id string) (store.Key, error) {
	k, err := scanKey(s.read.QueryRowContext(ctx, keySelect+` WHERE k.id = ?`, id))
	return k, failure("read key", err)
}

// scanKey reads one row of keySelect.
func scanKey(row interface{ Scan(...any) error }) (store.Key, error) {
	var k store.Key
	var models, aliases, tags string
	var expires, created, updated, budget, spent, anchor, until sql.NullInt64
	var duration sql.NullString
	var total, open int64
	err := row.Scan(&k.ID, &k.Name, &k.Alias, &k.UserID, &k.TeamID, &k.OrganizationID, &models, &aliases, &k.Blocked, &expires,
		&k.MaxBudget, &k.BudgetDuration, &tags, &k.MetadataJSON, &k.SettingsJSON, &k.CreatedBy, &created, &k.UpdatedBy, &updated, &k.Version,
		&total, &budget, &spent, &anchor, &until, &duration, &open)
	if errors.Is(err, sql.ErrNoRows) {
		return k, store.ErrNotFound
	} else if err != nil {
		return k, err
	}
	k.Expires, k.CreatedAt, k.UpdatedAt = timeOf(expires), timeOf(created), timeOf(updated)
	var b *store.BudgetRow
	if budget.Valid {
		b = &store.BudgetRow{Budget: ledger.Budget{Spent: spent.Int64, OpenSpent: open, Until: timeOf(until)}, Anchor: timeOf(anchor), Duration: duration.String}
	}
	return k, errors.Join(
		json.Unmarshal([]byte(models), &k.Models), json.Unmarshal([]byte(aliases), &k.Aliases), json.Unmarshal([]byte(tags), &k.Tags),
		k.SettleSpend(b, total, time.Now()))
}

// KeyByAlias implements store.Keys.
func (s *Store) KeyByAlias(ctx context.Context, alias string) (string, error) {
	var id string
	err := s.read.QueryRowContext(ctx, `SELECT id FROM keys WHERE alias = ? AND alias <> ''`, alias).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	return id, failure("find alias", err)
}

// UpdateKey implements store.Keys.
func (s *Store) UpdateKey(ctx context.Context, id string, p store.KeyPatch) (store.Key, error) {
	var after store.Key
	err := s.tx(ctx, "update key", func(tx *tx) error {
		before, err := scanKey(tx.row(keySelect+` WHERE k.id = ?`, id))
		if err != nil {
			return err
		}
		k := before
		p.Apply(&k)
		if err := k.Normalize(); err != nil {
			return err
		}
		if err := tx.checkKeyParents(k, before); err != nil {
			return err
		}
		if err := tx.writeKey(k); err != nil {
			return err
		}
		if err := tx.moveBudgets(before, k, p.Spend); err != nil {
			return err
		}
		if after, err = scanKey(tx.row(keySelect+` WHERE k.id = ?`, id)); err != nil {
			return err
		}
		return tx.changed(id, p.UpdatedBy, "update", &before, &after)
	})
	return after, err
}

func (t *tx) writeKey(k store.Key) error {
	err := t.exec(`UPDATE keys SET alias=?2, user_id=?3, team_id=?4, organization_id=?5, models=?6, aliases=?7, blocked=?8, expires=?9, max_budget=?10,
		budget_duration=?11, tags=?12, metadata=?13, settings=?14, updated_by=?15, updated_at=?16, version=version+1 WHERE id=?1`,
		k.ID, k.Alias, k.UserID, k.TeamID, k.OrganizationID, text(k.Models), text(k.Aliases), k.Blocked, micros(k.Expires), k.MaxBudget,
		k.BudgetDuration, text(k.Tags), k.MetadataJSON, k.SettingsJSON, k.UpdatedBy, micros(t.now))
	if unique(err) {
		return store.ErrConflict
	}
	return err
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
	return t.exec(`UPDATE keys SET spend_offset = ?2 - (SELECT coalesce(sum(cost), 0) FROM spend_daily WHERE key_id = ?1) WHERE id = ?1`, id, *spend)
}

// DeleteKeys implements store.Keys.
func (s *Store) DeleteKeys(ctx context.Context, ids []string, by string) ([]string, error) {
	var gone []string
	err := s.tx(ctx, "delete keys", func(tx *tx) (err error) {
		gone, err = tx.deleteKeys(ids, by)
		return err
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

func (t *tx) deleteKeys(ids []string, by string) ([]string, error) {
	var gone []string
	for _, id := range ids {
		before, err := t.key(id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		if err := t.secretsChanged(id); err != nil {
			return nil, err
		}
		if err := t.exec(`DELETE FROM key_secrets WHERE key_id = ?`, id); err != nil {
			return nil, err
		}
		if err := t.exec(`DELETE FROM keys WHERE id = ?`, id); err != nil {
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

func (t *tx) key(id string) (store.Key, error) {
	return scanKey(t.row(keySelect+` WHERE k.id = ?`, id))
}

// ListKeys implements store.Keys.
func (s *Store) ListKeys(ctx context.Context, f store.KeyFilter) (store.KeyPage, error) {
	w := &where{}
	w.equal("k.user_id", f.UserID)
	w.equal("k.team_id", f.TeamID)
	w.equal("k.organization_id", f.OrganizationID)
	w.equal("k.id", f.ID)
	w.equal("k.alias", f.Alias)
	var page store.KeyPage
	if err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM keys k`+w.String(), w.args...).Scan(&page.Total); err != nil {
		return page, failure("count keys", err)
	}
	limit, offset := f.Window()
	rows, err := s.read.QueryContext(ctx, keySelect+w.String()+` ORDER BY k.created_at DESC, k.id DESC LIMIT ? OFFSET ?`, append(w.args, limit, offset)...)
	if err != nil {
		return page, failure("list keys", err)
	}
	defer rows.Close()
	for rows.Next() {
		k, err := scanKey(rows)
		if err != nil {
			return page, failure("list keys", err)
		}
		page.Keys = append(page.Keys, k)
	}
	return page, failure("list keys", rows.Err())
}

// Changes implements store.Keys. One writer commits in the order of positions,
// so none can appear behind a position that was handed out.
func (s *Store) Changes(ctx context.Context, after int64) ([]string, int64, error) {
	if after < 0 {
		err := s.read.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'changes'`).Scan(&after)
		return nil, after, failure("read changes", err)
	}
	rows, err := s.read.QueryContext(ctx, `SELECT key_id, position FROM changes WHERE position > ? ORDER BY position LIMIT 1000`, after)
	if err != nil {
		return nil, after, failure("read changes", err)
	}
	defer rows.Close()
	var ids []string
	position := after
	for rows.Next() {
		var id string
		if err := rows.Scan(&id, &position); err != nil {
			return nil, after, failure("read changes", err)
		}
		ids = append(ids, id)
	}
	return ids, position, failure("read changes", rows.Err())
}
