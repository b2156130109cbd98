package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/penstock-gateway/penstock/internal/store"
)

// maxDelete bounds the keys of one call.
const maxDelete = 1000

// delete deletes by key, hash or alias. The answer names what was deleted as the
// caller named it.
func (a *api) delete(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	by, err := changedBy(r)
	if err != nil {
		return nil, err
	}
	obj, err := readObject(w, r)
	if err != nil {
		return nil, err
	}
	names, err := a.readDelete(r.Context(), obj)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(names))
	for _, n := range names {
		if err := a.mayChangeKey(r.Context(), who, n.id); err != nil {
			return nil, err
		}
		ids = append(ids, n.id)
	}
	gone, err := a.store.DeleteKeys(r.Context(), ids, by)
	if err != nil {
		return nil, err
	}
	deleted, missing := split(names, gone)
	if len(deleted) == 0 {
		return nil, notFound("no such key")
	}
	a.log.Info("keys deleted", "key_ids", gone, "by", by)
	return map[string]any{"deleted_keys": deleted, "missing_keys": missing}, nil
}

// namedID is a key as the caller named it, with its id; empty: there is none.
type namedID struct{ given, id string }

func (a *api) readDelete(ctx context.Context, obj object) ([]namedID, error) {
	f := newFieldReader(obj)
	keys, aliases := f.texts("keys"), f.texts("key_aliases")
	if f.err != nil {
		return nil, f.err
	}
	var names []namedID
	if keys != nil && len(*keys) <= maxDelete {
		for _, k := range *keys {
			id := resolve(k)
			if strings.HasPrefix(k, keyPrefix) {
				var err error
				if id, err = a.canonical(ctx, id); err != nil {
					return nil, err
				}
			}
			names = append(names, namedID{k, id})
		}
	}
	if aliases != nil && len(names)+len(*aliases) <= maxDelete {
		for _, alias := range *aliases {
			id, err := a.store.KeyByAlias(ctx, alias)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			names = append(names, namedID{alias, id})
		}
	} else if aliases != nil {
		return nil, badField("key_aliases", "must not name more than %d keys", maxDelete)
	}
	if len(names) == 0 || len(names) > maxDelete {
		return nil, badField("keys", "must name 1 to %d keys", maxDelete)
	}
	return names, nil
}

func split(names []namedID, gone []string) (deleted, missing []string) {
	was := make(map[string]bool, len(gone))
	for _, id := range gone {
		was[id] = true
	}
	deleted, missing = []string{}, []string{}
	for _, n := range names {
		if was[n.id] {
			deleted = append(deleted, n.given)
		} else {
			missing = append(missing, n.given)
		}
	}
	return deleted, missing
}
