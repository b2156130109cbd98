package keyring

import (
	"slices"
	"strings"
	"testing"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

func TestAllows(t *testing.T) {
	t.Parallel()
	f67 := &ledgerv1.Key{Models: []string{"p/*", "alias-1"}, Aliases: map[string]string{"alias-1": "q/small", "short": "p/a", "away": "q/big"}}
	cases := []struct {
		why   string
		key   *ledgerv1.Key
		model string
		want  bool
	}{
		{"below the wildcard", f67, "p/a", true},
		{"a wildcard stands for several segments too", f67, "p/a/b:free", true},
		{"another provider with the same beginning", f67, "pz/a", false},
		{"case is exact", f67, "P/A", false},
		{"a dot segment leaves the provider", f67, "p/../q/big", false},
		{"an encoded slash may be read as one further on", f67, "p/a%2f..%2fq", false},
		{"a backslash may be read as a slash", f67, `p/a\..\q`, false},
		{"an empty segment", f67, "p//a", false},
		{"nothing below", f67, "p/", false},
		{"the provider itself", f67, "p", false},
		{"a name that is listed", f67, "alias-1", true},
		{"case of a listed name", f67, "ALIAS-1", false},
		{"what a listed alias means is not thereby allowed", f67, "q/small", false},
		{"a model that is not listed", f67, "q/big", false},
		{"no name", f67, "", false},
		{"5,000 characters", f67, "p/" + strings.Repeat("a", 4998), false},
		{"trailing space", f67, "p/a ", false},
		{"trailing space of a listed name", f67, "alias-1 ", false},
		{"control characters", f67, "p/a\r\nX-Evil: 1", false},
		{"the key's own alias of an allowed model", f67, "short", true},
		{"an alias gives no model that the key has not", f67, "away", false},
		{"letters of any script", f67, "p/模型-1", true},
		{"empty list", &ledgerv1.Key{}, "q/big", true},
		{"empty list, no name", &ledgerv1.Key{}, "", false},
		{"every model", &ledgerv1.Key{Models: []string{"all-proxy-models"}}, "q/big", true},
		{"bare wildcard", &ledgerv1.Key{Models: []string{"*"}}, "q/big", true},
		{"no model", &ledgerv1.Key{Models: []string{"no-default-models"}}, "q/big", false},
		{"a special name is no model", &ledgerv1.Key{Models: []string{"no-default-models"}}, "no-default-models", false},
		{"no default, but this", &ledgerv1.Key{Models: []string{"no-default-models", "m"}}, "m", true},
		{"part of a segment is no wildcard", &ledgerv1.Key{Models: []string{"p/gpt-*"}}, "p/gpt-4o", false},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			if got := newKey(c.key).Allows(c.model); got != c.want {
				t.Errorf("Allows(%q) = %v", c.model, got)
			}
		})
	}
}

// Whatever is asked, a wildcard admits nothing outside its provider.
func FuzzAllows(f *testing.F) {
	for _, s := range []string{"p/a", "p/../q", "pz/a", "p/a%2f", "p/\x00", "p/\xff"} {
		f.Add(s)
	}
	key := newKey(&ledgerv1.Key{Models: []string{"p/*"}})
	f.Fuzz(func(t *testing.T, model string) {
		if !key.Allows(model) {
			return
		}
		if !strings.HasPrefix(model, "p/") || strings.ContainsAny(model, "%\\?# \t\r\n\x00") ||
			slices.Contains(strings.Split(model, "/"), "..") {
			t.Errorf("%q is allowed by p/*", model)
		}
	})
}

func TestKeyFromRow(t *testing.T) {
	t.Parallel()
	end := time.UnixMilli(1_800_000_000_000)
	k := newKey(&ledgerv1.Key{
		ExpiresMs: end.UnixMilli(), MaxBudgetNano: 5,
		Entities: []*ledgerv1.Entity{{Name: "key:a", Budgeted: true}, {Name: "team:b"}, {Name: "key:a", Budgeted: true}},
	})
	if !slices.Equal(k.Entities, []string{"key:a"}) {
		t.Errorf("entities %v: only those with a budget, each once", k.Entities)
	}
	if k.Expired(end.Add(-1)) || !k.Expired(end) || (&Key{}).Expired(end) {
		t.Error("a key expires at its time, and one without a time never")
	}
}
