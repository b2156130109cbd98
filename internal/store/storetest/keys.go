package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// A key comes back as it went in.
func keysRoundTrip(e *env) {
	limit := 5 * usd
	e.create(store.Entity{Kind: store.KindOrganization, ID: "o1"}, store.Entity{Kind: store.KindTeam, ID: "t1"})
	k := store.Key{
		ID: keyID("a"), Name: "sk-...aaaa", Alias: "Schlüssel-中文-🙂", UserID: "u1", TeamID: "t1", OrganizationID: "o1",
		Models: []string{"m1", "p/*"}, Aliases: map[string]string{"fast": "m1"}, Blocked: true, Expires: start.Add(time.Hour),
		MaxBudget: &limit, BudgetDuration: "30d", Tags: []string{"x"}, MetadataJSON: `{"a":{"b":[1,2.50,"c"]}}`, SettingsJSON: `{"rpm_limit":7}`, CreatedBy: "admin",
	}
	e.ok(e.CreateKey(e.ctx, k))
	got, err := e.Key(e.ctx, k.ID)
	e.ok(err)
	if d := time.Until(got.BudgetResetAt); d < 29*24*time.Hour || d > 30*24*time.Hour {
		e.Fatalf("reset in %v, want 30 days", d)
	}
	if time.Since(got.CreatedAt).Abs() > time.Minute || got.UpdatedAt.IsZero() || got.Version != 1 {
		e.Fatalf("created %v, updated %v, version %d", got.CreatedAt, got.UpdatedAt, got.Version)
	}
	sameJSON(e, got.MetadataJSON, k.MetadataJSON)
	sameJSON(e, got.SettingsJSON, k.SettingsJSON)
	equal(e, "spend", got.Spend, 0)
	k.BudgetResetAt, k.CreatedAt, k.UpdatedAt, k.UpdatedBy, k.Version = got.BudgetResetAt, got.CreatedAt, got.UpdatedAt, "admin", 1
	k.MetadataJSON, k.SettingsJSON = got.MetadataJSON, got.SettingsJSON
	if !reflect.DeepEqual(got, k) {
		e.Fatalf("got  %+v\nwant %+v", got, k)
	}
	id, err := e.KeyByAlias(e.ctx, k.Alias)
	e.ok(err)
	equal(e, "by alias", id, k.ID)
	equal(e, "audited", e.sql(`SELECT actor, action, subject FROM audit WHERE subject LIKE 'key:%%'`), "admin|create|"+store.KeyEntity(k.ID))
}

func sameJSON(e *env, got, want string) {
	e.Helper()
	var a, b any
	e.ok(json.Unmarshal([]byte(got), &a))
	e.ok(json.Unmarshal([]byte(want), &b))
	if !reflect.DeepEqual(a, b) {
		e.Fatalf("JSON: got %s, want %s", got, want)
	}
}

func keysConflicts(e *env) {
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "1", Alias: "one"}))
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "2"}))
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "3"})) // no alias is not an alias
	one := "one"
	_, err := e.UpdateKey(e.ctx, "2", store.KeyPatch{Alias: &one})
	equal(e, "alias taken by update", errors.Is(err, store.ErrConflict), true)
	equal(e, "alias taken", errors.Is(e.CreateKey(e.ctx, store.Key{ID: "4", Alias: "one"}), store.ErrConflict), true)
	equal(e, "id taken", errors.Is(e.CreateKey(e.ctx, store.Key{ID: "1"}), store.ErrConflict), true)
	_, err = e.Key(e.ctx, "4")
	equal(e, "absent key", errors.Is(err, store.ErrNotFound), true)
	for _, alias := range []string{"two", ""} {
		_, err = e.KeyByAlias(e.ctx, alias)
		equal(e, "absent alias", errors.Is(err, store.ErrNotFound), true)
	}
	_, err = e.UpdateKey(e.ctx, "4", store.KeyPatch{})
	equal(e, "update of an absent key", errors.Is(err, store.ErrNotFound), true)
	gone, err := e.DeleteKeys(e.ctx, []string{"3", "4", "1", "1"}, "bob")
	e.ok(err)
	slices.Sort(gone)
	equal(e, "deleted", fmt.Sprint(gone), "[1 3]")
	equal(e, "audited", e.sql(`SELECT actor, subject FROM audit WHERE action = 'delete' ORDER BY subject`), "bob|key:1\nbob|key:3")
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "5", Alias: "one"})) // a deleted key's alias is free
}

// A name that no database can hold is absent, not an error of the database.
func keysUnstorable(e *env) {
	const odd = "a\x00\xff"
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "a", Alias: "a"}))
	_, err := e.Key(e.ctx, odd)
	equal(e, "key", errors.Is(err, store.ErrNotFound), true)
	_, err = e.KeyByAlias(e.ctx, odd)
	equal(e, "alias", errors.Is(err, store.ErrNotFound), true)
	_, err = e.UpdateKey(e.ctx, odd, store.KeyPatch{})
	equal(e, "update", errors.Is(err, store.ErrNotFound), true)
	gone, err := e.DeleteKeys(e.ctx, []string{odd}, "bob")
	e.ok(err)
	equal(e, "delete", len(gone), 0)
	gone, err = e.DeleteKeys(e.ctx, []string{"a"}, odd)
	e.ok(err)
	equal(e, "deleted by", len(gone), 1)
	page, err := e.ListKeys(e.ctx, store.KeyFilter{Alias: odd})
	e.ok(err)
	equal(e, "list", page.Total, 0)
	records, err := e.Records(e.ctx, store.RecordFilter{RequestID: odd})
	e.ok(err)
	equal(e, "records", len(records), 0)
	e.beat()
	equal(e, "grant", e.grant(1, cent, odd).Results[0].Outcome, store.UnknownEntity)
}

// A patch changes what it names and nothing else.
func keysPatch(e *env) {
	id, _ := e.key("a", usd)
	models, blocked, never, meta := []string{"m"}, true, time.Time{}, `{"x":1}`
	expires := start
	k, err := e.UpdateKey(e.ctx, id, store.KeyPatch{Models: &models, Blocked: &blocked, Expires: &expires, MetadataJSON: &meta, UpdatedBy: "bob"})
	e.ok(err)
	equal(e, "version", k.Version, 2)
	equal(e, "blocked", k.Blocked, true)
	equal(e, "name is kept", k.Name, "sk-...a")
	equal(e, "expires", k.Expires, start)
	equal(e, "budget is kept", *k.MaxBudget, usd)
	equal(e, "updated by", k.UpdatedBy, "bob")
	equal(e, "created by", k.CreatedBy, "admin")
	k, err = e.UpdateKey(e.ctx, id, store.KeyPatch{Expires: &never})
	e.ok(err)
	equal(e, "never expires", k.Expires.IsZero(), true)
	equal(e, "models are kept", fmt.Sprint(k.Models), "[m]")
}

// Changes of single settings leave the others, also those that are made meanwhile.
func keysSettings(e *env) {
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "k", SettingsJSON: `{"a":1,"b":{"c":[2.50]}}`}))
	change := func(name, value string) error {
		_, err := e.UpdateKey(e.ctx, "k", store.KeyPatch{Settings: map[string]json.RawMessage{name: json.RawMessage(value)}})
		return err
	}
	e.ok(change("a", "null"))
	e.ok(change("never there", "null"))
	const several = 8
	errs := make(chan error, several)
	for i := range several {
		go func() { errs <- change(fmt.Sprint("s", i), fmt.Sprint(i)) }()
	}
	for range several {
		e.ok(<-errs)
	}
	k, err := e.Key(e.ctx, "k")
	e.ok(err)
	sameJSON(e, k.SettingsJSON, `{"b":{"c":[2.50]},"s0":0,"s1":1,"s2":2,"s3":3,"s4":4,"s5":5,"s6":6,"s7":7}`)
	if err := change("bad", "{"); !errors.Is(err, store.ErrInvalid) {
		e.Fatalf("settings that are not JSON: got %v, want ErrInvalid", err)
	}
}

// A budget that comes later knows what was spent before, one that goes leaves
// the total, and a deleted key's budget pays nobody.
func keysBudget(e *env) {
	e.beat()
	id := keyID("a")
	a := store.KeyEntity(id)
	e.ok(e.CreateKey(e.ctx, store.Key{ID: id}))
	e.commit(record(1, id, 30*cent, 0))
	spend := func(what string, want int64) {
		e.Helper()
		k, err := e.Key(e.ctx, id)
		e.ok(err)
		equal(e, what, k.Spend, want)
	}
	spend("unbudgeted", 30*cent)
	equal(e, "no budget", e.grant(1, cent, a).Results[0].Outcome, store.UnknownEntity)
	limit := func(n *int64) {
		e.Helper()
		_, err := e.UpdateKey(e.ctx, id, store.KeyPatch{MaxBudget: &n})
		e.ok(err)
	}
	one, half := usd, 50*cent
	limit(&one)
	equal(e, "what was spent counts", e.budget(a), fmt.Sprintf("%d|0|0|0", 30*cent))
	l := e.lease(2, 60*cent, a)
	e.commit(record(2, id, 20*cent, 0, l))
	spend("settled and open", 50*cent)
	limit(&half) // lowered below spent + leased: stands above, but does not grow
	res, err := e.Grant(e.ctx, store.Grant{Holder: e.holder, Seq: 3, Wants: []store.Want{{Entities: []string{a}, Amount: cent}}})
	e.ok(err)
	equal(e, "lowered", res.Results[0], store.WantResult{Outcome: store.Exceeded, Entity: a, Limit: half, Spent: 50 * cent})
	_, err = e.Return(e.ctx, e.holder, []store.ReturnLease{{LeaseRef: l, After: 2}})
	e.ok(err)
	e.lawful()
	limit(nil)
	spend("budget gone, spend not", 50*cent)
	equal(e, "gone", e.budget(a), "")
	low := 10 * cent
	limit(&low)
	e.lawful() // 50 spent before a limit of 10: the rest is overrun
	equal(e, "below what was spent", e.grant(4, cent, a).Results[0].Outcome, store.Exceeded)
	_, err = e.DeleteKeys(e.ctx, []string{id}, "bob")
	e.ok(err)
	equal(e, "deleted", e.grant(5, 0, a).Results[0].Outcome, store.UnknownEntity)
	e.ok(e.CreateKey(e.ctx, store.Key{ID: id}))
	spend("the same key again starts at zero", 0)
}

// An administrator's correction sets the spend of the period.
func keysSetSpend(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	e.commit(record(1, id, 40*cent, 0, l))
	for _, want := range []int64{0, 70 * cent, 3 * usd, 0} {
		k, err := e.UpdateKey(e.ctx, id, store.KeyPatch{Spend: &want})
		e.ok(err)
		e.lawful()
		equal(e, "budgeted", k.Spend, want)
	}
	equal(e, "a reset lets the whole budget be spent again", e.grant(2, usd, a).Results[0].Outcome, store.Granted)
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "free"}))
	e.commit(record(2, "free", 5*cent, 0))
	for _, want := range []int64{0, 70 * cent} {
		k, err := e.UpdateKey(e.ctx, "free", store.KeyPatch{Spend: &want})
		e.ok(err)
		equal(e, "unbudgeted", k.Spend, want)
	}
}

func keysPages(e *env) {
	e.create(store.Entity{Kind: store.KindTeam, ID: "t"})
	for i := range 25 {
		user := fmt.Sprintf("u%d", i%2)
		e.ok(e.CreateKey(e.ctx, store.Key{ID: fmt.Sprintf("k%02d", i), Alias: fmt.Sprintf("a%d", i), UserID: user, TeamID: "t"}))
	}
	e.commit(record(1, "k24", 7*cent, 0))
	var seen []string
	for page := 1; ; page++ {
		p, err := e.ListKeys(e.ctx, store.KeyFilter{TeamID: "t", Page: page, Size: 10})
		e.ok(err)
		equal(e, "total", p.Total, 25)
		if len(p.Keys) == 0 {
			break
		}
		for _, k := range p.Keys {
			seen = append(seen, k.ID)
		}
		if page == 1 {
			equal(e, "spend in a list", p.Keys[0].Spend, 7*cent)
		}
	}
	equal(e, "rows", len(seen), 25)
	equal(e, "newest first", seen[0]+seen[24], "k24k00")
	for name, f := range map[string]store.KeyFilter{"user": {UserID: "u1"}, "id": {ID: "k03"}, "alias": {Alias: "a3"}, "organization": {OrganizationID: "x"}} {
		p, err := e.ListKeys(e.ctx, f)
		e.ok(err)
		equal(e, name, fmt.Sprint(p.Total, len(p.Keys)), map[string]string{"user": "12 12", "id": "1 1", "alias": "1 1", "organization": "0 0"}[name])
	}
}

// Each change is told once, in order, from the position on that "now" gave.
func keysChanges(e *env) {
	_, pos0, err := e.Changes(e.ctx, -1)
	e.ok(err)
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "before"}))
	e.changes(&pos0, 1) // so that "now" is behind it
	_, pos, err := e.Changes(e.ctx, -1)
	e.ok(err)
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "1"}))
	blocked := true
	_, err = e.UpdateKey(e.ctx, "before", store.KeyPatch{Blocked: &blocked})
	e.ok(err)
	_, err = e.DeleteKeys(e.ctx, []string{"1"}, "bob")
	e.ok(err)
	equal(e, "changes", fmt.Sprint(e.changes(&pos, 3)), "[1 before 1]")
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "2"}))
	equal(e, "each is told once", fmt.Sprint(e.changes(&pos, 1)), "[2]")
}

// changes polls until it was told of n changes: transactions of other databases
// on the same server may hold the position back.
func (e *env) changes(pos *int64, n int) []string {
	e.Helper()
	var told []string
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 10_000 {
		ids, next, err := e.Changes(e.ctx, *pos)
		e.ok(err)
		if next < *pos {
			e.Fatalf("position went back from %d to %d", *pos, next)
		}
		*pos = next
		if told = append(told, ids...); len(told) >= n {
			return told
		}
		<-tick.C
	}
	e.Fatalf("told of %v, want %d changes", told, n)
	return nil
}

// told waits until pollers after pos have heard of all names: a transaction of another
// test on the same server holds changes back.
func (e *env) told(pos int64, names ...string) {
	e.Helper()
	missing := map[string]bool{}
	for _, name := range names {
		missing[name] = true
	}
	for len(missing) > 0 {
		for _, name := range e.changes(&pos, 1) {
			delete(missing, name)
		}
	}
}

// What cannot be stored is the caller's fault, and nothing is half done.
func keysBadValues(e *env) {
	minus, blank := -cent, ""
	bad := `{"a":`
	for name, k := range map[string]store.Key{
		"negative budget": {ID: "k", MaxBudget: &minus}, "unknown period": {ID: "k", BudgetDuration: "1y"}, "no id": {},
		"metadata": {ID: "k", MetadataJSON: bad}, "nul in metadata": {ID: "k", MetadataJSON: `{"a":"\u0000"}`}, "settings": {ID: "k", SettingsJSON: bad},
		"long": {ID: "k", UserID: fmt.Sprintf("%2000d", 1)},
	} {
		if err := e.CreateKey(e.ctx, k); !errors.Is(err, store.ErrInvalid) {
			e.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	e.ok(e.CreateKey(e.ctx, store.Key{ID: "k", UserID: "nul\x00"}))
	for name, p := range map[string]store.KeyPatch{
		"negative spend": {Spend: &minus}, "metadata": {MetadataJSON: &bad},
	} {
		if _, err := e.UpdateKey(e.ctx, "k", p); !errors.Is(err, store.ErrInvalid) {
			e.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	k, err := e.UpdateKey(e.ctx, "k", store.KeyPatch{MetadataJSON: &blank})
	e.ok(err)
	equal(e, "unchanged by what failed", fmt.Sprintf("%d %s %s", k.Version, k.UserID, k.MetadataJSON), "2 nul {}")
}
