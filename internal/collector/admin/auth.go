package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// caller is who makes a call: the master key, or a virtual key.
type caller struct {
	master bool      // may do everything: the master key, or a key of an administrator
	viewer bool      // may read everything
	key    store.Key // of a virtual key
}

// identify finds out who calls. Keys are compared by their SHA-256 in constant time.
func (a *api) identify(r *http.Request) (caller, error) {
	secret := credential(r.Header)
	if secret == "" {
		return caller{}, unauthorized("auth_error", "no key given: send Authorization: Bearer sk-…")
	}
	sum := sha256.Sum256([]byte(secret))
	if subtle.ConstantTimeCompare(sum[:], a.master[:]) == 1 {
		return caller{master: true}, nil
	}
	if !strings.HasPrefix(secret, keyPrefix) {
		return caller{}, unauthorized("auth_error", "malformed key: keys start with "+keyPrefix)
	}
	key, err := a.virtualKey(r.Context(), hex.EncodeToString(sum[:]))
	if err != nil {
		return caller{}, err
	}
	who := caller{key: key}
	return who, a.roleOf(r.Context(), &who)
}

func (a *api) virtualKey(ctx context.Context, id string) (store.Key, error) {
	found, err := a.store.Admit(ctx, id)
	key := found.Key
	switch {
	case errors.Is(err, store.ErrNotFound):
		return key, unauthorized("token_not_found_in_db", "unknown key")
	case err != nil:
		return key, err
	case key.Blocked:
		return key, unauthorized("auth_error", "the key is blocked")
	case !key.Expires.IsZero() && !key.Expires.After(time.Now()):
		return key, unauthorized("expired_key", "the key has expired")
	}
	return a.store.Key(ctx, key.ID) // as it was made, not as it counts
}

// credential is the key in the first header that carries one.
func credential(h http.Header) string {
	if scheme, rest, ok := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " "); ok && strings.EqualFold(scheme, "bearer") {
		return strings.TrimSpace(rest)
	}
	for _, name := range []string{"x-api-key", "api-key"} {
		if v := strings.TrimSpace(h.Get(name)); v != "" {
			return v
		}
	}
	return ""
}

// maxChangedBy bounds the name of who made a change.
const maxChangedBy = 256

// changedBy is who a change is written down for. The header is the caller's own
// statement: the master key's is taken as it is, that of a key stands behind the key.
func changedBy(r *http.Request) (string, error) {
	name, actor := strings.TrimSpace(r.Header.Get("litellm-changed-by")), actorOf(r)
	if name == "" {
		return actor, nil
	}
	if len(name) > maxChangedBy || !cleanText(name) {
		return "", badField("litellm-changed-by", "must have at most %d bytes without control characters", maxChangedBy)
	}
	if actor != masterActor {
		name = actor + " (" + name + ")"
	}
	return name, nil
}
