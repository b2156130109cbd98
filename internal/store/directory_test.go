package store_test

import (
	"fmt"
	"testing"

	"github.com/penstock-gateway/penstock/internal/store"
)

func TestCommonModels(t *testing.T) {
	t.Parallel()
	list := func(names ...string) []string { return names }
	for _, c := range []struct {
		why        string
		a, b, want []string
	}{
		{"both allow all", nil, nil, nil},
		{"one allows all", nil, list("a"), list("a")},
		{"by name", list("all-proxy-models", "x"), list("a"), list("a")},
		{"by star", list("a"), list("*"), list("a")},
		{"in common", list("a", "b"), list("b", "c"), list("b")},
		{"nothing in common is not everything", list("a"), list("b"), list("no-default-models")},
		{"none by name", list("no-default-models"), list("a"), list("no-default-models")},
		{"none by name, of all", list("no-default-models"), nil, list("no-default-models")},
		{"a name below a wildcard", list("p/a", "q/a"), list("p/*"), list("p/a")},
		{"a wildcard above names", list("p/*"), list("p/a", "p/b", "p"), list("p/a", "p/b")},
		{"a narrower wildcard", list("p/*"), list("p/q/*"), list("p/q/*")},
		{"the same wildcard", list("p/*"), list("p/*"), list("p/*")},
		{"a name that climbs out", list("p/../q/big", "p/", "p//a", "p/%2e", "p/a b"), list("p/*"), list("no-default-models")},
		{"a prefix is not a wildcard", list("pp/a"), list("p/*"), list("no-default-models")},
	} {
		for _, sides := range [][2][]string{{c.a, c.b}, {c.b, c.a}} {
			if got := store.CommonModels(sides[0], sides[1]); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s: got %v, want %v", c.why, got, c.want)
			}
		}
	}
}

func TestSplitWindow(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"key:a": "key:a|", "key:a#1d": "key:a|1d", "user:x#y": "user:x#y|", "user:x#": "user:x#|", "user:a#b#1mo": "user:a#b|1mo", "": "|", "#1d": "|1d",
	} {
		entity, win := store.SplitWindow(name)
		if got := entity + "|" + win; got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

// A name that is split and joined is the same name, and a window is never lost.
func FuzzSplitWindow(f *testing.F) {
	f.Add("key:a", "1d")
	f.Add("user:x#y", "")
	f.Add("a#1d", "30d")
	f.Fuzz(func(t *testing.T, entity, win string) {
		name := store.WindowName(entity, win)
		e, w := store.SplitWindow(name)
		if got := store.WindowName(e, w); got != name {
			t.Errorf("%q became %q", name, got)
		}
	})
}

// Settings come from people: whatever they are, they are read or refused.
func FuzzBudgets(f *testing.F) {
	f.Add(`{"budget_limits":[{"budget_duration":"1d","max_budget":1}],"model_max_budget":{"m":{"budget_limit":1e3,"time_period":"1d"}},"budget_id":"x"}`)
	f.Add(`{"budget_limits":null,"model_max_budget":{"m":null},"team_member_budget":"7"}`)
	f.Fuzz(func(t *testing.T, settings string) {
		k := store.Key{ID: "k", SettingsJSON: settings}
		specs, err := k.Budgets(store.Template{})
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, s := range specs {
			name := store.WindowName(s.Entity, s.Win)
			if s.Limit < 0 || seen[name] {
				t.Errorf("%+v: a limit below 0, or twice", s)
			}
			seen[name] = true
		}
	})
}
