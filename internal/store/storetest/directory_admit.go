package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// Several windows of one entity are budgets of their own that all must pay.
func directoryWindows(e *env) {
	e.beat()
	id := keyID("a")
	main, day, month := store.KeyEntity(id), store.KeyEntity(id)+"#1d", store.KeyEntity(id)+"#1mo"
	e.ok(e.CreateKey(e.ctx, store.Key{ID: id, MaxBudget: nano(10 * usd),
		SettingsJSON: `{"budget_limits":[{"budget_duration":"1d","max_budget":1},{"time_period":"1mo","budget_limit":5.5}]}`}))
	got, err := e.Admit(e.ctx, id)
	e.ok(err)
	equal(e, "all must pay", fmt.Sprint(got.Entities), fmt.Sprint([]string{main, day, month}))
	res := e.grant(1, 60*cent, main, day, month)
	equal(e, "granted", res.Results[0].Outcome, store.Granted)
	names := func(r store.GrantResult) string {
		var names []string
		for _, l := range r.Leases {
			names = append(names, l.Entity)
		}
		slices.Sort(names)
		return fmt.Sprint(names)
	}
	equal(e, "leases are named as asked", names(res), fmt.Sprint([]string{main, day, month}))
	equal(e, "and when repeated", names(e.grant(1, 60*cent, main, day, month)), fmt.Sprint([]string{main, day, month}))
	refs := []store.LeaseRef{res.Leases[0].LeaseRef, res.Leases[1].LeaseRef, res.Leases[2].LeaseRef}
	e.commit(record(1, id, 60*cent, 0, refs...))
	res = e.grant(2, 60*cent, main, day, month)
	equal(e, "one window refuses", fmt.Sprint(res.Results[0].Outcome, res.Results[0].Entity, len(res.Leases)), fmt.Sprint(store.Exceeded, day, 0))
	change := func(value string) {
		e.Helper()
		_, err := e.UpdateKey(e.ctx, id, store.KeyPatch{Settings: settings("budget_limits", value)})
		e.ok(err)
		e.lawful()
	}
	windows := func() string {
		return e.sql(`SELECT win, limit_n, spent + coalesce((SELECT sum(l.spent) FROM leases l WHERE l.budget = budgets.id AND l.state = 'open'), 0)
			FROM budgets WHERE current AND entity = '%s' ORDER BY win`, main)
	}
	change(`[{"budget_duration":"1d","max_budget":3},{"budget_duration":"1h","max_budget":4}]`)
	equal(e, "raised in place, one gone, one new", windows(),
		fmt.Sprintf("|%d|%d\n1d|%d|%d\n1h|%d|0", 10*usd, 60*cent, 3*usd, 60*cent, 4*usd))
	equal(e, "the raised one pays", e.grant(3, 60*cent, main, day).Results[0].Outcome, store.Granted)
	_, err = e.UpdateKey(e.ctx, id, store.KeyPatch{Spend: nano(usd)})
	e.ok(err)
	equal(e, "a correction is of the main budget", windows(), fmt.Sprintf("|%d|%d\n1d|%d|%d\n1h|%d|0", 10*usd, usd, 3*usd, 60*cent, 4*usd))
	_, err = e.UpdateKey(e.ctx, id, store.KeyPatch{Spend: nano(0)})
	e.ok(err)
	equal(e, "a reset is of all", windows(), fmt.Sprintf("|%d|0\n1d|%d|0\n1h|%d|0", 10*usd, 3*usd, 4*usd))
	e.sql(`UPDATE budgets SET until_ts = anchor_ts WHERE current AND win = '1d'`)
	equal(e, "a window's next period", e.grant(4, 3*usd, day).Results[0].Outcome, store.Granted)
	change(`null`)
	equal(e, "only the main one is left", windows(), fmt.Sprintf("|%d|0", 10*usd))
	_, err = e.DeleteKeys(e.ctx, []string{id}, "bob")
	e.ok(err)
	equal(e, "all are gone", windows(), "")
}

// A key's budgets by model are asked for by name, as subjects are.
func directoryModels(e *env) {
	e.beat()
	id := keyID("a")
	e.ok(e.CreateKey(e.ctx, store.Key{ID: id, SettingsJSON: `{"model_max_budget":{"p/m 1":{"budget_limit":0.5,"time_period":"1d"},"m2":2,"m3":{"tpm_limit":7}}}`}))
	m1, m2 := store.ModelEntity(id, "p/m 1"), store.ModelEntity(id, "m2")
	got, err := e.Subjects(e.ctx, []string{m1, m2, store.ModelEntity(id, "m3")})
	e.ok(err)
	equal(e, "subjects", fmt.Sprint(got), fmt.Sprint([]store.Subject{
		{Name: m1, Found: true, Entities: []string{m1}}, {Name: m2, Found: true, Entities: []string{m2}}, {Name: store.ModelEntity(id, "m3")}}))
	equal(e, "within", e.grant(1, 50*cent, m1, m2).Results[0].Outcome, store.Granted)
	equal(e, "beyond", e.grant(2, cent, m1).Results[0].Outcome, store.Held)
	_, err = e.UpdateKey(e.ctx, id, store.KeyPatch{Settings: settings("model_max_budget", `{"m2":3}`)})
	e.ok(err)
	equal(e, "one model's is gone, one's is raised", e.sql(`SELECT entity, limit_n FROM budgets WHERE current`), fmt.Sprintf("%s|%d", m2, 3*usd))
	for _, bad := range []string{`{"m":{"budget_limit":-1}}`, `{"m":[]}`, `{"":1}`, `{"m#1d":1}`, `{"m":{"budget_limit":1,"time_period":"1y"}}`, `{"m":1e400}`} {
		_, err := e.UpdateKey(e.ctx, id, store.KeyPatch{Settings: settings("model_max_budget", bad)})
		e.refuses(bad, err, store.ErrInvalid)
	}
	_, err = e.DeleteKeys(e.ctx, []string{id}, "bob")
	e.ok(err)
	equal(e, "deleted with the key", e.sql(`SELECT count(*) FROM budgets WHERE current`), "0")
}

// A key's team, user and organization count for it.
func directoryAdmit(e *env) {
	e.create(
		store.Entity{Kind: store.KindOrganization, ID: "o", MaxBudget: nano(usd), Models: []string{"m1", "m2", "p/*"}},
		store.Entity{Kind: store.KindTeam, ID: "t", OrganizationID: "o", MaxBudget: nano(usd), Models: []string{"m1", "p/a", "q"}},
		store.Entity{Kind: store.KindUser, ID: "u", MaxBudget: nano(usd), Models: []string{"m2"}},
		store.Entity{Kind: store.KindUser, ID: "v"},
		store.Entity{Kind: store.KindMember, TeamID: "t", ID: "u", MaxBudget: nano(usd)})
	for _, k := range []store.Key{
		{ID: "team", TeamID: "t", UserID: "u", MaxBudget: nano(usd)},
		{ID: "own", UserID: "u"},
		{ID: "both", TeamID: "t", UserID: "v", Models: []string{"all-team-models", "m2"}},
		{ID: "loose", OrganizationID: "o", UserID: "stranger", Models: []string{"p/*", "z"}},
		{ID: "none", TeamID: "t", Models: []string{"z"}},
		{ID: "free"},
	} {
		e.ok(e.CreateKey(e.ctx, k))
	}
	check := func(id, want string) {
		e.Helper()
		a, err := e.Admit(e.ctx, id)
		e.ok(err)
		equal(e, id, fmt.Sprintf("%v %s %v %v", a.Entities, a.Key.OrganizationID, a.Key.Models, a.Key.Blocked), want)
	}
	check("team", "[org:o team:t member:t/u key:team] o [m1 p/a] false")
	check("own", "[user:u]  [m2] false")
	check("both", "[org:o team:t] o [m1 p/a] false")
	check("loose", "[org:o] o [p/*] false")
	check("none", "[org:o team:t] o [no-default-models] false")
	check("free", "[]  [] false")
	e.create(store.Entity{Kind: store.KindGlobal, MaxBudget: nano(usd)})
	check("free", "[global]  [] false")
	yes := true
	e.patch("team:t", store.EntityPatch{Blocked: &yes})
	check("team", "[global org:o team:t member:t/u key:team] o [m1 p/a] true")
	check("own", "[global user:u]  [m2] false")
	e.patch("user:u", store.EntityPatch{Blocked: &yes})
	check("own", "[global user:u]  [m2] true")
	_, err := e.Admit(e.ctx, "absent")
	e.refuses("unknown", err, store.ErrNotFound)
	a, err := e.Admit(e.ctx, "team")
	e.ok(err)
	var related []string
	for _, r := range a.Related {
		related = append(related, r.Name())
	}
	equal(e, "what counts for it", fmt.Sprint(related), "[global member:t/u org:o team:t user:u]")
	row, err := e.Key(e.ctx, "team")
	e.ok(err)
	equal(e, "the key's own row is as it was made", fmt.Sprintf("%q %v %v", row.OrganizationID, row.Models, row.Blocked), `"" [] false`)
}

func directorySubjects(e *env) {
	e.create(store.Entity{Kind: store.KindCustomer, ID: "c", Blocked: true},
		store.Entity{Kind: store.KindTag, ID: "g", MaxBudget: nano(usd), SettingsJSON: `{"budget_limits":[{"budget_duration":"1d","max_budget":1}]}`})
	got, err := e.Subjects(e.ctx, []string{"tag:g", "customer:x", "customer:c", "tag:\x00", "tag:g#1d"})
	e.ok(err)
	sameJSON(e, got[0].SettingsJSON, `{"budget_limits":[{"budget_duration":"1d","max_budget":1}]}`)
	for i := range got {
		got[i].SettingsJSON = ""
	}
	equal(e, "in their order", fmt.Sprint(got), fmt.Sprint([]store.Subject{
		{Name: "tag:g", Found: true, Entities: []string{"tag:g", "tag:g#1d"}}, {Name: "customer:x"},
		{Name: "customer:c", Found: true, Blocked: true}, {Name: "tag:\x00"}, {Name: "tag:g#1d"}})) // a window is no subject
}

// What a worker has cached is found by whatever changed.
func directoryDependents(e *env) {
	e.create(store.Entity{Kind: store.KindOrganization, ID: "o"}, store.Entity{Kind: store.KindTemplate, ID: "b"},
		store.Entity{Kind: store.KindTeam, ID: "t", OrganizationID: "o"}, store.Entity{Kind: store.KindTeam, ID: "w", SettingsJSON: `{"budget_id":"b"}`},
		store.Entity{Kind: store.KindUser, ID: "u"}, store.Entity{Kind: store.KindCustomer, ID: "c", SettingsJSON: `{"budget_id":"b"}`})
	for _, k := range []store.Key{{ID: "k1", TeamID: "t", UserID: "u"}, {ID: "k2", TeamID: "t"}, {ID: "k3", UserID: "u"}, {ID: "k4", OrganizationID: "o"},
		{ID: "k5", SettingsJSON: `{"budget_id":"b"}`}, {ID: "k6", TeamID: "w"}, {ID: "k7"}} {
		e.ok(e.CreateKey(e.ctx, k))
	}
	_, err := e.RotateKey(e.ctx, store.Rotation{ID: "k3", Secret: "s3"})
	e.ok(err)
	for name, want := range map[string]string{
		"k7": "[k7] []", "gone": "[gone] []", "team:t": "[k1 k2] []", "user:u": "[k1 k3 s3] []", "member:t/u": "[k1] []",
		"org:o": "[k1 k2 k4] []", "budget:b": "[k5 k6] [customer:c team:w]", "customer:c": "[] []", "tag:\x00": "[] []", "team:": "[] []",
	} {
		got, err := e.Dependents(e.ctx, []string{name}, 10)
		e.ok(err)
		slices.Sort(got.Secrets)
		slices.Sort(got.Subjects)
		equal(e, name, fmt.Sprint(got.Secrets, got.Subjects, got.TooMany), want+" false")
	}
	for name, most := range map[string]int{"team:t": 1, "budget:b": 3, "global": 100} {
		got, err := e.Dependents(e.ctx, []string{name}, most)
		e.ok(err)
		equal(e, name+" has too many", got.TooMany, true)
	}
}

// A new secret opens the key, an old one for as long as it was told.
func directoryRotate(e *env) {
	e.beat()
	id, entity := e.key("a", usd)
	l := e.lease(1, 50*cent, entity)
	rotate := func(secret string, grace time.Duration) {
		e.Helper()
		_, err := e.RotateKey(e.ctx, store.Rotation{ID: id, Secret: secret, Name: "sk-..." + secret, Grace: grace, By: "bob"})
		e.ok(err)
	}
	opens := func(secret string) string {
		a, err := e.Admit(e.ctx, secret)
		if err != nil {
			e.refuses(secret, err, store.ErrNotFound)
			return "no"
		}
		equal(e, "it is the same key", a.Key.ID, id)
		if a.Key.Expires.IsZero() {
			return "yes"
		}
		return fmt.Sprintf("%.0fh", time.Until(a.Key.Expires).Hours())
	}
	_, position, err := e.Changes(e.ctx, -1)
	e.ok(err)
	rotate("s1", 3*time.Hour)
	equal(e, "with grace", opens(id)+" "+opens("s1"), "3h yes")
	e.commit(record(1, id, 20*cent, 0, l))
	k, err := e.Key(e.ctx, id)
	e.ok(err)
	equal(e, "budget and spend go on", fmt.Sprint(*k.MaxBudget, k.Spend, k.Name), fmt.Sprint(usd, 20*cent, "sk-...s1"))
	rotate("s2", time.Hour)
	equal(e, "again: the last but one ends", strings.Join([]string{opens(id), opens("s1"), opens("s2")}, " "), "no 1h yes")
	rotate("s3", 0)
	equal(e, "without grace", strings.Join([]string{opens(id), opens("s1"), opens("s2"), opens("s3")}, " "), "no no no yes")
	e.told(position, id, "s1", "s2")
	e.refuses("a secret of another key", e.CreateKey(e.ctx, store.Key{ID: "s3"}), store.ErrConflict)
	_, err = e.RotateKey(e.ctx, store.Rotation{ID: id, Secret: id})
	e.refuses("back to the first", err, store.ErrConflict)
	_, err = e.RotateKey(e.ctx, store.Rotation{ID: "absent", Secret: "s9"})
	e.refuses("absent", err, store.ErrNotFound)
	equal(e, "audited", e.sql(`SELECT count(*) FROM audit WHERE action = 'regenerate' AND actor = 'bob'`), "3")
	_, err = e.DeleteKeys(e.ctx, []string{id}, "bob")
	e.ok(err)
	equal(e, "deleted", opens("s3"), "no")
	e.told(position, "s3")
}
