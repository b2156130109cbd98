package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/penstock-gateway/penstock/internal/store"
)

// memberRows are the rows that make users members of a team, those of users first who
// do not exist yet. each adds to every membership.
func (a *api) memberRows(ctx context.Context, team string, asked []askedMember, each func(*store.Entity), by string) ([]store.Entity, error) {
	var fresh, rows []store.Entity
	seen := map[string]bool{}
	for _, m := range asked {
		user, made, err := a.memberUser(ctx, m, by)
		if err != nil {
			return nil, err
		}
		if seen[user.ID] {
			return nil, badField("member", "names a user twice")
		}
		seen[user.ID] = true
		if made {
			fresh = append(fresh, user)
		}
		row := store.Entity{Kind: store.KindMember, TeamID: team, ID: user.ID, Role: memberRole(m.Role), CreatedBy: by}
		if each != nil {
			each(&row)
		}
		rows = append(rows, row)
	}
	return append(fresh, rows...), nil
}

// memberUser finds the user that a member is, or makes one up.
func (a *api) memberUser(ctx context.Context, m askedMember, by string) (user store.Entity, made bool, err error) {
	if m.User != "" {
		user, err = a.store.Entity(ctx, store.EntityName(store.KindUser, m.User))
	} else {
		user, err = a.userByEmail(ctx, m.Email)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return user, false, err
	}
	id := m.User
	if id == "" {
		id = newID()
	}
	return store.Entity{Kind: store.KindUser, ID: id, Email: m.Email, Role: "internal_user", CreatedBy: by}, true, nil
}

func (a *api) userByEmail(ctx context.Context, email string) (store.Entity, error) {
	page, err := a.store.ListEntities(ctx, store.EntityFilter{Kind: store.KindUser, Email: email, Size: 1})
	if err == nil && len(page.Entities) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Entity{}, err
	}
	return page.Entities[0], nil
}

// addMembers adds members to a team, all or none.
func (a *api) addMembers(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	team, asked, budget := given(f.text("team_id")), f.members("member"), f.amount("max_budget_in_team")
	if err := f.onlyTaken(); err != nil {
		return nil, err
	}
	if err := teams.required(team); err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		return nil, badField("member", "is required")
	}
	if err := a.mayManage(r.Context(), who, team); err != nil {
		return nil, err
	}
	if _, err := a.find(r.Context(), teams, team); err != nil {
		return nil, err
	}
	rows, err := a.memberRows(r.Context(), team, asked, func(e *store.Entity) {
		if budget != nil {
			e.MaxBudget = *budget
		}
	}, by)
	if err != nil {
		return nil, err
	}
	if err := a.store.CreateEntities(r.Context(), rows); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return nil, badField("member", "is in the team already")
		}
		return nil, err
	}
	a.log.Info("members added", "team", team, "members", len(asked), "by", by)
	return a.answerMembers(r.Context(), team, rows)
}

// answerMembers is the team with the users and memberships that were made.
func (a *api) answerMembers(ctx context.Context, team string, rows []store.Entity) (any, error) {
	view, err := a.showTeam(ctx, team, nil)
	if err != nil {
		return nil, err
	}
	users, memberships := []map[string]any{}, []map[string]any{}
	for i := range rows {
		e, err := a.store.Entity(ctx, rows[i].Name())
		if err != nil {
			return nil, err
		}
		if e.Kind == store.KindUser {
			continue
		}
		m, err := viewMember(&e)
		if err != nil {
			return nil, err
		}
		memberships = append(memberships, m)
		users = append(users, map[string]any{"user_id": e.ID, "teams": []string{team}})
	}
	view["updated_users"], view["updated_team_memberships"] = users, memberships
	return view, nil
}

// namedMember reads which member of which team a call is about.
func (a *api) namedMember(ctx context.Context, f *fieldReader, who caller) (store.Entity, error) {
	team, user, email := given(f.text("team_id")), given(f.text("user_id")), given(f.text("user_email"))
	if f.err != nil {
		return store.Entity{}, f.err
	}
	if err := teams.required(team); err != nil {
		return store.Entity{}, err
	}
	if user == "" && email == "" {
		return store.Entity{}, badField("user_id", "or user_email is required")
	}
	if err := a.mayManage(ctx, who, team); err != nil {
		return store.Entity{}, err
	}
	if user == "" {
		u, err := a.userByEmail(ctx, email)
		if err != nil {
			return u, noMember(err)
		}
		user = u.ID
	}
	m, err := a.store.Entity(ctx, store.MemberEntity(team, user))
	return m, noMember(err)
}

func noMember(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return &apiError{status: http.StatusNotFound, kind: "not_found_error", msg: "no such member of the team", param: "user_id"}
	}
	return err
}

func (a *api) updateMember(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	m, err := a.namedMember(r.Context(), f, who)
	if err != nil {
		return nil, err
	}
	patch := store.EntityPatch{Role: f.text("role"), MaxBudget: f.amount("max_budget_in_team"), BudgetDuration: f.period("budget_duration"), UpdatedBy: by}
	settings, warnings := f.rest(map[string]shape{"tpm_limit": shapeCount, "rpm_limit": shapeCount, "budget_id": shapeText}, func(name string) bool { return name == "budget_id" })
	patch.Settings = settings
	if patch.Role != nil && *patch.Role != "user" && *patch.Role != store.RoleTeam {
		f.fail(badField("role", "must be admin or user"))
	}
	if f.err != nil {
		return nil, f.err
	}
	m, err = a.store.UpdateEntity(r.Context(), m.Name(), patch)
	if err != nil {
		return nil, noMember(err)
	}
	a.log.Info("member updated", "name", m.Name(), "by", by)
	view, err := viewMember(&m)
	if err != nil {
		return nil, err
	}
	view["max_budget_in_team"], view["warnings"] = view["max_budget"], notNil(warnings)
	return view, nil
}

// deleteMember takes a user out of a team, with their keys of the team.
func (a *api) deleteMember(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	m, err := a.namedMember(r.Context(), f, who)
	if err != nil {
		return nil, err
	}
	if err := f.onlyTaken(); err != nil {
		return nil, err
	}
	if _, err := a.store.DeleteEntities(r.Context(), []string{m.Name()}, by); err != nil {
		return nil, err
	}
	a.log.Info("member deleted", "name", m.Name(), "by", by)
	return a.showTeam(r.Context(), m.TeamID, nil)
}

// resetMember sets a member's spend: /team/{id}/member/{user}/reset_spend.
func (a *api) resetMember(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	team, user, _ := memberOfPath(strings.TrimRight(r.URL.Path, "/"))
	if err := a.mayManage(r.Context(), who, team); err != nil {
		return nil, err
	}
	spend, err := f.resetTo()
	if err != nil {
		return nil, err
	}
	m, err := a.store.UpdateEntity(r.Context(), store.MemberEntity(team, user), store.EntityPatch{Spend: &spend, UpdatedBy: by})
	if err != nil {
		return nil, noMember(err)
	}
	a.log.Info("spend of a member set", "name", m.Name(), "by", by)
	return viewMember(&m)
}

// resetTo reads the amount that a spend is set to; 0 where none is given.
func (f *fieldReader) resetTo() (int64, error) {
	to := f.amount("reset_to")
	if err := f.onlyTaken(); err != nil {
		return 0, err
	}
	if to == nil || *to == nil {
		return 0, nil
	}
	return **to, nil
}

// onlyTaken refuses fields that a call does not know.
func (f *fieldReader) onlyTaken() error {
	for _, name := range f.obj.names {
		if !f.used[name] {
			f.fail(badField(printable(name), "is not known here"))
		}
	}
	return f.err
}
