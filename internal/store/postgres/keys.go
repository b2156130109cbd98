package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// keySelect reads a key with what its reported spend is made from. One statement
// is one snapshot: a lease that closes meanwhile is seen on one side only.
const keySelect = `SELECT k.id, k.name, k.alias, k.user_id, k.team_id, k.organization_id, k.models, k.aliases::text, k.blocked, k.expires,
	k.max_budget, k.budget_duration, k.tags, k.metadata::text, k.settings::text, k.created_by, k.created_at, k.updated_by, k.updated_at, k.version,
	CASE WHEN b.id IS NULL THEN k.spend_offset + (SELECT coalesce(sum(d.cost), 0)::bigint FROM spend_daily d WHERE d.key_id = k.id) ELSE 0 END,
	b.id, b.spent, b.anchor_ts, b.until_ts, b.duration,
	(SELECT coalesce(sum(l.spent), 0)::bigint FROM leases l WHERE l.budget = b.id AND l.state = 'open'), clock_timestamp()
	FROM keys k LEFT JOIN budgets b ON b.entity = 'key:' || k.id AND b.win = '' AND b.current`

func scanKey(row pgx.CollectableRow) (store.Key, error) {
	var k store.Key
	var aliases string
	var expires, anchor, until *time.Time
	var budget, spent *int64
	var duration *string
	var total, open int64
	var now time.Time
	if err := row.Scan(&k.ID, &k.Name, &k.Alias, &k.UserID, &k.TeamID, &k.OrganizationID, &k.Models, &aliases, &k.Blocked, &expires,
		&k.MaxBudget, &k.BudgetDuration, &k.Tags, &k.MetadataJSON, &k.SettingsJSON, &k.CreatedBy, &k.CreatedAt, &k.UpdatedBy, &k.UpdatedAt, &k.Version,
		&total, &budget, &spent, &anchor, &until, &duration, &open, &now); err != nil {
		return k, err
	}
	k.Expires, k.CreatedAt, k.UpdatedAt = timeOf(expires), k.CreatedAt.UTC(), k.UpdatedAt.UTC()
	var b *store.BudgetRow
	if budget != nil {
		b = &store.BudgetRow{Budget: ledger.Budget{ID: *budget, Spent: *spent, OpenSpent: open, Until: timeOf(until)}, Anchor: timeOf(anchor), Duration: *duration}
	}
	return k, errors.Join(json.Unmarshal([]byte(aliases), &k.Aliases), k.SettleSpend(b, total, now))
}

func (t *tx) key(id string) (store.Key, error) {
	if !store.Storable(id) {
		return store.Key{}, store.ErrNotFound
	}
	found, err := query(t, scanKey, keySelect+` WHERE k.id = $1`, id)
	if err != nil {
		return store.Key{}, err
	}
	if len(found) == 0 {
		return store.Key{}, store.ErrNotFound
	}
	return found[0], nil
}

// Key implements store.Keys.
func (s *Store) Key(ctx context.Context, id string) (store.Key, error) {
	var k store.Key
	err := s.read(ctx, "read key", func(t *tx) (err error) {
		k, err = t.key(id)
		return err
	})
	return k, err
}

// KeyByAlias implements store.Keys.
func (s *Store) KeyByAlias(ctx context.Context, alias string) (string, error) {
	var id string
	err := s.read(ctx, "find alias", func(t *tx) error {
		if !store.Storable(alias) {
			return store.ErrNotFound
		}
		return t.row(`SELECT id FROM keys WHERE alias = $1 AND alias <> ''`, alias).Scan(&id)
	})
	return id, err
}

// ListKeys implements store.Keys.
func (s *Store) ListKeys(ctx context.Context, f store.KeyFilter) (store.KeyPage, error) {
	w := &where{}
	w.equal("k.user_id", f.UserID)
	w.equal("k.team_id", f.TeamID)
	w.equal("k.organization_id", f.OrganizationID)
	w.equal("k.id", f.ID)
	w.equal("k.alias", f.Alias)
	limit, offset := f.Window()
	var page store.KeyPage
	err := s.tx(ctx, "list keys", func(t *tx) (err error) {
		if err := t.row(`SELECT count(*) FROM keys k`+w.String(), w.args...).Scan(&page.Total); err != nil {
			return err
		}
		page.Keys, err = query(t, scanKey, fmt.Sprintf(`%s%s ORDER BY k.created_at DESC, k.id DESC LIMIT %d OFFSET %d`, keySelect, w, limit, offset), w.args...)
		return err
	})
	return page, err
}

// mostChanges bounds one answer of Changes.
const mostChanges = 1000

// Changes implements store.Keys. A position is a transaction's number: all
// transactions below the snapshot's xmin have ended, so none can appear behind it.
func (s *Store) Changes(ctx context.Context, after int64) ([]string, int64, error) {
	var ids []string
	var position int64
	err := s.read(ctx, "read changes", func(t *tx) (err error) {
		ids, position, err = t.changes(after)
		return err
	})
	if err != nil {
		return nil, after, err
	}
	return ids, position, nil
}

// change is one row of changes: a key and the transaction that changed it.
type change struct {
	key  string
	txid int64
}

func (t *tx) changes(after int64) ([]string, int64, error) {
	var rows []change
	var horizon int64
	if after < 0 {
		err := t.row(`SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1`).Scan(&horizon)
		return nil, horizon, err
	}
	found, err := t.Query(t.ctx, `WITH h AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS x)
		SELECT h.x::text::bigint - 1, c.key_id, c.txid::text::bigint FROM h
		LEFT JOIN changes c ON c.txid > $1::text::xid8 AND c.txid < h.x ORDER BY c.txid, c.position LIMIT $2`, fmt.Sprint(after), mostChanges)
	if err != nil {
		return nil, after, err
	}
	var key *string
	var txid *int64
	if _, err := pgx.ForEachRow(found, []any{&horizon, &key, &txid}, func() error {
		if key != nil {
			rows = append(rows, change{*key, *txid})
		}
		return nil
	}); err != nil {
		return nil, after, err
	}
	rows, position := wholeTransactions(rows, horizon)
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.key
	}
	return ids, position, nil
}

// wholeTransactions cuts a full page before its last transaction, which may go
// on beyond it, and returns the position that the rest brings the reader to.
func wholeTransactions(rows []change, horizon int64) ([]change, int64) {
	if len(rows) < mostChanges {
		return rows, horizon
	}
	last := rows[len(rows)-1].txid
	cut := slices.IndexFunc(rows, func(c change) bool { return c.txid == last })
	if cut == 0 { // cannot happen: deleteChunk keeps transactions smaller
		return rows, last
	}
	return rows[:cut], rows[cut-1].txid
}
