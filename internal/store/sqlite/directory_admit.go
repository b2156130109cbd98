package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// Admit implements store.Directory.
func (s *Store) Admit(ctx context.Context, secret string) (store.Admission, error) {
	var a store.Admission
	var id string
	var until sql.NullInt64
	err := s.read.QueryRowContext(ctx, `SELECT key_id, until FROM key_secrets WHERE hash = ?1 AND (until IS NULL OR until > ?2)
		UNION ALL SELECT id, secret_until FROM keys WHERE id = ?1 AND (secret_until IS NULL OR secret_until > ?2) LIMIT 1`,
		secret, micros(time.Now())).Scan(&id, &until)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return a, failure("find the key of a secret", err)
	}
	if a.Key, err = s.Key(ctx, id); err != nil {
		return a, err
	}
	a.Key.ExpireBy(timeOf(until))
	rows, err := s.behind(ctx, a.Key.Behind(), a.Key.TeamID)
	if err != nil {
		return a, failure("admit key", err)
	}
	a.Fill(rows)
	return a, nil
}

// behind reads what stands behind names, and behind the organization of a team: one
// row for each of their budgets, and one for those that have none.
func (s *Store) behind(ctx context.Context, names []string, team string) ([]store.Standing, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT n.name, e.kind, e.id, e.team_id, e.organization_id, e.settings, e.models, e.blocked, b.win, b.limit_n
		FROM (SELECT value AS name FROM json_each(?1) UNION SELECT 'org:' || organization_id FROM entities WHERE name = 'team:' || ?2 AND organization_id <> '') n
		LEFT JOIN entities e ON e.name = n.name LEFT JOIN budgets b ON b.entity = n.name AND b.current ORDER BY n.name, b.win`, text(names), team)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []store.Standing
	for rows.Next() {
		s, err := scanStanding(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

func scanStanding(rows *sql.Rows) (store.Standing, error) {
	var s store.Standing
	var kind, id, team, organization, settings, models, win sql.NullString
	var blocked sql.NullBool
	if err := rows.Scan(&s.Name, &kind, &id, &team, &organization, &settings, &models, &blocked, &win, &s.Limit); err != nil {
		return s, err
	}
	s.Budgeted, s.Win = win.Valid, win.String
	if !kind.Valid {
		return s, nil
	}
	s.Found = true
	s.Entity = store.Entity{
		Kind: store.Kind(kind.String), ID: id.String, TeamID: team.String, OrganizationID: organization.String,
		SettingsJSON: settings.String, Blocked: blocked.Bool,
	}
	return s, json.Unmarshal([]byte(models.String), &s.Entity.Models)
}

// Subjects implements store.Directory.
func (s *Store) Subjects(ctx context.Context, names []string) ([]store.Subject, error) {
	storable := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !store.Storable(n) })
	rows, err := s.behind(ctx, storable, "")
	if err != nil {
		return nil, failure("read subjects", err)
	}
	return store.SubjectsOf(names, rows), nil
}

// Dependents implements store.Directory.
func (s *Store) Dependents(ctx context.Context, names []string, most int) (store.Dependents, error) {
	if slices.Contains(names, store.GlobalEntity) {
		return store.Dependents{TooMany: true}, nil // every key depends on it
	}
	found := store.SortNames(names)
	var d store.Dependents
	var err error
	if d.Subjects, err = s.listNames(ctx, `SELECT name FROM entities WHERE json_extract(settings, '$.budget_id') IN (SELECT value FROM json_each(?)) LIMIT ?`,
		list(found.Templates), most+1); err != nil {
		return d, err
	}
	found = store.SortNames(slices.Concat(names, d.Subjects))
	members := make([][2]string, len(found.MemberTeams))
	for i := range members {
		members[i] = [2]string{found.MemberTeams[i], found.MemberUsers[i]}
	}
	d.Secrets, err = s.listNames(ctx, `WITH hit AS (
			SELECT id FROM keys WHERE id IN (SELECT value FROM json_each(?1))
			UNION SELECT id FROM keys WHERE team_id <> '' AND team_id IN (SELECT value FROM json_each(?2))
			UNION SELECT id FROM keys WHERE user_id <> '' AND user_id IN (SELECT value FROM json_each(?3))
			UNION SELECT k.id FROM keys k JOIN json_each(?4) m ON k.team_id = m.value ->> 0 AND k.user_id = m.value ->> 1 WHERE k.team_id <> ''
			UNION SELECT id FROM keys WHERE organization_id <> '' AND organization_id IN (SELECT value FROM json_each(?5))
			UNION SELECT k.id FROM keys k JOIN entities e ON e.name = 'team:' || k.team_id WHERE e.organization_id <> '' AND e.organization_id IN (SELECT value FROM json_each(?5))
			UNION SELECT id FROM keys WHERE json_extract(settings, '$.budget_id') IN (SELECT value FROM json_each(?6))
			LIMIT ?7)
		SELECT id FROM hit UNION SELECT s.hash FROM key_secrets s JOIN hit h ON s.key_id = h.id UNION SELECT value FROM json_each(?1)`,
		list(found.Keys), list(found.Teams), list(found.Users), text(members), list(found.Organizations), list(found.Templates), most+1)
	if err != nil || len(d.Secrets)+len(d.Subjects) > most {
		return store.Dependents{TooMany: true}, err
	}
	return d, nil
}

// list is a list of texts as JSON, never null.
func list(names []string) string { return text(append([]string{}, names...)) }

func (s *Store) listNames(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, failure("read dependents", err)
	}
	out, err := collect(rows, func(s *string) []any { return []any{s} })
	return out, failure("read dependents", err)
}

// RotateKey implements store.Directory.
func (s *Store) RotateKey(ctx context.Context, r store.Rotation) (store.Key, error) {
	var after store.Key
	err := s.tx(ctx, "rotate key", func(tx *tx) (err error) {
		after, err = tx.rotate(r)
		return err
	})
	return after, err
}

func (t *tx) rotate(r store.Rotation) (store.Key, error) {
	before, err := t.key(r.ID)
	if err != nil {
		return before, err
	}
	if err := t.checkSecret(r.Secret); err != nil {
		return before, err
	}
	if err := t.secretsChanged(r.ID); err != nil {
		return before, err
	}
	until := t.now.Add(r.Grace)
	// Of the old secrets only the newest goes on, so that a key never has many.
	if err := t.exec(`DELETE FROM key_secrets WHERE key_id = ? AND until IS NOT NULL`, r.ID); err != nil {
		return before, err
	}
	if err := t.exec(`UPDATE key_secrets SET until = ? WHERE key_id = ?`, micros(until), r.ID); err != nil {
		return before, err
	}
	if err := t.exec(`UPDATE keys SET name = ?2, updated_by = ?3, updated_at = ?4, version = version + 1,
		secret_until = CASE WHEN secret_until IS NULL THEN ?5 ELSE min(secret_until, ?4) END WHERE id = ?1`,
		r.ID, r.Name, store.CleanText(r.By), micros(t.now), micros(until)); err != nil {
		return before, err
	}
	if err := t.exec(`INSERT INTO key_secrets (hash, key_id) VALUES (?, ?)`, r.Secret, r.ID); err != nil {
		return before, err
	}
	after, err := t.key(r.ID)
	if err != nil {
		return before, err
	}
	return after, t.changed(r.ID, r.By, "regenerate", &before, &after)
}

// secretsChanged tells pollers of the secrets of a key beside its id.
func (t *tx) secretsChanged(id string) error {
	return t.exec(`INSERT INTO changes (key_id, at) SELECT hash, ? FROM key_secrets WHERE key_id = ?`, micros(t.now), id)
}

// checkSecret refuses a secret that opens, or ever opened, another key.
func (t *tx) checkSecret(hash string) error {
	var taken bool
	err := t.row(`SELECT EXISTS (SELECT 1 FROM keys WHERE id = ?1) OR EXISTS (SELECT 1 FROM key_secrets WHERE hash = ?1)`, hash).Scan(&taken)
	if err == nil && taken {
		return store.ErrConflict
	}
	return err
}
