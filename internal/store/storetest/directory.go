package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// directoryTests are the tests of store.Directory.
var directoryTests = []test{
	{"directory/round trip", directoryRoundTrip},
	{"directory/conflicts and absence", directoryConflicts},
	{"directory/bad values", directoryBadValues},
	{"directory/patch", directoryPatch},
	{"directory/pages", directoryPages},
	{"directory/budgets of all entities", directoryBudgets},
	{"directory/budgets change while they are granted from", directoryContention},
	{"directory/windows", directoryWindows},
	{"directory/models of a key", directoryModels},
	{"directory/templates", directoryTemplates},
	{"directory/members take their team's limit", directoryMembers},
	{"directory/spend", directorySpend},
	{"directory/admit", directoryAdmit},
	{"directory/subjects", directorySubjects},
	{"directory/dependents", directoryDependents},
	{"directory/delete", directoryDelete},
	{"directory/delete with many keys", directoryDeleteMany},
	{"directory/rotate", directoryRotate},
}

func nano(n int64) *int64 { return &n }

func (e *env) create(entities ...store.Entity) {
	e.Helper()
	for i := range entities {
		entities[i].CreatedBy = "admin"
	}
	e.ok(e.CreateEntities(e.ctx, entities))
}

// refuses asserts that err is the expected error.
func (e *env) refuses(what string, err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func (e *env) patch(name string, p store.EntityPatch) store.Entity {
	e.Helper()
	p.UpdatedBy = "bob"
	got, err := e.UpdateEntity(e.ctx, name, p)
	e.ok(err)
	e.lawful()
	return got
}

func settings(name, value string) map[string]json.RawMessage {
	return map[string]json.RawMessage{name: json.RawMessage(value)}
}

// An entity comes back as it went in, and its making is audited.
func directoryRoundTrip(e *env) {
	all := []store.Entity{
		{Kind: store.KindOrganization, ID: "o1", Alias: "Org", Models: []string{"m1"}, MaxBudget: nano(9 * usd)},
		{Kind: store.KindTeam, ID: "t1", Alias: "Schlüssel-中文-🙂", OrganizationID: "o1", Blocked: true, MaxBudget: nano(usd), BudgetDuration: "30d",
			MetadataJSON: `{"a":{"b":[1,2.50]}}`, SettingsJSON: `{"rpm_limit":7}`},
		{Kind: store.KindUser, ID: "u/1 '; DROP TABLE keys; --", Email: "A@b.c", Role: store.RoleAdmin, Models: []string{"m1", "p/*"}},
		{Kind: store.KindMember, TeamID: "t1", ID: "u/1 '; DROP TABLE keys; --", Role: store.RoleTeam},
		{Kind: store.KindCustomer, ID: "c#1", Alias: "Cust"},
		{Kind: store.KindTag, ID: "x:y", MaxBudget: nano(0)},
		{Kind: store.KindTemplate, ID: "small", MaxBudget: nano(cent), BudgetDuration: "1mo"},
		{Kind: store.KindGlobal, MaxBudget: nano(100 * usd)},
	}
	e.create(all...)
	for _, want := range all {
		got, err := e.Entity(e.ctx, want.Name())
		e.ok(err)
		if want.BudgetDuration != "" && want.Kind == store.KindTeam {
			if d := time.Until(got.BudgetResetAt); d < 29*24*time.Hour || d > 30*24*time.Hour {
				e.Fatalf("reset in %v, want 30 days", d)
			}
		}
		if time.Since(got.CreatedAt).Abs() > time.Minute {
			e.Fatalf("created %v", got.CreatedAt)
		}
		e.ok(want.Normalize())
		sameJSON(e, got.MetadataJSON, want.MetadataJSON)
		sameJSON(e, got.SettingsJSON, want.SettingsJSON)
		want.CreatedAt, want.UpdatedAt, want.BudgetResetAt, want.Version = got.CreatedAt, got.UpdatedAt, got.BudgetResetAt, 1
		want.MetadataJSON, want.SettingsJSON, want.UpdatedBy = got.MetadataJSON, got.SettingsJSON, "admin"
		if !reflect.DeepEqual(got, want) {
			e.Fatalf("got  %+v\nwant %+v", got, want)
		}
	}
	equal(e, "audited", e.sql(`SELECT actor, action, subject FROM audit WHERE subject = 'team:t1'`), "admin|create|team:t1")
	equal(e, "told to pollers", e.sql(`SELECT count(*) FROM changes`), fmt.Sprint(len(all)))
	equal(e, "a template holds no money", e.sql(`SELECT count(*) FROM budgets WHERE entity LIKE 'budget:%%'`), "0")
}

// A name, an alias and an email belong to one; a list is made whole or not at all.
func directoryConflicts(e *env) {
	e.create(
		store.Entity{Kind: store.KindTeam, ID: "t1", Alias: "one"},
		store.Entity{Kind: store.KindUser, ID: "u1", Alias: "Ann", Email: "ann@x.y"},
		store.Entity{Kind: store.KindUser, ID: "u2", Alias: "Ann"}, // people may share a name
		store.Entity{Kind: store.KindOrganization, ID: "t1", Alias: "one"})
	rows := func() string { return e.sql(`SELECT (SELECT count(*) FROM entities), (SELECT count(*) FROM audit)`) }
	before := rows()
	for why, c := range map[string]struct {
		entity store.Entity
		want   error
	}{
		"id":                       {store.Entity{Kind: store.KindTeam, ID: "t1"}, store.ErrConflict},
		"alias of a team":          {store.Entity{Kind: store.KindTeam, ID: "t2", Alias: "one"}, store.ErrConflict},
		"alias of an organization": {store.Entity{Kind: store.KindOrganization, ID: "o2", Alias: "one"}, store.ErrConflict},
		"email in another case":    {store.Entity{Kind: store.KindUser, ID: "u3", Email: "ANN@x.y"}, store.ErrConflict},
		"unknown organization":     {store.Entity{Kind: store.KindTeam, ID: "t2", OrganizationID: "o9"}, store.ErrInvalid},
		"unknown template":         {store.Entity{Kind: store.KindCustomer, ID: "c", SettingsJSON: `{"budget_id":"none"}`}, store.ErrInvalid},
		"member of no team":        {store.Entity{Kind: store.KindMember, TeamID: "t9", ID: "u1"}, store.ErrInvalid},
		"member who is no user":    {store.Entity{Kind: store.KindMember, TeamID: "t1", ID: "u9"}, store.ErrInvalid},
	} {
		e.refuses(why, e.CreateEntities(e.ctx, []store.Entity{{Kind: store.KindTag, ID: "first"}, c.entity}), c.want)
	}
	alias := "one"
	e.create(store.Entity{Kind: store.KindTeam, ID: "t3"})
	before = e.sql(`SELECT %s + 1, %s + 1`, strings.Split(before, "|")[0], strings.Split(before, "|")[1])
	_, err := e.UpdateEntity(e.ctx, "team:t3", store.EntityPatch{Alias: &alias})
	e.refuses("alias by update", err, store.ErrConflict)
	_, err = e.Entity(e.ctx, "team:t9")
	e.refuses("absent", err, store.ErrNotFound)
	_, err = e.UpdateEntity(e.ctx, "team:t9", store.EntityPatch{})
	e.refuses("update of an absent one", err, store.ErrNotFound)
	gone, err := e.DeleteEntities(e.ctx, []string{"team:t9"}, "bob")
	e.ok(err)
	equal(e, "nothing deleted", len(gone), 0)
	e.refuses("key of an unknown team", e.CreateKey(e.ctx, store.Key{ID: "k", TeamID: "t9"}), store.ErrInvalid)
	e.refuses("key of an unknown organization", e.CreateKey(e.ctx, store.Key{ID: "k", OrganizationID: "o9"}), store.ErrInvalid)
	e.refuses("key of an unknown template", e.CreateKey(e.ctx, store.Key{ID: "k", SettingsJSON: `{"budget_id":"none"}`}), store.ErrInvalid)
	equal(e, "nothing was written", rows(), before)
}

func directoryBadValues(e *env) {
	e.create(store.Entity{Kind: store.KindTeam, ID: "t"}, store.Entity{Kind: store.KindUser, ID: "nul\x00\xff"})
	_, err := e.Entity(e.ctx, "user:nul\uFFFD")
	e.ok(err)
	for _, name := range []string{"user:nul\x00", "team:\xff"} {
		_, err := e.Entity(e.ctx, name)
		e.refuses("a name that no database holds", err, store.ErrNotFound)
		_, err = e.UpdateEntity(e.ctx, name, store.EntityPatch{})
		e.refuses("its update", err, store.ErrNotFound)
		gone, err := e.DeleteEntities(e.ctx, []string{name}, "bob")
		e.ok(err)
		equal(e, "its deletion", len(gone), 0)
		_, err = e.Admit(e.ctx, name)
		e.refuses("its admission", err, store.ErrNotFound)
	}
	for why, bad := range map[string]store.Entity{
		"no id":                    {Kind: store.KindTeam},
		"unknown kind":             {Kind: "galaxy", ID: "x"},
		"slash in a team":          {Kind: store.KindTeam, ID: "a/b"},
		"an id like a window":      {Kind: store.KindCustomer, ID: "c#1d"},
		"long id":                  {Kind: store.KindTag, ID: strings.Repeat("x", 241)},
		"long alias":               {Kind: store.KindTag, ID: "x", Alias: strings.Repeat("x", 2000)},
		"negative budget":          {Kind: store.KindTag, ID: "x", MaxBudget: nano(-1)},
		"unknown period":           {Kind: store.KindTag, ID: "x", BudgetDuration: "1y"},
		"metadata":                 {Kind: store.KindTag, ID: "x", MetadataJSON: `{"a":`},
		"nul in settings":          {Kind: store.KindTag, ID: "x", SettingsJSON: `{"a":"\u0000"}`},
		"window without a period":  {Kind: store.KindTag, ID: "x", SettingsJSON: `{"budget_limits":[{"max_budget":1}]}`},
		"window twice":             {Kind: store.KindTag, ID: "x", SettingsJSON: `{"budget_limits":[{"max_budget":1,"budget_duration":"1d"},{"max_budget":2,"budget_duration":"1d"}]}`},
		"window of no amount":      {Kind: store.KindTag, ID: "x", SettingsJSON: `{"budget_limits":[{"budget_duration":"1d"}]}`},
		"window of minus one":      {Kind: store.KindTag, ID: "x", SettingsJSON: `{"budget_limits":[{"max_budget":-1,"budget_duration":"1d"}]}`},
		"window of 1e400":          {Kind: store.KindTag, ID: "x", SettingsJSON: `{"budget_limits":[{"max_budget":1e400,"budget_duration":"1d"}]}`},
		"windows that are no list": {Kind: store.KindTag, ID: "x", SettingsJSON: `{"budget_limits":7}`},
		"member budget":            {Kind: store.KindTeam, ID: "x", SettingsJSON: `{"team_member_budget":-7}`},
		"organization in a team":   {Kind: store.KindOrganization, ID: "x", TeamID: "t"},
	} {
		e.refuses(why, e.CreateEntities(e.ctx, []store.Entity{bad}), store.ErrInvalid)
	}
	_, err = e.UpdateEntity(e.ctx, "team:t", store.EntityPatch{Spend: nano(-1)})
	e.refuses("negative spend", err, store.ErrInvalid)
	equal(e, "nothing was written", e.sql(`SELECT count(*) FROM entities`), "2")
}

// A patch changes what it names and nothing else.
func directoryPatch(e *env) {
	e.create(store.Entity{Kind: store.KindOrganization, ID: "o"}, store.Entity{Kind: store.KindTeam, ID: "t", Alias: "a", MaxBudget: nano(usd), SettingsJSON: `{"x":1,"y":2}`})
	blocked, org, models := true, "o", []string{"m"}
	got := e.patch("team:t", store.EntityPatch{Blocked: &blocked, OrganizationID: &org, Models: &models, Settings: settings("x", "null")})
	equal(e, "version", got.Version, 2)
	equal(e, "all of it", fmt.Sprint(got.Blocked, got.OrganizationID, got.Models, got.Alias, *got.MaxBudget, got.UpdatedBy, got.CreatedBy), fmt.Sprint(true, "o", models, "a", usd, "bob", "admin"))
	sameJSON(e, got.SettingsJSON, `{"y":2}`)
	equal(e, "audited with before and after", e.sql(`SELECT actor, action FROM audit WHERE subject = 'team:t' AND before IS NOT NULL AND after IS NOT NULL`), "bob|update")
	_, err := e.DeleteEntities(e.ctx, []string{"org:o"}, "bob")
	e.refuses("an organization with teams", err, store.ErrInUse)
}

func directoryPages(e *env) {
	e.create(store.Entity{Kind: store.KindOrganization, ID: "o"})
	for i := range 25 {
		e.create(store.Entity{Kind: store.KindTeam, ID: fmt.Sprintf("t%02d", i), Alias: fmt.Sprint("a", i), OrganizationID: []string{"", "o"}[i%2]})
	}
	list := func(f store.EntityFilter) string {
		e.Helper()
		page, err := e.ListEntities(e.ctx, f)
		e.ok(err)
		ids := make([]string, len(page.Entities))
		for i, got := range page.Entities {
			ids[i] = got.ID
		}
		return fmt.Sprint(page.Total, ids)
	}
	equal(e, "a page", list(store.EntityFilter{Kind: store.KindTeam, Page: 3, Size: 10}), "25 [t04 t03 t02 t01 t00]")
	equal(e, "organization", list(store.EntityFilter{Kind: store.KindTeam, OrganizationID: "o", Size: 2}), "12 [t23 t21]")
	equal(e, "alias", list(store.EntityFilter{Kind: store.KindTeam, Alias: "a7"}), "1 [t07]")
	equal(e, "ids", list(store.EntityFilter{Kind: store.KindTeam, IDs: []string{"t01", "t02", "x", "\x00"}}), "2 [t02 t01]")
	equal(e, "no ids", list(store.EntityFilter{Kind: store.KindTeam, IDs: []string{}}), "0 []")
	equal(e, "kind", list(store.EntityFilter{Kind: store.KindUser}), "0 []")
	equal(e, "a name that no database holds", list(store.EntityFilter{Kind: store.KindTeam, Alias: "\x00"}), "0 []")
}

// The budgets of every entity keep the law: open, lowered, raised, corrected, taken
// away, given again, deleted.
func directoryBudgets(e *env) {
	e.beat()
	e.create(store.Entity{Kind: store.KindTeam, ID: "t"}, store.Entity{Kind: store.KindUser, ID: "u"})
	grants, records := uint64(0), uint64(0)
	ask := func(amount int64, name string) store.Outcome {
		grants++
		return e.grant(grants, amount, name).Results[0].Outcome
	}
	for _, entity := range []store.Entity{
		{Kind: store.KindOrganization, ID: "o"}, {Kind: store.KindTeam, ID: "x"}, {Kind: store.KindMember, TeamID: "t", ID: "u"},
		{Kind: store.KindUser, ID: "x"}, {Kind: store.KindCustomer, ID: "c"}, {Kind: store.KindTag, ID: "g"}, {Kind: store.KindGlobal},
	} {
		entity.MaxBudget = nano(usd)
		e.create(entity)
		name := entity.Name()
		grants++
		l := e.lease(grants, 60*cent, name)
		records++
		e.commit(record(records, "k", 20*cent, 0, l))
		limit := func(n *int64) store.Entity { return e.patch(name, store.EntityPatch{MaxBudget: &n}) }
		equal(e, name+" reports what open leases spent", limit(nano(70*cent)).Spend, 20*cent)
		equal(e, name+" lowered, the money is gone", ask(51*cent, name), store.Exceeded)
		equal(e, name+" lowered, the money is held", ask(11*cent, name), store.Held)
		limit(nano(2 * usd))
		equal(e, name+" raised", ask(usd, name), store.Granted)
		equal(e, name+" reset", e.patch(name, store.EntityPatch{Spend: nano(0)}).Spend, 0)
		limit(nil)
		equal(e, name+" has none", e.budget(name), "")
		one := nano(usd)
		e.patch(name, store.EntityPatch{MaxBudget: &one, Spend: nano(30 * cent)})
		equal(e, name+" has one again", e.budget(name), fmt.Sprintf("%d|0|0|0", 30*cent))
		_, err := e.DeleteEntities(e.ctx, []string{name}, "bob")
		e.ok(err)
		equal(e, name+" deleted", ask(0, name), store.UnknownEntity)
	}
}
