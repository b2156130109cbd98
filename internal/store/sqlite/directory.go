package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// entitySelect reads an entity with what its reported spend is made from.
const entitySelect = `SELECT e.kind, e.id, e.team_id, e.organization_id, e.alias, e.email, e.role, e.models, e.blocked, e.max_budget, e.budget_duration,
	e.metadata, e.settings, e.created_by, e.created_at, e.updated_by, e.updated_at, e.version,
	e.spend_offset + ` + entityTotal + `, b.id, b.spent, b.anchor_ts, b.until_ts, b.duration,
	(SELECT coalesce(sum(l.spent), 0) FROM leases l WHERE l.budget = b.id AND l.state = 'open')
	FROM entities e LEFT JOIN budgets b ON b.entity = e.name AND b.win = '' AND b.current`

// entityTotal is what was ever spent by the entity e.
const entityTotal = `(CASE e.kind
	WHEN 'global' THEN (SELECT coalesce(sum(d.cost), 0) FROM spend_daily d)
	WHEN 'org' THEN (SELECT coalesce(sum(d.cost), 0) FROM spend_daily d WHERE d.organization_id = e.id AND d.organization_id <> '')
	WHEN 'team' THEN (SELECT coalesce(sum(d.cost), 0) FROM spend_daily d WHERE d.team_id = e.id AND d.team_id <> '')
	WHEN 'member' THEN (SELECT coalesce(sum(d.cost), 0) FROM spend_daily d WHERE d.team_id = e.team_id AND d.team_id <> '' AND d.user_id = e.id)
	WHEN 'user' THEN (SELECT coalesce(sum(d.cost), 0) FROM spend_daily d WHERE d.user_id = e.id AND d.user_id <> '')
	ELSE (SELECT coalesce(sum(d.cost), 0) FROM spend_subjects d WHERE d.subject = e.name) END)`

// scanEntity reads one row of entitySelect.
func scanEntity(row interface{ Scan(...any) error }) (store.Entity, error) {
	var e store.Entity
	var models string
	var created, updated, budget, spent, anchor, until sql.NullInt64
	var duration sql.NullString
	var total, open int64
	err := row.Scan(&e.Kind, &e.ID, &e.TeamID, &e.OrganizationID, &e.Alias, &e.Email, &e.Role, &models, &e.Blocked, &e.MaxBudget, &e.BudgetDuration,
		&e.MetadataJSON, &e.SettingsJSON, &e.CreatedBy, &created, &e.UpdatedBy, &updated, &e.Version,
		&total, &budget, &spent, &anchor, &until, &duration, &open)
	if errors.Is(err, sql.ErrNoRows) {
		return e, store.ErrNotFound
	} else if err != nil {
		return e, err
	}
	e.CreatedAt, e.UpdatedAt = timeOf(created), timeOf(updated)
	var b *store.BudgetRow
	if budget.Valid {
		b = &store.BudgetRow{Budget: ledger.Budget{Spent: spent.Int64, OpenSpent: open, Until: timeOf(until)}, Anchor: timeOf(anchor), Duration: duration.String}
	}
	return e, errors.Join(json.Unmarshal([]byte(models), &e.Models), e.SettleSpend(b, total, time.Now()))
}

// Entity implements store.Directory.
func (s *Store) Entity(ctx context.Context, name string) (store.Entity, error) {
	e, err := scanEntity(s.read.QueryRowContext(ctx, entitySelect+` WHERE e.name = ?`, name))
	return e, failure("read entity", err)
}

func (t *tx) entity(name string) (store.Entity, error) {
	return scanEntity(t.row(entitySelect+` WHERE e.name = ?`, name))
}

// ListEntities implements store.Directory.
func (s *Store) ListEntities(ctx context.Context, f store.EntityFilter) (store.EntityPage, error) {
	w := &where{}
	w.equal("e.kind", string(f.Kind))
	w.equal("e.organization_id", f.OrganizationID)
	w.equal("e.team_id", f.TeamID)
	w.equal("e.alias", f.Alias)
	w.equal("lower(e.email)", strings.ToLower(f.Email))
	w.equal("e.role", f.Role)
	if f.IDs != nil {
		w.add("e.id IN (SELECT value FROM json_each(?))", text(f.IDs))
	}
	var page store.EntityPage
	if err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM entities e`+w.String(), w.args...).Scan(&page.Total); err != nil {
		return page, failure("count entities", err)
	}
	limit, offset := store.KeyFilter{Page: f.Page, Size: f.Size}.Window()
	rows, err := s.read.QueryContext(ctx, entitySelect+w.String()+` ORDER BY e.created_at DESC, e.name DESC LIMIT ? OFFSET ?`, append(w.args, limit, offset)...)
	if err != nil {
		return page, failure("list entities", err)
	}
	defer rows.Close()
	for rows.Next() {
		e, err := scanEntity(rows)
		if err != nil {
			return page, failure("list entities", err)
		}
		page.Entities = append(page.Entities, e)
	}
	return page, failure("list entities", rows.Err())
}

// entityChanged tells pollers and the audit log.
func (t *tx) entityChanged(name, actor, action string, before, after *store.Entity) error {
	if err := t.exec(`INSERT INTO changes (key_id, at) VALUES (?, ?)`, name, micros(t.now)); err != nil {
		return err
	}
	return t.audit(name, actor, action, before, after)
}

func (t *tx) audit(name, actor, action string, before, after *store.Entity) error {
	texts := make([]any, 2)
	for i, e := range []*store.Entity{before, after} {
		if e != nil {
			texts[i] = text(e)
		}
	}
	return t.exec(`INSERT INTO audit (at, actor, action, subject, before, after) VALUES (?, ?, ?, ?, ?, ?)`,
		micros(t.now), store.CleanText(actor), action, name, texts[0], texts[1])
}

// names lists the first column of a query.
func (t *tx) names(query string, args ...any) ([]string, error) {
	rows, err := t.QueryContext(t.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(s *string) []any { return []any{s} })
}
