package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/penstock-gateway/penstock/internal/store"
)

// memberField starts the settings that hold an organization's members, one for each, so
// that two who are added at once do not undo each other.
const memberField = "member:"

func (a *api) newOrganization(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.newNamed(w, r, organizations)
}

func (a *api) updateOrganization(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	answer, err := a.updateNamed(w, r, organizations)
	if view, ok := answer.(map[string]any); ok {
		withMembers(view)
	}
	return answer, err
}

func (a *api) deleteOrganization(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.remove(w, r, organizations)
}

// organizationInfo shows an organization with its teams.
func (a *api) organizationInfo(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	warnUnused(w, r, "organization_id")
	return a.showOrganization(r.Context(), r.URL.Query().Get("organization_id"))
}

func (a *api) showOrganization(ctx context.Context, id string) (map[string]any, error) {
	e, err := a.find(ctx, organizations, id)
	if err != nil {
		return nil, err
	}
	view, err := organizations.view(&e)
	if err != nil {
		return nil, err
	}
	withMembers(view)
	page, err := a.store.ListEntities(ctx, store.EntityFilter{Kind: store.KindTeam, OrganizationID: id, Size: 1000})
	if err != nil {
		return nil, err
	}
	view["teams"], err = teams.views(page.Entities)
	return view, err
}

// withMembers shows the members of an organization as a list.
func withMembers(view map[string]any) {
	members := []map[string]any{}
	for name, role := range view {
		if user, ok := strings.CutPrefix(name, memberField); ok {
			members = append(members, map[string]any{"user_id": user, "user_role": role})
			delete(view, name)
		}
	}
	slices.SortFunc(members, func(a, b map[string]any) int { return strings.Compare(a["user_id"].(string), b["user_id"].(string)) })
	view["members"] = members
}

func (a *api) listOrganizations(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	answer, err := a.listAll(w, r, organizations)
	views, _ := answer.([]map[string]any)
	for _, view := range views {
		withMembers(view)
	}
	return answer, err
}

// organizationRoles are LiteLLM's. They are kept and shown, and give no rights here.
var organizationRoles = map[string]bool{"": true, "org_admin": true, "internal_user": true, "internal_user_viewer": true}

// addOrganizationMembers notes users as members of an organization. It gives them no
// rights and no budget.
func (a *api) addOrganizationMembers(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	id, asked := given(f.text("organization_id")), f.membersWith("member", organizationRoles)
	if err := f.onlyTaken(); err != nil {
		return nil, err
	}
	if err := organizations.required(id); err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		return nil, badField("member", "is required")
	}
	c := entityChange{id: id, patch: store.EntityPatch{Settings: map[string]json.RawMessage{}}}
	for _, m := range asked {
		user, made, err := a.memberUser(r.Context(), m, by)
		if err != nil {
			return nil, err
		}
		if made {
			return nil, badField("member", "must name users that exist")
		}
		c.patch.Settings[memberField+user.ID] = encodeValue(m.Role)
	}
	if _, err := a.change(r.Context(), organizations, c, by); err != nil {
		return nil, err
	}
	w.Header().Add("x-penstock-warning", "members of an organization have no rights or budgets of their own")
	return a.showOrganization(r.Context(), id)
}
