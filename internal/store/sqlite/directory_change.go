package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-gateway/penstock/internal/store"
)

// CreateEntities implements store.Directory.
func (s *Store) CreateEntities(ctx context.Context, entities []store.Entity) error {
	entities = slices.Clone(entities)
	for i := range entities {
		if err := entities[i].Normalize(); err != nil {
			return err
		}
	}
	return s.tx(ctx, "create entities", func(tx *tx) error {
		for _, e := range entities {
			if err := tx.createEntity(e); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tx) createEntity(e store.Entity) error {
	name := e.Name()
	for _, parent := range e.Parents() {
		if err := t.mustExist(parent); err != nil {
			return err
		}
	}
	err := t.exec(`INSERT INTO entities (name, kind, id, team_id, organization_id, alias, email, role, models, blocked, max_budget, budget_duration,
		metadata, settings, created_by, updated_by, created_at, updated_at) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?15,?16,?16)`,
		name, e.Kind, e.ID, e.TeamID, e.OrganizationID, e.Alias, e.Email, e.Role, text(e.Models), e.Blocked, e.MaxBudget, e.BudgetDuration,
		e.MetadataJSON, e.SettingsJSON, e.CreatedBy, micros(t.now))
	if unique(err) {
		return store.ErrConflict
	} else if err != nil {
		return err
	}
	if !e.KeepsHistory() { // one that was deleted and comes again starts at zero
		if err := t.exec(`UPDATE entities AS e SET spend_offset = -`+entityTotal+` WHERE name = ?`, name); err != nil {
			return err
		}
	}
	fresh, err := t.entity(name)
	if err != nil {
		return err
	}
	if err := t.moveEntity(store.Entity{Kind: e.Kind, ID: e.ID, TeamID: e.TeamID, Spend: fresh.Spend}, e, nil); err != nil {
		return err
	}
	return t.entityChanged(name, e.CreatedBy, "create", nil, &e)
}

// checkNewKey refuses a key whose secret opens another one already, or that belongs to
// what does not exist.
func (t *tx) checkNewKey(k store.Key) error {
	if err := t.checkSecret(k.ID); err != nil {
		return err
	}
	return t.checkKeyParents(k, store.Key{})
}

func (t *tx) checkKeyParents(k, old store.Key) error {
	for _, parent := range k.NewParents(old) {
		if err := t.mustExist(parent); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) mustExist(name string) error {
	var one int
	err := t.row(`SELECT 1 FROM entities WHERE name = ?`, name).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("cannot use %.60q: it does not exist: %w", name, store.ErrInvalid)
	}
	return err
}

// moveEntity brings the budget rows in line with the entity.
func (t *tx) moveEntity(before, e store.Entity, spend *int64) error {
	if e.Kind == store.KindTemplate {
		return nil
	}
	old, err := before.Budgets(store.Template{})
	if err != nil {
		return err
	}
	template, err := t.lentTo(e)
	if err != nil {
		return err
	}
	want, err := e.Budgets(template)
	if err != nil {
		return err
	}
	main, err := t.reconcile(e.Name(), old, want, before.Spend, spend)
	if err != nil || main || spend == nil {
		return err
	}
	return t.exec(`UPDATE entities AS e SET spend_offset = ? - `+entityTotal+` WHERE name = ?`, *spend, e.Name())
}

// lentTo is the template that lends its limit to an entity: the one that it names, or
// its team's for members.
func (t *tx) lentTo(e store.Entity) (store.Template, error) {
	template, err := t.templateOf(e.SettingsJSON)
	if err != nil || template.MaxBudget != nil || e.Kind != store.KindMember {
		return template, err
	}
	team, err := t.entity(store.EntityName(store.KindTeam, e.TeamID))
	if errors.Is(err, store.ErrNotFound) {
		return template, nil
	} else if err != nil {
		return template, err
	}
	return team.MemberTemplate()
}

// UpdateEntity implements store.Directory.
func (s *Store) UpdateEntity(ctx context.Context, name string, p store.EntityPatch) (store.Entity, error) {
	var after store.Entity
	err := s.tx(ctx, "update entity", func(tx *tx) (err error) {
		after, err = tx.updateEntity(name, p)
		return err
	})
	return after, err
}

func (t *tx) updateEntity(name string, p store.EntityPatch) (store.Entity, error) {
	before, err := t.entity(name)
	if err != nil {
		return before, err
	}
	e := before
	p.Apply(&e)
	if err := e.Normalize(); err != nil {
		return e, err
	}
	for _, parent := range e.Parents() {
		if err := t.mustExist(parent); err != nil {
			return e, err
		}
	}
	err = t.exec(`UPDATE entities SET organization_id=?2, alias=?3, email=?4, role=?5, models=?6, blocked=?7, max_budget=?8, budget_duration=?9,
		metadata=?10, settings=?11, updated_by=?12, updated_at=?13, version=version+1 WHERE name=?1`,
		name, e.OrganizationID, e.Alias, e.Email, e.Role, text(e.Models), e.Blocked, e.MaxBudget, e.BudgetDuration,
		e.MetadataJSON, e.SettingsJSON, e.UpdatedBy, micros(t.now))
	if unique(err) {
		return e, store.ErrConflict
	} else if err != nil {
		return e, err
	}
	if err := t.moveEntity(before, e, p.Spend); err != nil {
		return e, err
	}
	if err := t.moveBorrowers(e); err != nil {
		return e, err
	}
	after, err := t.entity(name)
	if err != nil {
		return e, err
	}
	return after, t.entityChanged(name, p.UpdatedBy, "update", &before, &after)
}

// moveBorrowers brings the budgets in line of those that take their limit from e: the
// users of a template, and the members of a team.
func (t *tx) moveBorrowers(e store.Entity) error {
	var keys, names []string
	var err error
	switch e.Kind {
	case store.KindTeam:
		names, err = t.names(`SELECT name FROM entities WHERE kind = 'member' AND team_id = ?`, e.ID)
	case store.KindTemplate:
		if keys, err = t.names(`SELECT id FROM keys WHERE json_extract(settings, '$.budget_id') = ?`, e.ID); err != nil {
			return err
		}
		names, err = t.names(`SELECT name FROM entities WHERE json_extract(settings, '$.budget_id') = ?`, e.ID)
	}
	if err != nil {
		return err
	}
	for _, id := range keys {
		k, err := t.key(id)
		if err != nil {
			return err
		}
		if err := t.moveBudgets(k, k, nil); err != nil {
			return err
		}
	}
	for _, name := range names {
		other, err := t.entity(name)
		if err != nil {
			return err
		}
		if err := t.moveEntity(other, other, nil); err != nil {
			return err
		}
	}
	return nil
}
