package admin

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// roles are the roles that a user may have.
var roles = map[string]bool{"": true, store.RoleAdmin: true, store.RoleViewer: true, "internal_user": true, "internal_user_viewer": true}

func checkRole(p store.EntityPatch) error {
	if p.Role != nil && !roles[*p.Role] {
		return badField("user_role", "must be proxy_admin, proxy_admin_viewer, internal_user or internal_user_viewer")
	}
	return nil
}

// newUser makes a user, their memberships and, unless auto_create_key is false, a key
// of theirs.
func (a *api) newUser(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	autoKey, memberOf := f.flag("auto_create_key"), f.texts("teams")
	key := store.KeyPatch{Alias: f.text("key_alias"), Expires: f.expiry("duration", time.Now())}
	c, err := users.readEntity(f)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkRole(c.patch), c.unspent()); err != nil {
		return nil, err
	}
	if c.id == "" {
		c.id = newID()
	}
	rows := []store.Entity{c.entity(store.KindUser, by)}
	if memberOf != nil {
		for _, team := range *memberOf {
			rows = append(rows, store.Entity{Kind: store.KindMember, TeamID: team, ID: c.id, Role: "user", CreatedBy: by})
		}
	}
	if err := a.store.CreateEntities(r.Context(), rows); err != nil {
		return nil, users.fault(err)
	}
	a.log.Info("user created", "name", rows[0].Name(), "by", by)
	answer := map[string]any{"key": nil}
	if autoKey == nil || *autoKey {
		if answer, err = a.userKey(r.Context(), c.id, key, by); err != nil {
			return nil, err
		}
	}
	view, err := a.showUser(r.Context(), c.id, notNil(c.warnings))
	if err != nil {
		return nil, err
	}
	for name, value := range view {
		answer[name] = value
	}
	return answer, nil
}

// userKey makes a new user's key. When that fails the user is taken back.
func (a *api) userKey(ctx context.Context, user string, p store.KeyPatch, by string) (map[string]any, error) {
	secret, p := newSecret(), p
	p.UserID = &user
	key, err := a.createKey(ctx, newKey(secret, change{patch: p}, by), nil)
	if err != nil {
		name := store.EntityName(store.KindUser, user)
		if _, delErr := a.store.DeleteEntities(context.WithoutCancel(ctx), []string{name}, by); delErr != nil {
			a.log.Error("cannot take back a user whose key could not be made", "name", name, "error", delErr)
		}
		return nil, err
	}
	view, err := viewKey(&key)
	if err != nil {
		return nil, err
	}
	view["key"] = secret
	return view, nil
}

// newSecret is a fresh key.
func newSecret() string {
	random := make([]byte, 24)
	rand.Read(random) // crypto/rand never fails: it ends the program instead
	return keyPrefix + base64.RawURLEncoding.EncodeToString(random)
}

func (a *api) showUser(ctx context.Context, id string, warnings []string) (map[string]any, error) {
	user, err := a.find(ctx, users, id)
	if err != nil {
		return nil, err
	}
	view, err := users.view(&user)
	if err != nil {
		return nil, err
	}
	if view["teams"], err = a.teamsOf(ctx, id); err != nil {
		return nil, err
	}
	if warnings != nil {
		view["warnings"] = warnings
	}
	return view, nil
}

func (a *api) updateUser(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	c, err := users.readEntity(f)
	if err != nil {
		return nil, err
	}
	if err := checkRole(c.patch); err != nil {
		return nil, err
	}
	if c.id == "" && given(c.patch.Email) != "" { // LiteLLM finds a user by either
		user, err := a.userByEmail(r.Context(), *c.patch.Email)
		if err != nil {
			return nil, users.fault(err)
		}
		c.id = user.ID
	}
	if err := users.required(c.id); err != nil {
		return nil, err
	}
	if _, err := a.change(r.Context(), users, c, by); err != nil {
		return nil, err
	}
	view, err := a.showUser(r.Context(), c.id, notNil(c.warnings))
	return map[string]any{"user_id": c.id, "data": view}, err
}

func (a *api) deleteUser(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.remove(w, r, users)
}

// userInfo shows a user with keys and teams: any to an administrator, their own to a key.
func (a *api) userInfo(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	warnUnused(w, r, "user_id")
	id := r.URL.Query().Get("user_id")
	if id == "" {
		id = who.key.UserID
	}
	if err := users.required(id); err != nil {
		return nil, err
	}
	if !who.master && !who.viewer && id != who.key.UserID {
		return nil, forbidden("a key may only read its own user")
	}
	info, err := a.showUser(r.Context(), id, nil)
	if err != nil {
		return nil, err
	}
	keys, err := a.keysOf(r.Context(), store.KeyFilter{UserID: id})
	if err != nil {
		return nil, err
	}
	ids, err := a.teamsOf(r.Context(), id)
	if err != nil {
		return nil, err
	}
	page, err := a.store.ListEntities(r.Context(), store.EntityFilter{Kind: store.KindTeam, IDs: ids, Size: 1000})
	if err != nil {
		return nil, err
	}
	memberOf, err := teams.views(page.Entities)
	return map[string]any{"user_id": id, "user_info": info, "keys": keys, "teams": memberOf}, err
}

func (a *api) listUsers(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	warnUnused(w, r, "role", "user_email", "user_ids", "page", "page_size", "size")
	q := r.URL.Query()
	filter := store.EntityFilter{Kind: store.KindUser, Role: q.Get("role"), Email: q.Get("user_email")}
	if ids := q.Get("user_ids"); ids != "" {
		filter.IDs = splitList(ids)
	}
	page, f, err := a.listPage(r, filter, 25)
	if err != nil {
		return nil, err
	}
	list, err := users.views(page.Entities)
	return map[string]any{"users": list, "total": page.Total, "page": f.Page, "page_size": f.Size, "total_pages": (page.Total + f.Size - 1) / f.Size}, err
}
