package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/penstock-gateway/penstock/internal/store"
)

// forbidden says what a call needs.
func forbidden(msg string) error {
	return &apiError{status: http.StatusForbidden, kind: "auth_error", msg: msg}
}

// actor travels with a request's context to where changes are written down.
type actorKey struct{}

// masterActor is the master key in the audit.
const masterActor = "master"

func withActor(r *http.Request, who caller) *http.Request {
	name := masterActor
	if who.key.ID != "" {
		name = store.KeyEntity(who.key.ID)
	}
	return r.WithContext(context.WithValue(r.Context(), actorKey{}, name))
}

// actorOf is who makes the call; "" where nobody said.
func actorOf(r *http.Request) string {
	name, _ := r.Context().Value(actorKey{}).(string)
	return name
}

// roleOf fills in what the user behind a key may do.
func (a *api) roleOf(ctx context.Context, who *caller) error {
	if who.key.UserID == "" {
		return nil
	}
	user, err := a.store.Entity(ctx, store.EntityName(store.KindUser, who.key.UserID))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	who.master = user.Role == store.RoleAdmin
	who.viewer = user.Role == store.RoleViewer
	return nil
}

// member is the caller's membership of a team; ErrNotFound: none.
func (a *api) member(ctx context.Context, who caller, team string) (store.Entity, error) {
	if who.key.UserID == "" || team == "" {
		return store.Entity{}, store.ErrNotFound
	}
	return a.store.Entity(ctx, store.MemberEntity(team, who.key.UserID))
}

// mayManage refuses who is neither an administrator nor the team's.
func (a *api) mayManage(ctx context.Context, who caller, team string) error {
	if who.master {
		return nil
	}
	m, err := a.member(ctx, who, team)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && m.Role != store.RoleTeam:
		return forbidden("this call needs the master key, or that of an admin of the team")
	}
	return err
}

// maySee refuses who does not belong to the team.
func (a *api) maySee(ctx context.Context, who caller, team string) error {
	if who.master || who.viewer || team != "" && who.key.TeamID == team {
		return nil
	}
	_, err := a.member(ctx, who, team)
	if errors.Is(err, store.ErrNotFound) {
		return forbidden("a key may only read its own team")
	}
	return err
}

// mayMakeKey refuses a key that its maker has no right to: an admin of a team makes keys
// of the team, for its members, and for nobody who may more than they.
func (a *api) mayMakeKey(ctx context.Context, who caller, p store.KeyPatch, team string) error {
	if who.master {
		return nil
	}
	if p.TeamID != nil {
		team = *p.TeamID
	}
	if err := a.mayManage(ctx, who, team); err != nil {
		return err
	}
	if given(p.OrganizationID) != "" {
		return forbidden("an admin of a team cannot set organization_id")
	}
	user := given(p.UserID)
	if user == "" {
		return nil
	}
	_, err := a.store.Entity(ctx, store.MemberEntity(team, user))
	if errors.Is(err, store.ErrNotFound) {
		return forbidden("user_id must be a member of the team")
	} else if err != nil {
		return err
	}
	return a.notAbove(ctx, who, user)
}

// notAbove refuses to lend the rights of an administrator.
func (a *api) notAbove(ctx context.Context, who caller, user string) error {
	if who.master || user == "" || user == who.key.UserID {
		return nil
	}
	u, err := a.store.Entity(ctx, store.EntityName(store.KindUser, user))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil && (u.Role == store.RoleAdmin || u.Role == store.RoleViewer) {
		return forbidden("user_id is an administrator")
	}
	return err
}

// mayChangeKey refuses who may not change a key that exists.
func (a *api) mayChangeKey(ctx context.Context, who caller, id string) error {
	if who.master {
		return nil
	}
	key, err := a.store.Key(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return forbidden("this call needs the master key")
	} else if err != nil {
		return err
	}
	if err := a.mayManage(ctx, who, key.TeamID); err != nil {
		return err
	}
	return a.notAbove(ctx, who, key.UserID)
}

// canonical is the id of the key that a secret's hash opens, or the hash itself.
func (a *api) canonical(ctx context.Context, hash string) (string, error) {
	found, err := a.store.Admit(ctx, hash)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return hash, nil
	case err != nil:
		return "", err
	}
	return found.Key.ID, nil
}
