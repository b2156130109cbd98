package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/penstock-gateway/penstock/internal/store"
)

// info shows one key: any to the master key, its own to a key.
func (a *api) info(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	warnUnused(w, r, "key")
	given := r.URL.Query().Get("key")
	switch {
	case given == "" && who.key.ID == "":
		return nil, badField("key", "is required: the master key is not stored and has no row")
	case given == "":
		given = who.key.ID
	}
	id, err := a.canonical(r.Context(), resolve(given))
	if err != nil {
		return nil, err
	}
	key := who.key
	if id != key.ID {
		if key, err = a.otherKey(r.Context(), who, id); err != nil {
			return nil, err
		}
	}
	view, err := viewKey(&key)
	if err != nil {
		return nil, err
	}
	return map[string]any{"key": given, "info": view}, nil
}

// otherKey reads a key that is not the caller's own.
func (a *api) otherKey(ctx context.Context, who caller, id string) (store.Key, error) {
	key, err := a.store.Key(ctx, id)
	if who.master || who.viewer {
		return key, err
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return key, err
	}
	if err != nil || key.TeamID == "" || a.mayManage(ctx, who, key.TeamID) != nil {
		return key, &apiError{status: http.StatusForbidden, kind: "auth_error", msg: "a key may only read itself", param: "key"}
	}
	return key, nil
}

// list pages through keys, newest first: all to an administrator, a team's to its admin.
func (a *api) list(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	if team := r.URL.Query().Get("team_id"); !who.viewer {
		if err := a.mayManage(r.Context(), who, team); err != nil {
			return nil, err
		}
	}
	warnUnused(w, r, "page", "size", "user_id", "team_id", "organization_id", "key_hash", "key_alias", "return_full_object")
	q := r.URL.Query()
	page, err := number(q, "page", 1, 1_000_000)
	if err != nil {
		return nil, err
	}
	size, err := number(q, "size", 10, 1000)
	if err != nil {
		return nil, err
	}
	full, err := boolean(q, "return_full_object", "false")
	if err != nil {
		return nil, err
	}
	found, err := a.store.ListKeys(r.Context(), store.KeyFilter{
		UserID:         q.Get("user_id"),
		TeamID:         q.Get("team_id"),
		OrganizationID: q.Get("organization_id"),
		ID:             hashFilter(q.Get("key_hash")),
		Alias:          q.Get("key_alias"),
		Page:           page,
		Size:           size,
	})
	if err != nil {
		return nil, err
	}
	keys, err := listed(found.Keys, full)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"keys":         keys,
		"total_count":  found.Total,
		"current_page": page,
		"total_pages":  (found.Total + size - 1) / size,
	}, nil
}

func listed(keys []store.Key, full bool) ([]any, error) {
	out := make([]any, 0, len(keys))
	for i := range keys {
		if !full {
			out = append(out, keys[i].ID)
			continue
		}
		view, err := viewKey(&keys[i])
		if err != nil {
			return nil, fmt.Errorf("cannot show key %s: %w", keys[i].ID, err)
		}
		out = append(out, view)
	}
	return out, nil
}

// hashFilter is resolve for a filter, in which nothing matches everything.
func hashFilter(s string) string {
	if s == "" {
		return ""
	}
	return resolve(s)
}

// number reads a query parameter from 1 to most.
func number(q url.Values, name string, fallback, most int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, badField(name, "must be a whole number from 1 to %d", most)
	}
	return n, nil
}

func boolean(q url.Values, name, fallback string) (bool, error) {
	text := q.Get(name)
	if text == "" {
		text = fallback
	}
	b, err := strconv.ParseBool(strings.ToLower(text))
	if err != nil {
		return false, badField(name, "must be true or false")
	}
	return b, nil
}
