package admin

import (
	"net/http"
	"strings"
)

// directoryRoute finds the calls about teams, users, customers, organizations, budgets
// and tags, and those of a key that is named in the path.
func directoryRoute(path string) (route, bool) {
	if keyOfPath(path, "regenerate") != "" || path == "/key/regenerate" {
		return post(anyKey, (*api).regenerate), true
	}
	if keyOfPath(path, "reset_spend") != "" {
		return post(anyKey, (*api).resetSpend), true
	}
	if _, _, ok := memberOfPath(path); ok {
		return post(anyKey, (*api).resetMember), true
	}
	noun, call, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !ok {
		return route{}, false
	}
	switch noun {
	case "team":
		return teamRoute(call)
	case "user":
		return userRoute(call)
	case "customer", "end_user":
		return customerRoute(call)
	case "organization":
		return organizationRoute(call)
	case "budget":
		return budgetRoute(call)
	case "tag":
		return tagRoute(call)
	case "global":
		return globalRoute(call)
	}
	return route{}, false
}

func post(who access, handle func(*api, http.ResponseWriter, *http.Request, caller) (any, error)) route {
	return route{method: http.MethodPost, access: who, handle: handle}
}

func get(who access, handle func(*api, http.ResponseWriter, *http.Request, caller) (any, error)) route {
	return route{method: http.MethodGet, access: who, handle: handle}
}

// memberOfPath reads /team/<team>/member/<user>/reset_spend.
func memberOfPath(path string) (team, user string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/team/")
	if !ok {
		return "", "", false
	}
	rest, ok = strings.CutSuffix(rest, "/reset_spend")
	if !ok {
		return "", "", false
	}
	team, user, ok = strings.Cut(rest, "/member/")
	return team, user, ok && team != "" && user != ""
}

func teamRoute(call string) (route, bool) {
	r, ok := map[string]route{
		"new":           post(masterOnly, (*api).newTeam),
		"update":        post(anyKey, (*api).updateTeam),
		"delete":        post(masterOnly, (*api).deleteTeam),
		"info":          get(anyKey, (*api).teamInfo),
		"list":          get(anyKey, (*api).listTeams),
		"member_add":    post(anyKey, (*api).addMembers),
		"member_update": post(anyKey, (*api).updateMember),
		"member_delete": post(anyKey, (*api).deleteMember),
		"block":         post(masterOnly, (*api).blockTeam),
		"unblock":       post(masterOnly, (*api).unblockTeam),
	}[call]
	return r, ok
}

func userRoute(call string) (route, bool) {
	r, ok := map[string]route{
		"new":    post(masterOnly, (*api).newUser),
		"update": post(masterOnly, (*api).updateUser),
		"delete": post(masterOnly, (*api).deleteUser),
		"info":   get(anyKey, (*api).userInfo),
		"list":   get(viewers, (*api).listUsers),
	}[call]
	return r, ok
}

func customerRoute(call string) (route, bool) {
	r, ok := map[string]route{
		"new":     post(masterOnly, (*api).newCustomer),
		"update":  post(masterOnly, (*api).updateCustomer),
		"delete":  post(masterOnly, (*api).deleteCustomer),
		"info":    get(viewers, (*api).customerInfo),
		"list":    get(viewers, (*api).listCustomers),
		"block":   post(masterOnly, (*api).blockCustomer),
		"unblock": post(masterOnly, (*api).unblockCustomer),
	}[call]
	return r, ok
}

func organizationRoute(call string) (route, bool) {
	r, ok := map[string]route{
		"new":        post(masterOnly, (*api).newOrganization),
		"update":     {method: http.MethodPatch, access: masterOnly, handle: (*api).updateOrganization, also: http.MethodPost},
		"delete":     {method: http.MethodDelete, access: masterOnly, handle: (*api).deleteOrganization, also: http.MethodPost},
		"info":       get(viewers, (*api).organizationInfo),
		"list":       get(viewers, (*api).listOrganizations),
		"member_add": post(masterOnly, (*api).addOrganizationMembers),
	}[call]
	return r, ok
}

func budgetRoute(call string) (route, bool) {
	r, ok := map[string]route{
		"new":    post(masterOnly, (*api).newBudget),
		"update": post(masterOnly, (*api).updateBudget),
		"delete": post(masterOnly, (*api).deleteBudget),
		"info":   post(viewers, (*api).budgetInfo),
		"list":   get(viewers, (*api).listBudgets),
	}[call]
	return r, ok
}

func tagRoute(call string) (route, bool) {
	r, ok := map[string]route{
		"new":    post(masterOnly, (*api).newTag),
		"update": post(masterOnly, (*api).updateTag),
		"delete": post(masterOnly, (*api).deleteTag),
		"info":   post(viewers, (*api).tagInfo),
		"list":   get(viewers, (*api).listTags),
	}[call]
	return r, ok
}

func globalRoute(call string) (route, bool) {
	r, ok := map[string]route{
		"budget":        get(viewers, (*api).globalBudget),
		"budget/update": post(masterOnly, (*api).updateGlobalBudget),
	}[call]
	return r, ok
}
