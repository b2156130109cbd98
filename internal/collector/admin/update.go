package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// resolve takes a key or its hash for the hash. What is neither names no key.
func resolve(s string) string {
	if strings.HasPrefix(s, keyPrefix) {
		return keyID(s)
	}
	return strings.ToLower(s)
}

// namedKey reads the field that says which key a call is about, and refuses who may not
// change it.
func (a *api) namedKey(ctx context.Context, f *fieldReader, who caller) (string, error) {
	given := f.text("key")
	switch {
	case f.err != nil:
		return "", f.err
	case given == nil || *given == "":
		return "", badField("key", "is required")
	}
	id, err := a.canonical(ctx, resolve(*given))
	if err != nil {
		return "", err
	}
	return id, a.mayChangeKey(ctx, who, id)
}

// update changes the fields that the body names.
func (a *api) update(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	by, err := changedBy(r)
	if err != nil {
		return nil, err
	}
	obj, err := readObject(w, r)
	if err != nil {
		return nil, err
	}
	f := newFieldReader(obj)
	id, err := a.namedKey(r.Context(), f, who)
	if err != nil {
		return nil, err
	}
	want, err := readChange(f, time.Now())
	if err != nil {
		return nil, err
	}
	if err := a.maySetKey(r, who, id, want); err != nil {
		return nil, err
	}
	key, err := a.applyChange(r.Context(), id, want, by)
	if err != nil {
		return nil, err
	}
	warnings := want.notes(&key)
	a.logChange("key updated", key, by, warnings)
	answer, err := viewKey(&key)
	if err != nil {
		return nil, err
	}
	answer["key"] = key.ID
	answer["warnings"] = notNil(warnings)
	return answer, nil
}

func (a *api) applyChange(ctx context.Context, id string, want change, by string) (store.Key, error) {
	patch := want.patch
	patch.UpdatedBy, patch.Settings = by, want.settings
	key, err := a.store.UpdateKey(ctx, id, patch)
	if errors.Is(err, store.ErrConflict) {
		return key, badField("key_alias", "is taken by another key")
	}
	return key, err
}

func (a *api) block(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	return a.setBlocked(w, r, who, true)
}

func (a *api) unblock(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	return a.setBlocked(w, r, who, false)
}

func (a *api) setBlocked(w http.ResponseWriter, r *http.Request, who caller, blocked bool) (any, error) {
	by, err := changedBy(r)
	if err != nil {
		return nil, err
	}
	obj, err := readObject(w, r)
	if err != nil {
		return nil, err
	}
	id, err := a.namedKey(r.Context(), newFieldReader(obj), who)
	if err != nil {
		return nil, err
	}
	key, err := a.store.UpdateKey(r.Context(), id, store.KeyPatch{Blocked: &blocked, UpdatedBy: by})
	if err != nil {
		return nil, err
	}
	a.logChange("key blocked or let go on", key, by, nil)
	return viewKey(&key)
}
