package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
)

// DeleteEntities implements store.Directory. Each name is one transaction, and the keys
// that go with it are deleted in some before it: an error may come after a part is
// gone, and deleting it again is fine.
func (s *Store) DeleteEntities(ctx context.Context, names []string, by string) ([]string, error) {
	names = storable(names)
	slices.Sort(names)
	var gone []string
	for _, name := range slices.Compact(names) {
		deleted, err := s.deleteEntity(ctx, name, by)
		if err != nil {
			return gone, err
		}
		if deleted {
			gone = append(gone, name)
		}
	}
	return gone, nil
}

// deleteEntity deletes in steps until the last one finds no key any more.
func (s *Store) deleteEntity(ctx context.Context, name, by string) (deleted bool, err error) {
	for more := true; more; {
		if err = s.tx(ctx, "delete entity", func(t *tx) (err error) {
			deleted, more, err = t.deleteStep(name, by)
			return err
		}); err != nil {
			return false, err
		}
	}
	return deleted, nil
}

// deleteStep deletes some of the entity's keys, or the entity when it has none. Its
// lock keeps new keys from coming.
func (t *tx) deleteStep(name, by string) (deleted, more bool, err error) {
	e, err := t.lockEntity(name)
	if errors.Is(err, store.ErrNotFound) {
		return false, false, nil
	} else if err != nil {
		return false, false, err
	}
	if err := t.checkUnused(e); err != nil {
		return false, false, err
	}
	keys, err := t.keysWith(e)
	if err != nil {
		return false, false, err
	}
	if len(keys) > 0 {
		_, err := t.deleteKeys(keys, by)
		return false, true, err
	}
	return true, false, t.removeEntity(e, by)
}

// checkUnused refuses to delete what others would be left without.
func (t *tx) checkUnused(e store.Entity) error {
	var users int
	var err error
	switch e.Kind {
	case store.KindOrganization:
		err = t.row(`SELECT (SELECT count(*) FROM entities WHERE organization_id = $1 AND organization_id <> '')
			+ (SELECT count(*) FROM keys WHERE organization_id = $1 AND organization_id <> '')`, e.ID).Scan(&users)
	case store.KindTemplate:
		err = t.row(`SELECT (SELECT count(*) FROM entities WHERE settings ? 'budget_id' AND settings ->> 'budget_id' = $1)
			+ (SELECT count(*) FROM keys WHERE settings ? 'budget_id' AND settings ->> 'budget_id' = $1)`, e.ID).Scan(&users)
	}
	if err == nil && users > 0 {
		err = fmt.Errorf("cannot delete %.60q: %d others belong to it: %w", e.Name(), users, store.ErrInUse)
	}
	return err
}

// keysWith lists keys that are deleted with the entity, as many as one transaction
// deletes.
func (t *tx) keysWith(e store.Entity) ([]string, error) {
	w := &where{}
	switch e.Kind {
	case store.KindTeam:
		w.equal("team_id", e.ID)
	case store.KindUser:
		w.equal("user_id", e.ID)
	case store.KindMember:
		w.equal("team_id", e.TeamID)
		w.equal("user_id", e.ID)
	default:
		return nil, nil
	}
	return query(t, pgx.RowTo[string], fmt.Sprintf(`SELECT id FROM keys%s ORDER BY id LIMIT %d`, w, deleteChunk), w.args...)
}

// removeEntity deletes the entity with its memberships and ends their budgets.
func (t *tx) removeEntity(e store.Entity, by string) error {
	column := map[store.Kind]string{store.KindTeam: "team_id", store.KindUser: "id"}[e.Kind]
	if column != "" {
		members, err := query(t, pgx.RowTo[string], `SELECT name FROM entities WHERE kind = 'member' AND `+column+` = $1 ORDER BY name FOR UPDATE`, e.ID)
		if err != nil {
			return err
		}
		if err := t.endBudgets(members); err != nil {
			return err
		}
		if err := t.exec(`WITH gone AS (DELETE FROM entities e WHERE name = ANY($1::text[]) RETURNING name, to_jsonb(e) AS before)
			INSERT INTO audit (actor, action, subject, before) SELECT $2, 'delete', name, before FROM gone ORDER BY name`, members, store.CleanText(by)); err != nil {
			return err
		}
	}
	if err := t.endBudgets([]string{e.Name()}); err != nil {
		return err
	}
	if err := t.exec(`DELETE FROM entities WHERE name = $1`, e.Name()); err != nil {
		return err
	}
	return t.entityChanged(e.Name(), by, "delete", &e, nil)
}

// endBudgets ends all current rows of entities.
func (t *tx) endBudgets(entities []string) error {
	rows, err := t.lockBudgets(entities)
	if err != nil {
		return err
	}
	m := store.BudgetMoves{}
	for _, row := range rows {
		m.End = append(m.End, row.ID)
	}
	return t.moveRows(m)
}
