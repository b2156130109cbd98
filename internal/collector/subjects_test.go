package collector_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/store"
)

func (b *bundle) entities(all ...store.Entity) {
	b.t.Helper()
	if err := b.store.CreateEntities(b.t.Context(), all); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) patch(name string, p store.EntityPatch) {
	b.t.Helper()
	if _, err := b.store.UpdateEntity(b.t.Context(), name, p); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) subjects(budget string, names ...string) string {
	b.t.Helper()
	resp, err := b.client.Subjects(b.t.Context(), &ledgerv1.SubjectsRequest{Names: names, CustomerBudgetId: budget})
	if err != nil {
		return status.Code(err).String()
	}
	var out []string
	for _, s := range resp.GetSubjects() {
		out = append(out, fmt.Sprintf("%s %v %v %v", s.GetName(), s.GetFound(), s.GetBlocked(), s.GetEntities()))
	}
	return fmt.Sprint(out)
}

// A key's answer names all budgets that must pay, and a change of what stands behind
// it comes as a change of the key.
func TestTeamCountsForItsKeys(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	limit := int64(7)
	b.entities(store.Entity{Kind: store.KindOrganization, ID: "o", MaxBudget: &limit},
		store.Entity{Kind: store.KindTeam, ID: "t", OrganizationID: "o", MaxBudget: &limit, SettingsJSON: `{"rpm_limit":7,"budget_limits":[{"budget_duration":"1d","max_budget":1}]}`})
	hash := b.key("sk-one", 5)
	id, team := hex.EncodeToString(hash), "t"
	if _, err := b.store.UpdateKey(t.Context(), id, store.KeyPatch{TeamID: &team}); err != nil {
		t.Fatal(err)
	}
	ask := func() *ledgerv1.Key {
		t.Helper()
		resp, err := b.client.Authenticate(t.Context(), &ledgerv1.AuthenticateRequest{KeyHash: hash})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetKey()
	}
	key := ask()
	var names []string
	for _, e := range key.GetEntities() {
		names = append(names, e.GetName())
	}
	if got, want := fmt.Sprint(names), "[org:o team:t team:t#1d key:"+id+"]"; got != want || key.GetOrganizationId() != "o" || key.GetMaxBudgetNano() != 5 {
		t.Fatalf("got %s of %v, want %s", got, key, want)
	}
	if l := key.GetLimits(); len(l) != 1 || l[0].GetName() != "team:t" || l[0].GetRpm() != 7 {
		t.Errorf("limits %v, want the team's", l)
	}
	b.stop() // so that the making of all this is no news any more
	b.start()
	w := b.watch(0)
	w.next()
	yes := true
	for _, name := range []string{"team:t", "org:o"} {
		b.patch(name, store.EntityPatch{Blocked: &yes})
		m := w.next()
		if m.GetAll() || !slices.Contains(m.GetKeyIds(), id) || !slices.Contains(m.GetSubjects(), name) {
			t.Errorf("%s changed, the stream said %v", name, m)
		}
	}
	if !ask().GetBlocked() {
		t.Error("a key of a blocked team is not blocked")
	}
	b.entities(store.Entity{Kind: store.KindGlobal, MaxBudget: &limit})
	if m := w.next(); !m.GetAll() {
		t.Errorf("the gateway's budget counts for every key, the stream said %v", m)
	}
}

// A secret that a key got later is known by its own hash.
func TestRotatedSecretsAreForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	id, second := hex.EncodeToString(b.key("sk-one", 5)), fmt.Sprintf("%064x", 2)
	if _, err := b.store.RotateKey(t.Context(), store.Rotation{ID: id, Secret: second}); err != nil {
		t.Fatal(err)
	}
	b.stop()
	b.start()
	w := b.watch(0)
	w.next()
	yes := true
	if _, err := b.store.UpdateKey(t.Context(), id, store.KeyPatch{Blocked: &yes}); err != nil {
		t.Fatal(err)
	}
	if m := w.next(); !slices.Contains(m.GetKeyIds(), id) || !slices.Contains(m.GetKeyIds(), second) {
		t.Errorf("got %v, want both secrets", m)
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	limit := int64(7)
	b.entities(store.Entity{Kind: store.KindTag, ID: "g", MaxBudget: &limit}, store.Entity{Kind: store.KindTemplate, ID: "small", MaxBudget: &limit})
	for _, c := range []struct{ why, budget, name, want string }{
		{"with a budget", "", "tag:g", "[tag:g true false [tag:g]]"},
		{"not known", "", "customer:x", "[customer:x false false []]"},
		{"not known, with a budget for such", "small", "customer:x", "[customer:x true false [customer:x]]"},
		{"made by then", "", "customer:x", "[customer:x true false [customer:x]]"},
		{"a tag is not made", "small", "tag:h", "[tag:h false false []]"},
		{"cannot be made", "small", "customer:x#1d", codes.InvalidArgument.String()},
		{"the budget for such is missing", "none", "customer:y", codes.InvalidArgument.String()},
	} {
		if got := b.subjects(c.budget, c.name); got != c.want {
			t.Errorf("%s: got %s, want %s", c.why, got, c.want)
		}
	}
	if got := b.subjects("", make([]string, 65)...); got != codes.InvalidArgument.String() {
		t.Errorf("too many: %s", got)
	}
	b.faults.set(func(f *faultyStore) { f.away = store.ErrUnavailable })
	if got := b.subjects("", "tag:g"); got != codes.Unavailable.String() {
		t.Errorf("with the database away: %s", got)
	}
}
