package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-gateway/penstock/internal/store"
)

// DeleteEntities implements store.Directory.
func (s *Store) DeleteEntities(ctx context.Context, names []string, by string) ([]string, error) {
	var gone []string
	err := s.tx(ctx, "delete entities", func(tx *tx) error {
		for _, name := range names {
			deleted, err := tx.deleteEntity(name, by)
			if err != nil {
				return err
			}
			if deleted {
				gone = append(gone, name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return gone, nil
}

func (t *tx) deleteEntity(name, by string) (bool, error) {
	e, err := t.entity(name)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if err := t.checkUnused(e); err != nil {
		return false, err
	}
	keys, err := t.keysWith(e)
	if err != nil {
		return false, err
	}
	if _, err := t.deleteKeys(keys, by); err != nil {
		return false, err
	}
	var members []string
	switch e.Kind {
	case store.KindTeam:
		members, err = t.names(`SELECT name FROM entities WHERE kind = 'member' AND team_id = ? ORDER BY name`, e.ID)
	case store.KindUser:
		members, err = t.names(`SELECT name FROM entities WHERE kind = 'member' AND id = ? ORDER BY name`, e.ID)
	}
	if err != nil {
		return false, err
	}
	for _, member := range members {
		m, err := t.entity(member)
		if err != nil {
			return false, err
		}
		if err := t.removeEntity(m, by); err != nil {
			return false, err
		}
	}
	if err := t.removeEntity(e, by); err != nil {
		return false, err
	}
	return true, nil
}

// checkUnused refuses to delete what others would be left without.
func (t *tx) checkUnused(e store.Entity) error {
	var users int
	var err error
	switch e.Kind {
	case store.KindOrganization:
		err = t.row(`SELECT (SELECT count(*) FROM entities WHERE organization_id = ?1 AND organization_id <> '')
			+ (SELECT count(*) FROM keys WHERE organization_id = ?1 AND organization_id <> '')`, e.ID).Scan(&users)
	case store.KindTemplate:
		err = t.row(`SELECT (SELECT count(*) FROM entities WHERE json_extract(settings, '$.budget_id') = ?1)
			+ (SELECT count(*) FROM keys WHERE json_extract(settings, '$.budget_id') = ?1)`, e.ID).Scan(&users)
	}
	if err == nil && users > 0 {
		err = fmt.Errorf("cannot delete %.60q: %d others belong to it: %w", e.Name(), users, store.ErrInUse)
	}
	return err
}

// keysWith lists the keys that are deleted with the entity.
func (t *tx) keysWith(e store.Entity) ([]string, error) {
	switch e.Kind {
	case store.KindTeam:
		return t.names(`SELECT id FROM keys WHERE team_id = ? AND team_id <> ''`, e.ID)
	case store.KindUser:
		return t.names(`SELECT id FROM keys WHERE user_id = ? AND user_id <> ''`, e.ID)
	case store.KindMember:
		return t.names(`SELECT id FROM keys WHERE team_id = ? AND team_id <> '' AND user_id = ?`, e.TeamID, e.ID)
	}
	return nil, nil
}

// removeEntity deletes one row and ends its budgets.
func (t *tx) removeEntity(e store.Entity, by string) error {
	if err := t.exec(`UPDATE budgets SET current = 0, until_ts = ? WHERE current AND entity = ?`, micros(t.now), e.Name()); err != nil {
		return err
	}
	if err := t.exec(`DELETE FROM entities WHERE name = ?`, e.Name()); err != nil {
		return err
	}
	return t.entityChanged(e.Name(), by, "delete", &e, nil)
}
