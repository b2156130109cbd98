package store_test

import (
	"encoding/json"
	"testing"

	"github.com/penstock-gateway/penstock/internal/store"
)

func TestApplySettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, stored, name, value, want string }{
		{"nothing stored", "", "a", "1", `{"a":1}`},
		{"null stored", "null", "a", "1", `{"a":1}`},
		{"beside another", `{"b":2.50}`, "a", "1", `{"a":1,"b":2.50}`},
		{"in place of one", `{"a":0}`, "a", `{"x":[]}`, `{"a":{"x":[]}}`},
		{"taken away", `{"a":0,"b":1}`, "a", "null", `{"b":1}`},
		{"not an object", `[1]`, "a", "1", `[1]`},
	} {
		k := store.Key{SettingsJSON: c.stored}
		store.KeyPatch{Settings: map[string]json.RawMessage{c.name: json.RawMessage(c.value)}}.Apply(&k)
		if k.SettingsJSON != c.want {
			t.Errorf("%s: got %s, want %s", c.why, k.SettingsJSON, c.want)
		}
	}
	k := store.Key{SettingsJSON: ` {"as": "it was"}`}
	store.KeyPatch{}.Apply(&k)
	if k.SettingsJSON != ` {"as": "it was"}` {
		t.Errorf("a patch of nothing changed it: %s", k.SettingsJSON)
	}
}
