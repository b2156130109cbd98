package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// Who names a template takes its limit, unless they have one of their own.
func directoryTemplates(e *env) {
	e.beat()
	e.create(store.Entity{Kind: store.KindTemplate, ID: "b", MaxBudget: nano(usd), BudgetDuration: "1d"},
		store.Entity{Kind: store.KindCustomer, ID: "c", SettingsJSON: `{"budget_id":"b"}`},
		store.Entity{Kind: store.KindTag, ID: "own", MaxBudget: nano(7 * usd), SettingsJSON: `{"budget_id":"b"}`})
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "k", SettingsJSON: `{"budget_id":"b"}`}))
	limits := func() string {
		return e.sql(`SELECT entity, limit_n, duration FROM budgets WHERE current ORDER BY entity`)
	}
	equal(e, "made", limits(), fmt.Sprintf("customer:c|%d|1d\nkey:k|%d|1d\ntag:own|%d|", usd, usd, 7*usd))
	a, err := e.Admit(e.ctx, "k")
	e.ok(err)
	equal(e, "the key's limit", *a.Limit, usd)
	l := e.lease(1, 50*cent, "customer:c")
	e.commit(record(1, "k", 20*cent, 0, l))
	two := nano(2 * usd)
	hour := "1h"
	e.patch("budget:b", store.EntityPatch{MaxBudget: &two, BudgetDuration: &hour})
	equal(e, "raised", limits(), fmt.Sprintf("customer:c|%d|1h\nkey:k|%d|1h\ntag:own|%d|", 2*usd, 2*usd, 7*usd))
	c, err := e.Entity(e.ctx, "customer:c")
	e.ok(err)
	equal(e, "spend is kept", c.Spend, 20*cent)
	_, err = e.DeleteEntities(e.ctx, []string{"budget:b"}, "bob")
	e.refuses("in use", err, store.ErrInUse)
	var none *int64
	e.patch("budget:b", store.EntityPatch{MaxBudget: &none})
	equal(e, "no limit", limits(), fmt.Sprintf("tag:own|%d|", 7*usd))
	e.patch("budget:b", store.EntityPatch{MaxBudget: &two})
	e.patch("customer:c", store.EntityPatch{Settings: settings("budget_id", "null")})
	e.patch("tag:own", store.EntityPatch{MaxBudget: &none})
	_, err = e.UpdateKey(e.ctx, "k", store.KeyPatch{Settings: settings("budget_id", "null")})
	e.ok(err)
	equal(e, "left", limits(), fmt.Sprintf("tag:own|%d|1h", 2*usd))
	e.patch("tag:own", store.EntityPatch{Settings: settings("budget_id", "null")})
	gone, err := e.DeleteEntities(e.ctx, []string{"budget:b"}, "bob")
	e.ok(err)
	equal(e, "deleted when nobody uses it", fmt.Sprint(gone), "[budget:b]")
}

func directoryMembers(e *env) {
	e.create(store.Entity{Kind: store.KindTeam, ID: "t", SettingsJSON: `{"team_member_budget":1.5,"team_member_budget_duration":"1mo"}`},
		store.Entity{Kind: store.KindUser, ID: "a"}, store.Entity{Kind: store.KindUser, ID: "b"},
		store.Entity{Kind: store.KindMember, TeamID: "t", ID: "a"}, store.Entity{Kind: store.KindMember, TeamID: "t", ID: "b", MaxBudget: nano(usd)})
	limits := func() string {
		return e.sql(`SELECT entity, limit_n, duration FROM budgets WHERE current ORDER BY entity`)
	}
	equal(e, "the team's, or their own", limits(), fmt.Sprintf("member:t/a|%d|1mo\nmember:t/b|%d|", 3*usd/2, usd))
	e.patch("team:t", store.EntityPatch{Settings: settings("team_member_budget", "2")})
	equal(e, "raised", limits(), fmt.Sprintf("member:t/a|%d|1mo\nmember:t/b|%d|", 2*usd, usd))
	e.patch("team:t", store.EntityPatch{Settings: settings("team_member_budget", "null")})
	equal(e, "taken away", limits(), fmt.Sprintf("member:t/b|%d|", usd))
}

// Spend is reported without a budget too. One who comes again starts at zero; who is
// named by requests before they were made keeps what they spent.
func directorySpend(e *env) {
	rec := func(seq uint64) store.Record {
		r := record(seq, "k", 5*cent, 0)
		r.UserID, r.TeamID, r.OrganizationID, r.EndUser, r.Tags = "u", "t", "o", "c", []string{"g", "g", "h"}
		return r
	}
	e.commit(rec(1))
	all := []store.Entity{
		{Kind: store.KindOrganization, ID: "o"}, {Kind: store.KindTeam, ID: "t"}, {Kind: store.KindUser, ID: "u"}, {Kind: store.KindMember, TeamID: "t", ID: "u"},
		{Kind: store.KindCustomer, ID: "c"}, {Kind: store.KindTag, ID: "g"}, {Kind: store.KindGlobal},
	}
	e.create(all...)
	e.commit(rec(2), rec(3))
	other := record(4, "k", cent, 0)
	other.UserID = "u"
	e.commit(other)
	want := map[string]int64{"user:u": 11 * cent, "customer:c": 15 * cent, "tag:g": 15 * cent, "global": 11 * cent}
	for _, entity := range all {
		name := entity.Name()
		spend := 10 * cent
		if w, ok := want[name]; ok {
			spend = w
		}
		got, err := e.Entity(e.ctx, name)
		e.ok(err)
		equal(e, name, got.Spend, spend)
		equal(e, name+" corrected", e.patch(name, store.EntityPatch{Spend: nano(3 * cent)}).Spend, 3*cent)
	}
	limit := nano(usd)
	e.patch("team:t", store.EntityPatch{MaxBudget: &limit})
	equal(e, "a budget that comes later knows it", e.budget("team:t"), fmt.Sprintf("%d|0|0|0", 3*cent))
	equal(e, "sums by subject", e.sql(`SELECT subject, sum(requests), sum(input), sum(cost) FROM spend_subjects GROUP BY subject ORDER BY subject`),
		fmt.Sprintf("customer:c|3|30|%[1]d\ntag:g|3|30|%[1]d\ntag:h|3|30|%[1]d", 15*cent))
}

// Keys and memberships go with their team, their user and their membership.
func directoryDelete(e *env) {
	e.beat()
	e.create(store.Entity{Kind: store.KindTeam, ID: "t", MaxBudget: nano(usd)}, store.Entity{Kind: store.KindTeam, ID: "s"},
		store.Entity{Kind: store.KindUser, ID: "u"}, store.Entity{Kind: store.KindUser, ID: "v"},
		store.Entity{Kind: store.KindMember, TeamID: "t", ID: "u", MaxBudget: nano(usd)},
		store.Entity{Kind: store.KindMember, TeamID: "s", ID: "u"}, store.Entity{Kind: store.KindMember, TeamID: "s", ID: "v"})
	for _, k := range []store.Key{{ID: "k1", TeamID: "t", MaxBudget: nano(usd)}, {ID: "k2", TeamID: "s", UserID: "u"}, {ID: "k3", UserID: "u"}, {ID: "k4", TeamID: "s", UserID: "v"}, {ID: "k5"}} {
		e.ok(e.CreateKey(e.ctx, k))
	}
	left := func() string {
		return e.sql(`SELECT name FROM entities UNION ALL SELECT id FROM keys ORDER BY 1`)
	}
	remove := func(names ...string) {
		e.Helper()
		gone, err := e.DeleteEntities(e.ctx, names, "bob")
		e.ok(err)
		slices.Sort(names)
		equal(e, "gone", fmt.Sprint(gone), fmt.Sprint(names))
	}
	remove("team:t")
	equal(e, "team", left(), "k2\nk3\nk4\nk5\nmember:s/u\nmember:s/v\nteam:s\nuser:u\nuser:v")
	equal(e, "no budget of it pays", e.sql(`SELECT count(*) FROM budgets WHERE current`), "0")
	remove("member:s/v")
	equal(e, "member", left(), "k2\nk3\nk5\nmember:s/u\nteam:s\nuser:u\nuser:v")
	remove("user:u", "user:v")
	equal(e, "user", left(), "k5\nteam:s")
	equal(e, "every deletion is audited", e.sql(`SELECT count(*) FROM audit WHERE action = 'delete' AND actor = 'bob' AND before IS NOT NULL`), "10")
	e.refuses("a deleted team takes no key", e.CreateKey(e.ctx, store.Key{ID: "k6", TeamID: "t"}), store.ErrInvalid)
}

// A team with more keys than one transaction deletes goes whole, and no poller misses
// a key.
func directoryDeleteMany(e *env) {
	const keys = 350 // more than one transaction deletes
	e.create(store.Entity{Kind: store.KindTeam, ID: "t"})
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "first", TeamID: "t"}))
	e.sql(`INSERT INTO keys (id, team_id, created_at, updated_at) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 'k' || i, team_id, created_at, updated_at FROM keys, n`, keys)
	_, position, err := e.Changes(e.ctx, -1)
	e.ok(err)
	gone, err := e.DeleteEntities(e.ctx, []string{"team:t"}, "bob")
	e.ok(err)
	equal(e, "gone", len(gone), 1)
	equal(e, "no key is left", e.sql(`SELECT count(*) FROM keys`), "0")
	names := []string{"team:t", "first"}
	for i := range keys {
		names = append(names, fmt.Sprintf("k%d", i+1))
	}
	e.told(position, names...)
	if errors.Is(e.CreateKey(e.ctx, store.Key{ID: "late", TeamID: "t"}), nil) {
		e.Fatal("a key of a deleted team was made")
	}
}

// A limit that is set while a grant makes the next period's row is the limit that stands.
func directoryContention(e *env) {
	e.create(store.Entity{Kind: store.KindTeam, ID: "t", MaxBudget: nano(100 * usd), BudgetDuration: "1d"})
	const rounds, workers = 6, 4
	for i := range workers {
		e.beatFor(store.HolderID(fmt.Sprintf("pod/%d/aa", i)), time.Hour)
	}
	for round := range rounds {
		e.sql(`UPDATE budgets SET until_ts = from_ts WHERE current`)
		errs := make(chan error, workers+1)
		for i := range workers {
			go func() {
				_, err := e.Grant(e.ctx, store.Grant{Holder: store.HolderID(fmt.Sprintf("pod/%d/aa", i)), Seq: uint64(round + 1),
					Wants: []store.Want{{Entities: []string{"team:t"}, Amount: cent}}})
				errs <- err
			}()
		}
		limit := nano(int64(101+round) * usd)
		go func() {
			_, err := e.UpdateEntity(e.ctx, "team:t", store.EntityPatch{MaxBudget: &limit})
			errs <- err
		}()
		for range workers + 1 {
			e.ok(<-errs)
		}
		e.lawful()
		equal(e, "one row, with the new limit", e.sql(`SELECT limit_n FROM budgets WHERE current AND entity = 'team:t' AND until_ts > from_ts`), fmt.Sprint(*limit))
	}
}
