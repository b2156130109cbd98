package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/store"
)

// field is a value inside an answer: "team_info.members.0".
func field(t *testing.T, a answer, path string) any {
	t.Helper()
	var v any = a.body
	if a.body == nil {
		t.Fatalf("no object: %d %s", a.status, a.raw)
	}
	for name := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(at) {
				t.Fatalf("no %s in %s", path, a.raw)
			}
			v = at[i]
		default:
			t.Fatalf("no %s in %s", path, a.raw)
		}
	}
	return v
}

func same(t *testing.T, a answer, path, want string) {
	t.Helper()
	if got := fmt.Sprint(field(t, a, path)); got != want {
		t.Errorf("%s: got %s, want %s in %s", path, got, want, a.raw)
	}
}

func TestTeams(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.ok("POST", "/team/new", `{"team_id":"t","team_alias":"Team","max_budget":12.5,"budget_duration":"30d","models":["m"],"metadata":{"a":1.50},
		"team_member_budget":2,"members_with_roles":[{"role":"admin","user_id":"ann"},{"user_id":"bob","user_email":"bob@x.y"}],"rpm_limit":7,"soft_budget":1}`, "litellm-changed-by", "alice")
	checkFields(t, a.body, map[string]string{"team_id": `"t"`, "team_alias": `"Team"`, "max_budget": `12.5`, "spend": `0`, "models": `["m"]`, "admins": `["ann"]`,
		"metadata": `{"a":1.50}`, "blocked": `false`, "created_by": `"alice"`, "organization_id": `null`, "rpm_limit": `7`})
	if w := fmt.Sprint(a.body["warnings"]); !strings.Contains(w, "soft_budget") || strings.Contains(w, "rpm_limit") || strings.Contains(w, "team_member_budget") {
		t.Errorf("warnings %s", w)
	}
	key := b.ok("POST", "/key/generate", `{"team_id":"t","user_id":"ann"}`)
	info := b.ok("GET", "/team/info?team_id=t", "")
	same(t, info, "team_info.admins", "[ann]")
	same(t, info, "keys.0.token", str(key.body["token"]))
	same(t, info, "team_info.team_member_budget", "2")
	same(t, b.ok("POST", "/team/update", `{"team_id":"t","max_budget":20,"blocked":true}`), "data.max_budget", "20")
	same(t, b.ok("POST", "/team/unblock", `{"team_id":"t"}`), "blocked", "false")
	same(t, b.ok("POST", "/team/block", `{"team_id":"t"}`), "blocked", "true")
	a = b.ok("POST", "/team/member_add", `{"team_id":"t","member":{"role":"user","user_id":"cem"},"max_budget_in_team":1.5}`)
	same(t, a, "updated_team_memberships.0.max_budget", "1.5")
	same(t, b.ok("POST", "/team/member_update", `{"team_id":"t","user_email":"BOB@x.y","role":"admin","max_budget_in_team":3}`), "max_budget_in_team", "3")
	same(t, b.ok("GET", "/user/info?user_id=cem", ""), "teams.0.team_id", "t")
	same(t, b.ok("POST", "/team/t/member/cem/reset_spend", `{"reset_to":0}`), "spend", "0")
	a = b.ok("POST", "/team/member_delete", `{"team_id":"t","user_id":"ann"}`)
	if got := fmt.Sprint(a.body["members"]); got != "[bob cem]" && got != "[cem bob]" {
		t.Errorf("members %s", got)
	}
	if a := b.call("GET", "/key/info?key="+str(key.body["token"]), ""); a.status != 404 {
		t.Errorf("the key of a member who is gone: %d", a.status)
	}
	if a := b.ok("GET", "/team/list", ""); !strings.HasPrefix(a.raw, "[{") {
		t.Errorf("a list, got %s", a.raw)
	}
	same(t, b.ok("POST", "/team/delete", `{"team_ids":["t","none"]}`), "missing_teams", "[none]")
	if a := b.call("GET", "/team/info?team_id=t", ""); a.status != 404 {
		t.Errorf("a deleted team: %d %s", a.status, a.raw)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("POST", "/team/new", `{"team_id":"t"}`)
	a := b.ok("POST", "/user/new", `{"user_id":"u","user_email":"u@x.y","user_alias":"U","user_role":"internal_user","max_budget":5,"teams":["t"],"key_alias":"first"}`)
	checkFields(t, a.body, map[string]string{"user_id": `"u"`, "user_email": `"u@x.y"`, "user_role": `"internal_user"`, "max_budget": `5`, "teams": `["t"]`, "key_alias": `"first"`})
	key := str(a.body["key"])
	if own := send(t, b.api, "GET", "/key/info", "", "x-api-key", key); own.status != 200 || field(t, own, "info.user_id") != "u" {
		t.Errorf("the user's key: %d %s", own.status, own.raw)
	}
	if b.ok("POST", "/user/new", `{"user_id":"v","auto_create_key":false}`).body["key"] != nil {
		t.Error("a key that nobody asked for")
	}
	same(t, b.ok("POST", "/user/update", `{"user_email":"U@x.y","max_budget":null,"budget_limits":[{"budget_duration":"1d","max_budget":1}]}`), "data.max_budget", "<nil>")
	same(t, b.ok("GET", "/user/info?user_id=u", ""), "keys.0.key_alias", "first")
	same(t, b.ok("GET", "/user/list?user_email=u@X.y", ""), "total", "1")
	same(t, b.ok("GET", "/user/list?page_size=1&page=2", ""), "total_pages", "2")
	before := b.ok("GET", "/user/list", "").raw
	if a := b.call("POST", "/user/new", `{"user_id":"w","key_alias":"first"}`); a.status != 400 {
		t.Errorf("an alias that is taken: %d %s", a.status, a.raw)
	}
	if after := b.ok("GET", "/user/list", "").raw; after != before {
		t.Errorf("a user without the key that was asked for: %s", after)
	}
	same(t, b.ok("POST", "/user/delete", `{"user_ids":["u","v"]}`), "deleted_users", "[u v]")
	if a := send(t, b.api, "GET", "/key/info", "", "x-api-key", key); a.status != 401 {
		t.Errorf("a deleted user's key: %d", a.status)
	}
}

func TestCustomersTagsBudgetsOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("POST", "/budget/new", `{"budget_id":"small","max_budget":2,"budget_duration":"1d"}`)
	for _, base := range []string{"/customer", "/end_user"} {
		id := "c" + base
		a := b.ok("POST", base+"/new", `{"user_id":"`+id+`","alias":"C","budget_id":"small"}`)
		same(t, a, "litellm_budget_table.budget_id", "small")
		same(t, b.ok("POST", base+"/update", `{"user_id":"`+id+`","max_budget":7}`), "litellm_budget_table.max_budget", "7")
		same(t, b.ok("POST", base+"/update", `{"user_id":"by a request `+id+`","max_budget":7}`), "max_budget", "7")
		same(t, b.ok("POST", base+"/block", `{"user_ids":["`+id+`","new `+id+`"]}`), "blocked_users.1.blocked", "true")
		same(t, b.ok("POST", base+"/unblock", `{"user_ids":["`+id+`"]}`), "unblocked_users.0.blocked", "false")
		same(t, b.ok("GET", base+"/info?end_user_id="+id, ""), "alias", "C")
		if a := b.ok("GET", base+"/list", ""); !strings.Contains(a.raw, id) {
			t.Errorf("list: %s", a.raw)
		}
	}
	same(t, b.ok("POST", "/budget/update", `{"budget_id":"small","max_budget":3}`), "max_budget", "3")
	if a := b.ok("POST", "/budget/info", `{"budgets":["small","none"]}`); !strings.Contains(a.raw, `"budget_id":"small"`) {
		t.Errorf("budgets: %s", a.raw)
	}
	if a := b.call("POST", "/budget/delete", `{"id":"small"}`); a.status != 400 {
		t.Errorf("a budget in use: %d %s", a.status, a.raw)
	}
	b.ok("POST", "/customer/delete", `{"user_ids":["c/customer","c/end_user"]}`)
	same(t, b.ok("POST", "/budget/delete", `{"id":"small"}`), "deleted_budgets", "[small]")

	same(t, b.ok("POST", "/tag/new", `{"name":"g","description":"d","max_budget":1}`), "tag.description", "d")
	same(t, b.ok("POST", "/tag/update", `{"name":"g","max_budget":2}`), "tag.max_budget", "2")
	same(t, b.ok("POST", "/tag/info", `{"names":["g"]}`), "g.max_budget", "2")
	same(t, b.ok("POST", "/tag/delete", `{"name":"g"}`), "deleted_tags", "[g]")

	b.ok("POST", "/organization/new", `{"organization_id":"o","organization_alias":"Org","max_budget":9}`)
	b.ok("POST", "/team/new", `{"team_id":"t","organization_id":"o"}`)
	b.ok("POST", "/user/new", `{"user_id":"u"}`)
	a := b.ok("POST", "/organization/member_add", `{"organization_id":"o","member":[{"role":"org_admin","user_id":"u"}]}`)
	same(t, a, "members.0.user_role", "org_admin")
	same(t, a, "teams.0.team_id", "t")
	same(t, b.ok("PATCH", "/organization/update", `{"organization_id":"o","models":["m"]}`), "members.0.user_id", "u")
	if a := b.call("DELETE", "/organization/delete", `{"organization_ids":["o"]}`); a.status != 400 {
		t.Errorf("an organization with teams: %d %s", a.status, a.raw)
	}
	b.ok("POST", "/team/delete", `{"team_ids":["t"]}`)
	b.ok("DELETE", "/organization/delete", `{"organization_ids":["o"]}`)

	same(t, b.ok("GET", "/global/budget", ""), "max_budget", "<nil>")
	same(t, b.ok("POST", "/global/budget/update", `{"max_budget":100,"budget_duration":"30d"}`), "max_budget", "100")
	same(t, b.ok("GET", "/global/budget", ""), "budget_duration", "30d")
}

func TestRegenerate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.ok("POST", "/key/generate", `{"max_budget":3,"spend":1}`)
	old, id := str(first.body["key"]), str(first.body["token"])
	status := func(key string) int { return send(t, b.api, "GET", "/key/info", "", "x-api-key", key).status }

	a := b.ok("POST", "/key/regenerate", `{"key":"`+old+`","grace_period":"1h","key_alias":"rotated"}`)
	second := str(a.body["key"])
	checkFields(t, a.body, map[string]string{"token": `"` + id + `"`, "spend": `1`, "max_budget": `3`, "key_alias": `"rotated"`})
	if status(old) != 200 || status(second) != 200 || old == second {
		t.Errorf("within its grace: %d, the new one: %d", status(old), status(second))
	}
	same(t, b.ok("GET", "/key/info?key="+second, ""), "info.token", id)
	third := str(b.ok("POST", "/key/"+second+"/regenerate", `{"new_key":"sk-0123456789-third"}`).body["key"])
	if third != "sk-0123456789-third" || status(old) != 401 || status(second) != 401 || status(third) != 200 {
		t.Errorf("without grace: %d %d %d", status(old), status(second), status(third))
	}
	same(t, b.ok("POST", "/key/"+third+"/reset_spend", `{"reset_to":0.5}`), "spend", "0.5")
	same(t, b.ok("POST", "/key/"+id+"/reset_spend", `{}`), "spend", "0")
	for body, param := range map[string]string{
		`{}`: "key", `{"key":"` + third + `","grace_period":"1y"}`: "grace_period", `{"key":"` + third + `","grace_period":"9999d"}`: "grace_period",
		`{"key":"` + third + `","new_key":"short"}`: "key", `{"key":"` + third + `","new_key":"` + masterKey + `"}`: "new_key",
		`{"key":"` + third + `","new_key":"` + third + `"}`: "new_key", `{"key":"` + third + `","max_budget":-1}`: "max_budget",
	} {
		a := b.call("POST", "/key/regenerate", body)
		if _, p, _ := errorOf(t, a); a.status != 400 || p != param {
			t.Errorf("%s: %d %s, want 400 that names %s", body, a.status, a.raw, param)
		}
	}
	if a := b.call("POST", "/key/regenerate", `{"key":"sk-nobody-has-this-key"}`); a.status != 404 {
		t.Errorf("unknown key: %d %s", a.status, a.raw)
	}
	if status(third) != 200 {
		t.Error("what failed has changed the key")
	}
}

// Each role may do its own, and no more.
func TestRoles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("POST", "/team/new", `{"team_id":"t","max_budget":10,"members_with_roles":[{"role":"admin","user_id":"lead"},{"role":"user","user_id":"dev"}]}`)
	b.ok("POST", "/team/new", `{"team_id":"other"}`)
	b.ok("POST", "/user/new", `{"user_id":"boss","user_role":"proxy_admin","teams":["t"]}`)
	keyOf := func(fields string) string { return str(b.ok("POST", "/key/generate", fields).body["key"]) }
	admin := keyOf(`{"user_id":"boss"}`)
	b.ok("POST", "/user/new", `{"user_id":"eye","user_role":"proxy_admin_viewer"}`)
	viewer, lead, dev := keyOf(`{"user_id":"eye"}`), keyOf(`{"user_id":"lead"}`), keyOf(`{"user_id":"dev","team_id":"t"}`)
	service, foreign, bosses := keyOf(`{"team_id":"t"}`), keyOf(`{"team_id":"other"}`), keyOf(`{"user_id":"boss","team_id":"t"}`)
	for _, c := range []struct {
		why, key, method, path, body string
		status                       int
	}{
		{"an admin's key makes teams", admin, "POST", "/team/new", `{"team_id":"n"}`, 200},
		{"… and reads itself without a name", admin, "GET", "/key/info", "", 200},
		{"a viewer reads", viewer, "GET", "/user/list", "", 200},
		{"… any team", viewer, "GET", "/team/info?team_id=other", "", 200},
		{"… any key", viewer, "GET", "/key/info?key=" + dev, "", 200},
		{"… and changes nothing", viewer, "POST", "/team/new", `{}`, 403},
		{"… no key either", viewer, "POST", "/key/update", `{"key":"` + dev + `","max_budget":1}`, 403},
		{"a team's admin sees the team", lead, "GET", "/team/info?team_id=t", "", 200},
		{"… and no other", lead, "GET", "/team/info?team_id=other", "", 403},
		{"… makes keys of the team", lead, "POST", "/key/generate", `{"team_id":"t","user_id":"dev","max_budget":1}`, 200},
		{"… of no other team", lead, "POST", "/key/generate", `{"team_id":"other"}`, 403},
		{"… of no team", lead, "POST", "/key/generate", `{}`, 403},
		{"… for no stranger", lead, "POST", "/key/generate", `{"team_id":"t","user_id":"eye"}`, 403},
		{"… for no administrator", lead, "POST", "/key/generate", `{"team_id":"t","user_id":"boss"}`, 403},
		{"… with no other organization", lead, "POST", "/key/generate", `{"team_id":"t","organization_id":"o"}`, 403},
		{"… changes keys of the team", lead, "POST", "/key/update", `{"key":"` + service + `","max_budget":2}`, 200},
		{"… not those of another", lead, "POST", "/key/update", `{"key":"` + foreign + `","max_budget":2}`, 403},
		{"… does not give them away", lead, "POST", "/key/update", `{"key":"` + service + `","team_id":"other"}`, 403},
		{"… nor makes them anybody's", lead, "POST", "/key/update", `{"key":"` + service + `","team_id":""}`, 403},
		{"… nor lends them an administrator's rights", lead, "POST", "/key/update", `{"key":"` + service + `","user_id":"boss"}`, 403},
		{"… nor takes an administrator's", lead, "POST", "/key/regenerate", `{"key":"` + bosses + `"}`, 403},
		{"… rotates them", lead, "POST", "/key/regenerate", `{"key":"` + service + `","grace_period":"1h"}`, 200},
		{"… lists them", lead, "GET", "/key/list?team_id=t", "", 200},
		{"… not all", lead, "GET", "/key/list", "", 403},
		{"… adds members", lead, "POST", "/team/member_add", `{"team_id":"t","member":{"user_id":"new","role":"user"}}`, 200},
		{"… renames the team", lead, "POST", "/team/update", `{"team_id":"t","team_alias":"x"}`, 200},
		{"… does not raise its budget", lead, "POST", "/team/update", `{"team_id":"t","max_budget":1000}`, 403},
		{"… nor reset its spend", lead, "POST", "/team/update", `{"team_id":"t","spend":0}`, 403},
		{"… nor unblock it", lead, "POST", "/team/unblock", `{"team_id":"t"}`, 403},
		{"… nor become more", lead, "POST", "/user/update", `{"user_id":"lead","user_role":"proxy_admin"}`, 403},
		{"a member sees the team", dev, "GET", "/team/info", "", 200},
		{"… and itself", dev, "GET", "/user/info", "", 200},
		{"… nobody else", dev, "GET", "/user/info?user_id=lead", "", 403},
		{"… its own teams", dev, "GET", "/team/list", "", 200},
		{"… not others'", dev, "GET", "/team/list?user_id=lead", "", 403},
		{"… manages nothing", dev, "POST", "/team/member_add", `{"team_id":"t","member":{"user_id":"x"}}`, 403},
		{"… not even its key", dev, "POST", "/key/update", `{"key":"` + dev + `","max_budget":100}`, 403},
		{"a key of nobody sees its team", foreign, "GET", "/team/info", "", 200},
		{"… and changes nothing", foreign, "POST", "/key/update", `{"key":"` + foreign + `"}`, 403},
		{"… no customers", foreign, "GET", "/customer/list", "", 403},
	} {
		if a := send(t, b.api, c.method, c.path, c.body, "Authorization", "Bearer "+c.key); a.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.why, a.status, a.raw, c.status)
		}
	}
	seen := send(t, b.api, "GET", "/team/info", "", "x-api-key", dev)
	if keys, _ := field(t, seen, "keys").([]any); len(keys) != 1 {
		t.Errorf("a member sees its own key only: %s", seen.raw)
	}
	if who, err := b.store.Entity(t.Context(), store.EntityName(store.KindTeam, "n")); err != nil || !strings.HasPrefix(who.CreatedBy, "key:") {
		t.Errorf("made by %q (%v), want the admin's key", who.CreatedBy, err)
	}
}

// Bad input is a clear 4xx and writes nothing.
func TestBadDirectory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("POST", "/team/new", `{"team_id":"t","team_alias":"taken"}`)
	b.ok("POST", "/user/new", `{"user_id":"u","user_email":"a@b.c","auto_create_key":false}`)
	total := func() string {
		return b.ok("GET", "/team/list", "").raw + b.ok("GET", "/user/list", "").raw + b.ok("GET", "/customer/list", "").raw + b.ok("GET", "/tag/list", "").raw +
			b.ok("GET", "/organization/list", "").raw + b.ok("GET", "/budget/list", "").raw + b.ok("GET", "/key/list", "").raw
	}
	before := total()
	for path, id := range map[string]string{
		"/team/new": `"team_id":"x"`, "/team/update": `"team_id":"t"`, "/user/new": `"user_id":"x"`, "/user/update": `"user_id":"u"`, "/customer/new": `"user_id":"x"`,
		"/customer/update": `"user_id":"x"`, "/organization/new": `"organization_id":"x"`, "/budget/new": `"budget_id":"x"`, "/tag/new": `"name":"x"`,
	} {
		for _, bad := range []string{
			`"max_budget":-1`, `"max_budget":NaN`, `"max_budget":1e400`, `"max_budget":"1"`, `"max_budget":Infinity`, `"spend":-1`, `"soft_budget":-1`, `"budget_duration":"1y"`,
			`"models":"m"`, `"models":["a\u0000"]`, `"metadata":{"a":"\u0000"}`, `"metadata":[]`, `"blocked":"yes"`, `"max_bugdet":1`, `"rpm_limit":-1`,
			`"budget_limits":[{"max_budget":1}]`, `"budget_limits":[{"max_budget":-1,"budget_duration":"1d"}]`, `"budget_id":7`, `"budget_limits":{}`,
		} {
			if strings.Contains(path, "/budget/") && strings.Contains(bad, "budget_id") {
				continue // a field twice
			}
			a := b.call("POST", path, `{`+id+`,`+bad+`}`)
			if kind, _, code := errorOf(t, a); a.status != http.StatusBadRequest || code != "400" || kind != "bad_request_error" {
				t.Errorf("%s %s: %d %s, want 400", path, bad, a.status, a.raw)
			}
		}
	}
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/team/new", `{"team_id":"t"}`, 400},
		{"/team/new", `{"team_alias":"taken"}`, 400},
		{"/team/new", `{"team_id":"a/b"}`, 400},
		{"/team/new", `{"team_id":"a\u0000"}`, 400},
		{"/team/new", `{"team_id":"x","organization_id":"none"}`, 400},
		{"/team/new", `{"team_id":"x","budget_id":"none"}`, 400},
		{"/team/new", `{"team_id":"x","members_with_roles":[{"role":"king","user_id":"u"}]}`, 400},
		{"/team/new", `{"team_id":"x","members_with_roles":[{"role":"user"}]}`, 400},
		{"/team/new", `{"team_id":"x","members_with_roles":[{"user_id":"u"},{"user_id":"u"}]}`, 400},
		{"/team/new", `{"team_id":"x","members_with_roles":[{"user_id":"u\u0000"}]}`, 400},
		{"/team/update", `{"max_budget":1}`, 400},
		{"/team/update", `{"team_id":"none"}`, 404},
		{"/team/block", `{"team_id":"none"}`, 404},
		{"/team/delete", `{"team_ids":["none"]}`, 404},
		{"/team/delete", `{"team_ids":[]}`, 400},
		{"/team/member_add", `{"team_id":"none","member":{"user_id":"u"}}`, 404},
		{"/team/member_add", `{"team_id":"t"}`, 400},
		{"/team/member_add", `{"team_id":"t","member":{"user_id":"z"},"max_budget_in_team":-1}`, 400},
		{"/team/member_add", `{"team_id":"t","member":{"user_id":"z"},"budget":1}`, 400},
		{"/team/member_update", `{"team_id":"t","user_id":"u","max_budget_in_team":1}`, 404},
		{"/team/member_delete", `{"team_id":"t","user_email":"nobody@x.y"}`, 404},
		{"/team/t/member/none/reset_spend", `{}`, 404},
		{"/user/new", `{"user_id":"u"}`, 400},
		{"/user/new", `{"user_id":"x","user_email":"A@B.C"}`, 400},
		{"/user/new", `{"user_id":"x","user_role":"king"}`, 400},
		{"/user/new", `{"user_id":"x","teams":["none"]}`, 400},
		{"/user/update", `{"user_id":"none"}`, 404},
		{"/user/update", `{"user_email":"nobody@x.y"}`, 404},
		{"/customer/new", `{"user_id":"x#1d"}`, 400},
		{"/customer/new", `{}`, 400},
		{"/customer/block", `{"user_ids":["x#1d"]}`, 400},
		{"/customer/block", `{"user_ids":["fine","x#1d"]}`, 400},
		{"/customer/unblock", `{"user_ids":["none"]}`, 404},
		{"/tag/new", `{"name":"x","spend":1}`, 400},
		{"/team/new", `{"team_id":"x","spend":1}`, 400},
		{"/tag/new", `{}`, 400},
		{"/organization/member_add", `{"organization_id":"none","member":{"user_id":"u"}}`, 404},
		{"/key/generate", `{"team_id":"none"}`, 400},
		{"/key/generate", `{"organization_id":"none"}`, 400},
		{"/key/generate", `{"budget_id":"none"}`, 400},
		{"/key/generate", `{"budget_limits":[{"budget_duration":"1d"}]}`, 400},
		{"/global/budget/update", `{"max_budget":-1}`, 400},
		{"/global/budget/update", `{"models":[]}`, 400},
		{"/team/unknown", `{}`, 404},
		{"/team", `{}`, 404},
	} {
		a := b.call("POST", c.path, c.body)
		if _, _, code := errorOf(t, a); a.status != c.status || code != jsonInt(c.status) {
			t.Errorf("%s %s: %d %s, want %d", c.path, c.body, a.status, a.raw, c.status)
		}
	}
	if after := total(); after != before {
		t.Errorf("something was written:\n%s\n%s", before, after)
	}
	for _, sql := range []string{`'; DROP TABLE entities; --`, `" OR 1=1 --`, `%_\\`, `$1`, `?`, `{}`, `a:b`, `ünï`, `🙂`} {
		body := fmt.Sprintf(`{"user_id":%q,"alias":%q}`, sql, sql)
		same(t, b.ok("POST", "/customer/new", body), "alias", sql)
	}
}

// FuzzTeam looks for a body that is answered with anything but a team or a 400.
func FuzzTeam(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"team_id":"t","max_budget":1,"members_with_roles":[{"role":"admin","user_id":"u"}]}`, `{"budget_limits":[{"budget_duration":"1d","max_budget":2}]}`,
		`{"team_member_budget":1.5}`, `{"members_with_roles":{"user_email":"a@b.c"}}`, `{"budget_id":"x"}`, `{"organization_id":"o"}`, `{"team_id":"a#1d"}`,
	} {
		f.Add(seed)
	}
	b := setup(f)
	f.Fuzz(func(t *testing.T, body string) {
		a := (&bundle{t: t, api: b.api, store: b.store}).call("POST", "/team/new", body)
		if a.status == http.StatusOK {
			return
		}
		if _, _, code := errorOf(t, a); code != "400" {
			t.Fatalf("%q: %d %s", body, a.status, a.raw)
		}
	})
}
