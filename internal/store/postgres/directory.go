package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// entitySelect reads an entity with what its reported spend is made from, in one
// snapshot as keySelect.
const entitySelect = `SELECT e.kind, e.id, e.team_id, e.organization_id, e.alias, e.email, e.role, e.models, e.blocked, e.max_budget, e.budget_duration,
	e.metadata::text, e.settings::text, e.created_by, e.created_at, e.updated_by, e.updated_at, e.version,
	CASE WHEN b.id IS NULL THEN e.spend_offset + ` + entityTotal + ` ELSE 0 END,
	b.id, b.spent, b.anchor_ts, b.until_ts, b.duration,
	(SELECT coalesce(sum(l.spent), 0)::bigint FROM leases l WHERE l.budget = b.id AND l.state = 'open'), clock_timestamp()
	FROM entities e LEFT JOIN budgets b ON b.entity = e.name AND b.win = '' AND b.current`

// entityTotal is what was ever spent by the entity e.
const entityTotal = `(CASE e.kind
	WHEN 'global' THEN (SELECT coalesce(sum(d.cost), 0)::bigint FROM spend_daily d)
	WHEN 'org' THEN (SELECT coalesce(sum(d.cost), 0)::bigint FROM spend_daily d WHERE d.organization_id = e.id AND d.organization_id <> '')
	WHEN 'team' THEN (SELECT coalesce(sum(d.cost), 0)::bigint FROM spend_daily d WHERE d.team_id = e.id AND d.team_id <> '')
	WHEN 'member' THEN (SELECT coalesce(sum(d.cost), 0)::bigint FROM spend_daily d WHERE d.team_id = e.team_id AND d.team_id <> '' AND d.user_id = e.id)
	WHEN 'user' THEN (SELECT coalesce(sum(d.cost), 0)::bigint FROM spend_daily d WHERE d.user_id = e.id AND d.user_id <> '')
	ELSE (SELECT coalesce(sum(d.cost), 0)::bigint FROM spend_subjects d WHERE d.subject = e.name) END)`

func scanEntity(row pgx.CollectableRow) (store.Entity, error) {
	var e store.Entity
	var kind string
	var anchor, until *time.Time
	var budget, spent *int64
	var duration *string
	var total, open int64
	var now time.Time
	if err := row.Scan(&kind, &e.ID, &e.TeamID, &e.OrganizationID, &e.Alias, &e.Email, &e.Role, &e.Models, &e.Blocked, &e.MaxBudget, &e.BudgetDuration,
		&e.MetadataJSON, &e.SettingsJSON, &e.CreatedBy, &e.CreatedAt, &e.UpdatedBy, &e.UpdatedAt, &e.Version,
		&total, &budget, &spent, &anchor, &until, &duration, &open, &now); err != nil {
		return e, err
	}
	e.Kind, e.CreatedAt, e.UpdatedAt = store.Kind(kind), e.CreatedAt.UTC(), e.UpdatedAt.UTC()
	var b *store.BudgetRow
	if budget != nil {
		b = &store.BudgetRow{Budget: ledger.Budget{ID: *budget, Spent: *spent, OpenSpent: open, Until: timeOf(until)}, Anchor: timeOf(anchor), Duration: *duration}
	}
	return e, e.SettleSpend(b, total, now)
}

// Entity implements store.Directory.
func (s *Store) Entity(ctx context.Context, name string) (store.Entity, error) {
	var e store.Entity
	err := s.read(ctx, "read entity", func(t *tx) (err error) {
		e, err = t.entity(name)
		return err
	})
	return e, err
}

func (t *tx) entity(name string) (store.Entity, error) {
	if !store.Storable(name) {
		return store.Entity{}, store.ErrNotFound
	}
	found, err := query(t, scanEntity, entitySelect+` WHERE e.name = $1`, name)
	if err != nil {
		return store.Entity{}, err
	}
	if len(found) == 0 {
		return store.Entity{}, store.ErrNotFound
	}
	return found[0], nil
}

// lockEntity locks an entity's row and then reads it.
func (t *tx) lockEntity(name string) (store.Entity, error) {
	if store.Storable(name) {
		if err := t.exec(`SELECT FROM entities WHERE name = $1 FOR UPDATE`, name); err != nil {
			return store.Entity{}, err
		}
	}
	return t.entity(name)
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
		w.add("e.id = ANY(?::text[])", storable(f.IDs))
	}
	limit, offset := store.KeyFilter{Page: f.Page, Size: f.Size}.Window()
	var page store.EntityPage
	err := s.tx(ctx, "list entities", func(t *tx) (err error) {
		if err := t.row(`SELECT count(*) FROM entities e`+w.String(), w.args...).Scan(&page.Total); err != nil {
			return err
		}
		page.Entities, err = query(t, scanEntity, fmt.Sprintf(`%s%s ORDER BY e.created_at DESC, e.name DESC LIMIT %d OFFSET %d`, entitySelect, w, limit, offset), w.args...)
		return err
	})
	return page, err
}

// storable are those of the names that can stand in the database.
func storable(names []string) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		if store.Storable(n) {
			out = append(out, n)
		}
	}
	return out
}

// entityChanged tells pollers and the audit log.
func (t *tx) entityChanged(name, actor, action string, before, after *store.Entity) error {
	texts := make([]*string, 2)
	for i, e := range []*store.Entity{before, after} {
		if e == nil {
			continue
		}
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		text := string(b)
		texts[i] = &text
	}
	return t.record(name, name, actor, action, texts)
}

// record writes a change and its audit.
func (t *tx) record(id, subject, actor, action string, texts []*string) error {
	var b pgx.Batch
	b.Queue(`INSERT INTO changes (key_id) VALUES ($1)`, id)
	b.Queue(`INSERT INTO audit (actor, action, subject, before, after) VALUES ($1, $2, $3, $4::text::jsonb, $5::text::jsonb)`,
		store.CleanText(actor), action, subject, texts[0], texts[1])
	return t.send(&b)
}
