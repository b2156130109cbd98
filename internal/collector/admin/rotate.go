package admin

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// maxGrace bounds how long an old secret goes on.
const maxGrace = 366 * 24 * time.Hour

// keyOfPath is the key in /key/<key>/<call>; "" where the path has none.
func keyOfPath(path, call string) string {
	rest, ok := strings.CutPrefix(path, "/key/")
	if !ok {
		return ""
	}
	key, ok := strings.CutSuffix(strings.TrimRight(rest, "/"), "/"+call)
	if !ok {
		return ""
	}
	return key
}

// regenerate gives a key a new secret, with new fields where the body has some. The old
// secret goes on for grace_period. The key's id (token), spend and budgets stay.
func (a *api) regenerate(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	id, err := a.pathKey(r, f, "regenerate")
	if err != nil {
		return nil, err
	}
	secret, grace := given(f.text("new_key")), f.grace("grace_period")
	want, err := readChange(f, time.Now())
	if err != nil {
		return nil, err
	}
	if secret == "" {
		secret = newSecret()
	} else if err := checkSecret(secret); err != nil {
		return nil, err
	}
	if sha256.Sum256([]byte(secret)) == a.master {
		return nil, badField("new_key", "must not be the master key")
	}
	if err := a.maySetKey(r, who, id, want); err != nil {
		return nil, err
	}
	if asksMore(f.obj.names) {
		if _, err := a.applyChange(r.Context(), id, want, by); err != nil {
			return nil, err
		}
	}
	key, err := a.store.RotateKey(r.Context(), store.Rotation{ID: id, Secret: keyID(secret), Name: shortName(secret), Grace: grace, By: by})
	if errors.Is(err, store.ErrConflict) {
		return nil, badField("new_key", "exists already")
	} else if err != nil {
		return nil, err
	}
	warnings := want.notes(&key)
	a.logChange("key regenerated", key, by, warnings)
	answer, err := viewKey(&key)
	if err != nil {
		return nil, err
	}
	answer["key"], answer["warnings"] = secret, notNil(warnings)
	return answer, nil
}

// asksMore says whether a body has more than what the new secret needs.
func asksMore(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n != "key" && n != "new_key" && n != "grace_period" })
}

func (a *api) maySetKey(r *http.Request, who caller, id string, want change) error {
	if err := a.mayChangeKey(r.Context(), who, id); err != nil || who.master {
		return err
	}
	key, err := a.store.Key(r.Context(), id)
	if err != nil {
		return err
	}
	return a.mayMakeKey(r.Context(), who, want.patch, key.TeamID)
}

func shortName(secret string) string { return keyPrefix + "..." + secret[len(secret)-4:] }

// pathKey is the key that the path or the body names.
func (a *api) pathKey(r *http.Request, f *fieldReader, call string) (string, error) {
	named := keyOfPath(r.URL.Path, call)
	body := given(f.text("key"))
	switch {
	case f.err != nil:
		return "", f.err
	case named == "" && body == "":
		return "", badField("key", "is required")
	case named != "" && body != "" && resolve(named) != resolve(body):
		return "", badField("key", "is another one than the path's")
	case named == "":
		named = body
	}
	return a.canonical(r.Context(), resolve(named))
}

// grace reads a period from now on; "" and null: none.
func (f *fieldReader) grace(name string) time.Duration {
	s := f.period(name)
	if s == nil || *s == "" {
		return 0
	}
	now := time.Now()
	end, err := store.PeriodEnd(*s, now, now)
	if err != nil || end.Sub(now) > maxGrace {
		f.fail(badField(name, "must be at most 366d"))
		return 0
	}
	return end.Sub(now)
}

// resetSpend sets a key's spend: POST /key/<key>/reset_spend {"reset_to": 0}. 0 starts
// all its budgets anew.
func (a *api) resetSpend(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	id, err := a.pathKey(r, f, "reset_spend")
	if err != nil {
		return nil, err
	}
	to, err := f.resetTo()
	if err != nil {
		return nil, err
	}
	if err := a.mayChangeKey(r.Context(), who, id); err != nil {
		return nil, err
	}
	key, err := a.store.UpdateKey(r.Context(), id, store.KeyPatch{Spend: &to, UpdatedBy: by})
	if err != nil {
		return nil, err
	}
	a.logChange("spend of a key set", key, by, nil)
	return viewKey(&key)
}
