package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/penstock-gateway/penstock/internal/store"
)

// newTeam makes a team with its first members, or nothing.
func (a *api) newTeam(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	asked := f.members("members_with_roles")
	c, err := teams.readEntity(f)
	if err != nil {
		return nil, err
	}
	if err := c.unspent(); err != nil {
		return nil, err
	}
	if c.id == "" {
		c.id = newID()
	}
	team := c.entity(store.KindTeam, by)
	rows, err := a.memberRows(r.Context(), team.ID, asked, nil, by)
	if err != nil {
		return nil, err
	}
	if err := a.store.CreateEntities(r.Context(), append([]store.Entity{team}, rows...)); err != nil {
		return nil, teams.fault(err)
	}
	a.log.Info("team created", "name", team.Name(), "members", len(rows), "by", by)
	return a.showTeam(r.Context(), team.ID, c.warnings)
}

// showTeam is a team as LiteLLM shows it: with its members.
func (a *api) showTeam(ctx context.Context, id string, warnings []string) (map[string]any, error) {
	team, err := a.find(ctx, teams, id)
	if err != nil {
		return nil, err
	}
	view, err := a.viewTeam(ctx, &team)
	if err == nil && warnings != nil {
		view["warnings"] = warnings
	}
	return view, err
}

func (a *api) viewTeam(ctx context.Context, team *store.Entity) (map[string]any, error) {
	view, err := teams.view(team)
	if err != nil {
		return nil, err
	}
	rows, err := a.membersOf(ctx, team.ID)
	if err != nil {
		return nil, err
	}
	members, admins, ids := []map[string]any{}, []string{}, []string{}
	for _, m := range rows {
		members = append(members, map[string]any{"user_id": m.ID, "user_email": nil, "role": memberRole(m.Role)})
		ids = append(ids, m.ID)
		if m.Role == store.RoleTeam {
			admins = append(admins, m.ID)
		}
	}
	view["members_with_roles"], view["members"], view["admins"] = members, ids, admins
	return view, nil
}

func memberRole(role string) string {
	if role == "" {
		return "user"
	}
	return role
}

// membersOf lists a team's members, the oldest first; at most a thousand.
func (a *api) membersOf(ctx context.Context, team string) ([]store.Entity, error) {
	page, err := a.store.ListEntities(ctx, store.EntityFilter{Kind: store.KindMember, TeamID: team, Size: 1000})
	slices.Reverse(page.Entities)
	return page.Entities, err
}

// teamAdminFields are what an admin of a team may change of it: nothing that gives it
// more than it was given.
var teamAdminFields = []string{"team_id", "team_alias", "metadata", "tags", "model_aliases", "team_member_budget", "team_member_budget_duration"}

func (a *api) updateTeam(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	c, err := teams.readEntity(f)
	if err != nil {
		return nil, err
	}
	if err := teams.required(c.id); err != nil {
		return nil, err
	}
	if err := a.mayManage(r.Context(), who, c.id); err != nil {
		return nil, err
	}
	for _, name := range f.obj.names {
		if !who.master && !slices.Contains(teamAdminFields, name) {
			return nil, forbidden("an admin of a team cannot change " + printable(name))
		}
	}
	if _, err := a.change(r.Context(), teams, c, by); err != nil {
		return nil, err
	}
	view, err := a.showTeam(r.Context(), c.id, notNil(c.warnings))
	return map[string]any{"team_id": c.id, "data": view}, err
}

func (a *api) deleteTeam(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.remove(w, r, teams)
}

func (a *api) teamInfo(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	warnUnused(w, r, "team_id")
	id := r.URL.Query().Get("team_id")
	if id == "" {
		id = who.key.TeamID
	}
	if err := teams.required(id); err != nil {
		return nil, err
	}
	if err := a.maySee(r.Context(), who, id); err != nil {
		return nil, err
	}
	info, err := a.showTeam(r.Context(), id, nil)
	if err != nil {
		return nil, err
	}
	keys, err := a.teamKeys(r.Context(), who, id)
	if err != nil {
		return nil, err
	}
	rows, err := a.membersOf(r.Context(), id)
	if err != nil {
		return nil, err
	}
	memberships := []map[string]any{}
	for i := range rows {
		m, err := viewMember(&rows[i])
		if err != nil {
			return nil, err
		}
		memberships = append(memberships, m)
	}
	return map[string]any{"team_id": id, "team_info": info, "keys": keys, "team_memberships": memberships}, nil
}

// teamKeys are the team's keys as far as the caller may see them.
func (a *api) teamKeys(ctx context.Context, who caller, team string) ([]any, error) {
	filter := store.KeyFilter{TeamID: team}
	if !who.viewer && a.mayManage(ctx, who, team) != nil {
		filter.ID = who.key.ID
	}
	return a.keysOf(ctx, filter)
}

// listTeams lists all teams to an administrator, and their own to a user.
func (a *api) listTeams(w http.ResponseWriter, r *http.Request, who caller) (any, error) {
	warnUnused(w, r, "user_id", "organization_id", "team_alias", "team_id", "page", "size", "page_size")
	filter, err := a.teamFilter(r, who)
	if err != nil {
		return nil, err
	}
	page, f, err := a.listPage(r, filter, 100)
	if err != nil {
		return nil, err
	}
	if page.Total > f.Page*f.Size {
		w.Header().Set("x-penstock-truncated", "true")
	}
	out := make([]map[string]any, 0, len(page.Entities))
	for i := range page.Entities {
		v, err := a.viewTeam(r.Context(), &page.Entities[i])
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// teamFilter reads which teams are listed: all that an administrator names, of others
// those of their own user.
func (a *api) teamFilter(r *http.Request, who caller) (store.EntityFilter, error) {
	q := r.URL.Query()
	filter := store.EntityFilter{Kind: store.KindTeam, OrganizationID: q.Get("organization_id"), Alias: q.Get("team_alias")}
	user := q.Get("user_id")
	if !who.master && !who.viewer {
		if user == "" {
			user = who.key.UserID
		}
		if user == "" || user != who.key.UserID {
			return filter, forbidden("a key may only list the teams of its own user")
		}
	}
	if user != "" {
		ids, err := a.teamsOf(r.Context(), user)
		if err != nil {
			return filter, err
		}
		filter.IDs = ids
	}
	if id := q.Get("team_id"); id != "" {
		all := filter.IDs == nil
		if mine := slices.Contains(filter.IDs, id); all || mine {
			filter.IDs = []string{id}
		} else {
			filter.IDs = []string{} // matches nothing
		}
	}
	return filter, nil
}

// teamsOf lists the ids of a user's teams.
func (a *api) teamsOf(ctx context.Context, user string) ([]string, error) {
	page, err := a.store.ListEntities(ctx, store.EntityFilter{Kind: store.KindMember, IDs: []string{user}, Size: 1000})
	ids := []string{}
	for _, m := range page.Entities {
		ids = append(ids, m.TeamID)
	}
	return ids, err
}

func (a *api) blockTeam(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.setTeamBlocked(w, r, true)
}

func (a *api) unblockTeam(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.setTeamBlocked(w, r, false)
}

func (a *api) setTeamBlocked(w http.ResponseWriter, r *http.Request, blocked bool) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	id := given(f.text("team_id"))
	if f.err != nil {
		return nil, f.err
	}
	if err := teams.required(id); err != nil {
		return nil, err
	}
	if _, err := a.setEntityBlocked(r, teams, []string{id}, by, blocked); err != nil {
		return nil, err
	}
	return a.showTeam(r.Context(), id, nil)
}

// viewMember is a membership with its budget.
func viewMember(m *store.Entity) (map[string]any, error) {
	fam := family{kind: store.KindMember, id: "user_id", table: true}
	view, err := fam.view(m)
	if err != nil {
		return nil, err
	}
	view["team_id"], view["role"] = m.TeamID, memberRole(m.Role)
	return view, nil
}

// askedMember is a member as a body names one.
type askedMember struct {
	Role  string `json:"role"`
	User  string `json:"user_id"`
	Email string `json:"user_email"`
}

// teamRoles are the roles that a member of a team may have.
var teamRoles = map[string]bool{"": true, "user": true, store.RoleTeam: true}

// members reads one member of a team or a list of them.
func (f *fieldReader) members(name string) []askedMember { return f.membersWith(name, teamRoles) }

func (f *fieldReader) membersWith(name string, roles map[string]bool) []askedMember {
	raw, ok := f.take(name)
	if !ok || isNull(raw) {
		return nil
	}
	var many []askedMember
	var one askedMember
	if json.Unmarshal(raw, &many) != nil {
		if json.Unmarshal(raw, &one) != nil {
			f.fail(badField(name, "must be {role, user_id or user_email}, or a list of them"))
			return nil
		}
		many = []askedMember{one}
	}
	for i := range many {
		m := &many[i]
		switch {
		case m.User == "" && m.Email == "":
			f.fail(badField(name, "needs user_id or user_email"))
		case !roles[m.Role]:
			f.fail(badField(name, "has an unknown role"))
		case !cleanText(m.User) || !cleanText(m.Email) || len(m.User) > maxText || len(m.Email) > maxText:
			f.fail(badField(name, "must have names of at most %d bytes without control characters", maxText))
		}
	}
	if len(many) > maxMembers {
		f.fail(badField(name, "must name at most %d members", maxMembers))
	}
	return many
}

// maxMembers bounds the members of one call, which is one transaction.
const maxMembers = 200
