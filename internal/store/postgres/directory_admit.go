package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
)

// openedBy is the id of the key that a secret opens, and until when.
const openedBy = `(SELECT s.key_id AS id, s.until FROM key_secrets s WHERE s.hash = $1 AND (s.until IS NULL OR s.until > clock_timestamp())
	UNION ALL SELECT k.id, k.secret_until FROM keys k WHERE k.id = $1 AND (k.secret_until IS NULL OR k.secret_until > clock_timestamp()))`

// Admit implements store.Directory.
func (s *Store) Admit(ctx context.Context, secret string) (store.Admission, error) {
	var a store.Admission
	err := s.read(ctx, "admit key", func(t *tx) (err error) {
		a, err = t.admit(secret)
		return err
	})
	return a, err
}

func (t *tx) admit(secret string) (store.Admission, error) {
	var a store.Admission
	if !store.Storable(secret) {
		return a, store.ErrNotFound
	}
	var until *time.Time
	var b pgx.Batch
	b.Queue(`SELECT o.until FROM `+openedBy+` o LIMIT 1`, secret).QueryRow(func(r pgx.Row) error { return r.Scan(&until) })
	b.Queue(keySelect+` WHERE k.id = (SELECT o.id FROM `+openedBy+` o LIMIT 1)`, secret).Query(func(rows pgx.Rows) (err error) {
		a.Key, err = pgx.CollectExactlyOneRow(rows, scanKey)
		return err
	})
	if err := t.send(&b); err != nil {
		return a, err
	}
	a.Key.ExpireBy(timeOf(until))
	rows, err := t.behind(a.Key.Behind(), a.Key.TeamID)
	if err != nil {
		return a, err
	}
	a.Fill(rows)
	return a, nil
}

// behind reads what stands behind names, and behind the organization of a team: one
// row for each of their budgets, and one for those that have none.
func (t *tx) behind(names []string, team string) ([]store.Standing, error) {
	return query(t, func(row pgx.CollectableRow) (store.Standing, error) {
		var s store.Standing
		var kind, id, team, organization, settings, win *string
		var blocked *bool
		err := row.Scan(&s.Name, &kind, &id, &team, &organization, &settings, &s.Entity.Models, &blocked, &win, &s.Limit)
		if kind != nil {
			s.Found = true
			s.Entity.Kind, s.Entity.ID, s.Entity.TeamID, s.Entity.OrganizationID = store.Kind(*kind), *id, *team, *organization
			s.Entity.SettingsJSON, s.Entity.Blocked = *settings, *blocked
		}
		if win != nil {
			s.Budgeted, s.Win = true, *win
		}
		return s, err
	}, `SELECT n.name, e.kind, e.id, e.team_id, e.organization_id, e.settings::text, e.models, e.blocked, b.win, b.limit_n
		FROM (SELECT unnest($1::text[]) AS name UNION SELECT 'org:' || organization_id FROM entities WHERE name = 'team:' || $2::text AND organization_id <> '') n
		LEFT JOIN entities e ON e.name = n.name LEFT JOIN budgets b ON b.entity = n.name AND b.current ORDER BY n.name, b.win`, names, team)
}

// Subjects implements store.Directory.
func (s *Store) Subjects(ctx context.Context, names []string) ([]store.Subject, error) {
	var rows []store.Standing
	err := s.read(ctx, "read subjects", func(t *tx) (err error) {
		rows, err = t.behind(storable(names), "")
		return err
	})
	return store.SubjectsOf(names, rows), err
}

// Dependents implements store.Directory.
func (s *Store) Dependents(ctx context.Context, names []string, most int) (store.Dependents, error) {
	if slices.Contains(names, store.GlobalEntity) {
		return store.Dependents{TooMany: true}, nil // every key depends on it
	}
	names = storable(names)
	var d store.Dependents
	err := s.read(ctx, "read dependents", func(t *tx) (err error) {
		if d.Subjects, err = query(t, pgx.RowTo[string], fmt.Sprintf(`SELECT e.name FROM entities e JOIN unnest($1::text[]) n (name)
			ON e.settings ? 'budget_id' AND 'budget:' || (e.settings ->> 'budget_id') = n.name LIMIT %d`, most+1), names); err != nil {
			return err
		}
		d.Secrets, err = t.secretsOf(slices.Concat(names, d.Subjects), most)
		return err
	})
	if err != nil || len(d.Secrets)+len(d.Subjects) > most {
		return store.Dependents{TooMany: true}, err
	}
	return d, nil
}

// secretsOf lists secrets of keys and of the keys of entities, a few more than most
// where there are more.
func (t *tx) secretsOf(names []string, most int) ([]string, error) {
	found := store.SortNames(names)
	return query(t, pgx.RowTo[string], fmt.Sprintf(`WITH hit AS MATERIALIZED (
			(SELECT id FROM keys WHERE id = ANY($1::text[]))
			UNION (SELECT id FROM keys WHERE team_id <> '' AND team_id = ANY($2::text[]) LIMIT %[1]d)
			UNION (SELECT id FROM keys WHERE user_id <> '' AND user_id = ANY($3::text[]) LIMIT %[1]d)
			UNION (SELECT k.id FROM keys k JOIN unnest($4::text[], $5::text[]) m (team, usr) ON k.team_id = m.team AND k.user_id = m.usr AND k.team_id <> '' LIMIT %[1]d)
			UNION (SELECT id FROM keys WHERE organization_id <> '' AND organization_id = ANY($6::text[]) LIMIT %[1]d)
			UNION (SELECT k.id FROM keys k JOIN entities e ON e.name = 'team:' || k.team_id AND e.organization_id <> '' WHERE e.organization_id = ANY($6::text[]) LIMIT %[1]d)
			UNION (SELECT id FROM keys WHERE settings ? 'budget_id' AND settings ->> 'budget_id' = ANY($7::text[]) LIMIT %[1]d))
		SELECT id FROM hit UNION SELECT s.hash FROM key_secrets s JOIN hit h ON s.key_id = h.id UNION SELECT unnest($1::text[])`, most+1),
		found.Keys, found.Teams, found.Users, found.MemberTeams, found.MemberUsers, found.Organizations, found.Templates)
}

// RotateKey implements store.Directory.
func (s *Store) RotateKey(ctx context.Context, r store.Rotation) (store.Key, error) {
	var after store.Key
	err := s.tx(ctx, "rotate key", func(t *tx) (err error) {
		after, err = t.rotate(r)
		return err
	})
	return after, err
}

func (t *tx) rotate(r store.Rotation) (store.Key, error) {
	before, err := t.lockKey(r.ID)
	if err != nil {
		return before, err
	}
	if err := t.checkSecret(r.Secret); err != nil {
		return before, err
	}
	if err := t.secretsChanged([]string{r.ID}); err != nil {
		return before, err
	}
	grace := r.Grace.Seconds()
	// Of the old secrets only the newest goes on, so that a key never has many.
	if err := t.exec(`DELETE FROM key_secrets WHERE key_id = $1 AND until IS NOT NULL`, r.ID); err != nil {
		return before, err
	}
	if err := t.exec(`UPDATE key_secrets SET until = clock_timestamp() + make_interval(secs => $2::float8) WHERE key_id = $1`, r.ID, grace); err != nil {
		return before, err
	}
	if err := t.exec(`UPDATE keys SET name = $2, updated_by = $3, updated_at = clock_timestamp(), version = version + 1,
		secret_until = CASE WHEN secret_until IS NULL THEN clock_timestamp() + make_interval(secs => $4::float8) ELSE least(secret_until, clock_timestamp()) END
		WHERE id = $1`, r.ID, r.Name, store.CleanText(r.By), grace); err != nil {
		return before, err
	}
	if err := t.exec(`INSERT INTO key_secrets (hash, key_id) VALUES ($1, $2)`, r.Secret, r.ID); err != nil {
		return before, err
	}
	after, err := t.key(r.ID)
	if err != nil {
		return before, err
	}
	return after, t.changed(r.ID, r.By, "regenerate", &before, &after)
}

// lockKey locks a key's row and then reads it.
func (t *tx) lockKey(id string) (store.Key, error) {
	if store.Storable(id) {
		if err := t.exec(`SELECT FROM keys WHERE id = $1 FOR UPDATE`, id); err != nil {
			return store.Key{}, err
		}
	}
	return t.key(id)
}

// secretsChanged tells pollers of the secrets of keys beside their ids.
func (t *tx) secretsChanged(ids []string) error {
	return t.exec(`INSERT INTO changes (key_id) SELECT hash FROM key_secrets WHERE key_id = ANY($1::text[])`, ids)
}

// checkSecret refuses a secret that opens, or ever opened, another key.
func (t *tx) checkSecret(hash string) error {
	var taken bool
	err := t.row(`SELECT EXISTS (SELECT FROM keys WHERE id = $1) OR EXISTS (SELECT FROM key_secrets WHERE hash = $1)`, hash).Scan(&taken)
	if err == nil && taken {
		return store.ErrConflict
	}
	return err
}
