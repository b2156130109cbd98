package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// keyPrefix starts every virtual key.
const keyPrefix = "sk-"

// Bounds of a key that a caller chooses. It travels in a header.
const (
	minKey = 16
	maxKey = 256
)

// generate makes a key. The key itself is in the answer and nowhere else.
func (a *api) generate(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	by, err := changedBy(r)
	if err != nil {
		return nil, err
	}
	obj, err := readObject(w, r)
	if err != nil {
		return nil, err
	}
	secret, want, err := parseGenerate(obj, time.Now())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(secret))
	if sum == a.master {
		return nil, badField("key", "must not be the master key")
	}
	if err := a.mayMakeKey(r.Context(), who, want.patch, ""); err != nil {
		return nil, err
	}
	key, err := a.createKey(r.Context(), newKey(secret, want, by), want.patch.Spend)
	if err != nil {
		return nil, err
	}
	warnings := want.notes(&key)
	a.logChange("key created", key, by, warnings)
	answer, err := viewKey(&key)
	if err != nil {
		return nil, err
	}
	answer["key"] = secret
	answer["warnings"] = notNil(warnings)
	return answer, nil
}

// parseGenerate reads the body of /key/generate. It makes a key where none is given.
func parseGenerate(obj object, now time.Time) (secret string, want change, err error) {
	f := newFieldReader(obj)
	if given := f.text("key"); given != nil && *given != "" {
		secret = *given
		if err := checkSecret(secret); err != nil {
			return "", change{}, err
		}
	}
	want, err = readChange(f, now)
	if err != nil || secret != "" {
		return secret, want, err
	}
	return newSecret(), want, nil
}

func checkSecret(key string) error {
	switch {
	case !strings.HasPrefix(key, keyPrefix):
		return badField("key", "must start with %s", keyPrefix)
	case len(key) < minKey || len(key) > maxKey:
		return badField("key", "must have %d to %d characters", minKey, maxKey)
	case strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		return badField("key", "must be printable ASCII without spaces")
	}
	return nil
}

func newKey(secret string, want change, by string) store.Key {
	k := store.Key{
		ID:           keyID(secret),
		Name:         shortName(secret),
		MetadataJSON: "{}",
		CreatedBy:    by,
	}
	want.patch.UpdatedBy, want.patch.Settings = by, want.settings
	want.patch.Apply(&k)
	return k
}

// createKey stores a key, with its spend where one is given. A key whose spend could
// not be set is taken back: it would have more money than was asked for.
func (a *api) createKey(ctx context.Context, k store.Key, spend *int64) (store.Key, error) {
	if err := a.store.CreateKey(ctx, k); err != nil {
		return k, a.conflict(ctx, err, k.Alias, "key")
	}
	if spend == nil {
		return a.store.Key(ctx, k.ID)
	}
	stored, err := a.store.UpdateKey(ctx, k.ID, store.KeyPatch{Spend: spend, UpdatedBy: k.UpdatedBy})
	if err != nil {
		if _, delErr := a.store.DeleteKeys(context.WithoutCancel(ctx), []string{k.ID}, k.CreatedBy); delErr != nil {
			a.log.Error("cannot take back a key whose spend could not be set", "key_id", k.ID, "error", delErr)
		}
	}
	return stored, err
}

// conflict names the field whose value is taken.
func (a *api) conflict(ctx context.Context, err error, alias, other string) error {
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	if alias != "" {
		if _, err := a.store.KeyByAlias(ctx, alias); err == nil {
			return badField("key_alias", "is taken by another key")
		}
	}
	return badField(other, "exists already")
}

// logChange writes a change down. The key itself is not in it, and a body full of
// unknown fields does not fill the log.
func (a *api) logChange(what string, k store.Key, by string, warnings []string) {
	const most = 20
	a.log.Info(what, "key_id", k.ID, "key_alias", k.Alias, "by", by)
	if len(warnings) > 0 {
		a.log.Warn("fields of an admin call have no effect", "key_id", k.ID,
			"count", len(warnings), "fields", warnings[:min(len(warnings), most)])
	}
}

// keyID is how a key is known: the lower-case hex of its SHA-256.
func keyID(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
