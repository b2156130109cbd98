package admin_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// expire moves a key's end into the past.
func expire(t *testing.T, b *bundle, id string) {
	t.Helper()
	past := time.Now().Add(-time.Minute)
	if _, err := b.store.UpdateKey(t.Context(), id, store.KeyPatch{Expires: &past}); err != nil {
		t.Fatal(err)
	}
}

func TestGenerateAnswersAsLiteLLM(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("POST", "/organization/new", `{"organization_id":"o1"}`)
	b.ok("POST", "/team/new", `{"team_id":"t1","organization_id":"o1"}`)
	before := time.Now()
	a := b.ok("POST", "/key/generate", `{
		"key_alias": "team-a", "duration": "30d", "user_id": "u1", "team_id": "t1", "organization_id": "o1",
		"models": ["gpt-4o"], "aliases": {"fast": "gpt-4o-mini"}, "max_budget": 12.30, "budget_duration": "30d",
		"metadata": {"a": 1.50, "b": "<x>"}, "tags": ["prod"], "tpm_limit": 1000, "soft_budget": 3.5,
		"model_max_budget": {"gpt-4o": {"budget_limit": 1, "time_period": "1d"}}, "guardrails": [], "permissions": {}
	}`, "litellm-changed-by", "alice")

	key := str(a.body["key"])
	sum := sha256.Sum256([]byte(key))
	if id := hex.EncodeToString(sum[:]); a.body["token"] != id || a.body["token_id"] != id {
		t.Errorf("token %v is not the key's SHA-256", a.body["token"])
	}
	if !strings.HasPrefix(key, "sk-") || a.body["key_name"] != "sk-..."+key[len(key)-4:] {
		t.Errorf("key %q, key_name %v", key, a.body["key_name"])
	}
	want := map[string]string{
		"key_alias": `"team-a"`, "user_id": `"u1"`, "team_id": `"t1"`, "organization_id": `"o1"`,
		"models": `["gpt-4o"]`, "aliases": `{"fast":"gpt-4o-mini"}`, "spend": `0`, "max_budget": `12.3`,
		"budget_duration": `"30d"`, "blocked": `false`, "tags": `["prod"]`, "metadata": `{"a":1.50,"b":"<x>"}`,
		"tpm_limit": `1000`, "rpm_limit": `null`, "soft_budget": `3.5`, "created_by": `"alice"`, "updated_by": `"alice"`,
		"model_max_budget": `{"gpt-4o":{"budget_limit":1,"time_period":"1d"}}`, "litellm_budget_table": `null`,
	}
	checkFields(t, a.body, want)
	near(t, "expires", str(a.body["expires"]), before.Add(30*24*time.Hour))
	near(t, "budget_reset_at", str(a.body["budget_reset_at"]), before.Add(30*24*time.Hour))
	near(t, "created_at", str(a.body["created_at"]), before)

	warnings := fmt.Sprint(a.body["warnings"])
	for _, name := range []string{"model_max_budget", "soft_budget"} {
		if !strings.Contains(warnings, name) {
			t.Errorf("%s has no effect, but no warning says so: %s", name, warnings)
		}
	}
	if strings.Contains(warnings, "tpm_limit") {
		t.Errorf("tpm_limit is enforced, and warned of: %s", warnings)
	}
	if strings.Contains(warnings, "guardrails") || strings.Contains(warnings, "permissions") {
		t.Errorf("a field that asks for nothing is warned of: %s", warnings)
	}

	info := b.ok("GET", "/key/info?key="+key, "")
	shown, _ := info.body["info"].(map[string]any)
	checkFields(t, shown, want)
	if info.body["key"] != key {
		t.Errorf("key %v, want it as it was given", info.body["key"])
	}
	if strings.Contains(fmt.Sprint(shown), key) {
		t.Error("the key stands in what is stored")
	}
}

func checkFields(t *testing.T, got map[string]any, want map[string]string) {
	t.Helper()
	for name, text := range want {
		var buf strings.Builder
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(got[name]); err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(buf.String()) != text {
			t.Errorf("%s is %s, want %s", name, buf.String(), text)
		}
	}
}

func near(t *testing.T, what, got string, want time.Time) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, got)
	if err != nil || at.Sub(want).Abs() > time.Minute {
		t.Errorf("%s is %q, want about %v", what, got, want)
	}
}

func TestOwnKeyAndConflicts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("POST", "/key/generate", `{"key":"sk-my-own-key-1234","key_alias":"mine","max_budget":null}`)
	for _, c := range []struct{ why, body, param string }{
		{"the key exists", `{"key":"sk-my-own-key-1234"}`, "key"},
		{"the alias is taken", `{"key_alias":"mine"}`, "key_alias"},
		{"the master key is no virtual key", `{"key":"` + masterKey + `"}`, "key"},
	} {
		a := b.call("POST", "/key/generate", c.body)
		if _, param, _ := errorOf(t, a); a.status != 400 || param != c.param {
			t.Errorf("%s: %d %s", c.why, a.status, a.raw)
		}
	}
	other := b.ok("POST", "/key/generate", `{}`)
	a := b.call("POST", "/key/update", `{"key":"`+str(other.body["key"])+`","key_alias":"mine"}`)
	if _, param, _ := errorOf(t, a); a.status != 400 || param != "key_alias" {
		t.Errorf("the alias is taken in an update: %d %s", a.status, a.raw)
	}
}

func TestUpdateChangesOnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := str(b.ok("POST", "/key/generate",
		`{"key_alias":"k","max_budget":5,"duration":"1h","rpm_limit":10,"tpm_limit":20,"models":["m"],"user_id":"u"}`).body["key"])
	update := func(fields string) map[string]any {
		t.Helper()
		return b.ok("POST", "/key/update", `{"key":"`+key+`",`+fields+`}`, "litellm-changed-by", "bob").body
	}

	got := update(`"max_budget": 7.25, "rpm_limit": 11`)
	checkFields(t, got, map[string]string{
		"max_budget": "7.25", "rpm_limit": "11", "tpm_limit": "20", "models": `["m"]`, "user_id": `"u"`,
		"key_alias": `"k"`, "updated_by": `"bob"`, "created_by": `"master"`,
	})
	if got["expires"] == nil {
		t.Error("the expiry is gone, though nobody named it")
	}
	got = update(`"max_budget": null, "duration": "-1", "rpm_limit": null, "models": null, "user_id": ""`)
	checkFields(t, got, map[string]string{
		"max_budget": "null", "expires": "null", "rpm_limit": "null", "tpm_limit": "20", "models": "[]", "user_id": "null",
	})
	got = update(`"max_budget": 10, "spend": 2.5, "blocked": true`)
	checkFields(t, got, map[string]string{"max_budget": "10", "spend": "2.5", "blocked": "true"})
	got = update(`"nobody_knows_this": 1`)
	if w := fmt.Sprint(got["warnings"]); !strings.Contains(w, "nobody_knows_this") {
		t.Errorf("an unknown field is ignored in silence: %s", w)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := str(b.ok("POST", "/key/generate", `{}`).body["key"])
	const period = "[budget_duration is stored, but has no effect without max_budget]"
	for _, c := range []struct{ why, fields, want string }{
		{"nothing to say", `"max_budget":1,"user_id":"","team_id":null`, "[]"},
		{"fields that count", `"user_id":"u","budget_limits":[{"budget_duration":"1d","max_budget":1}],"rpm_limit":5`, "[]"},
		{"the key has a budget already", `"budget_duration":"30d"`, "[]"},
		{"a period of no budget", `"max_budget":null,"budget_duration":"30d"`, period},
		{"still none", `"budget_duration":"1d"`, period},
		{"a form without a period", `"budget_duration":null`, "[]"},
		{"an answer that is sent back", `"budget_reset_at":null,"litellm_budget_table":null`,
			"[budget_reset_at is not known and was ignored litellm_budget_table is not known and was ignored]"},
	} {
		got := b.ok("POST", "/key/update", `{"key":"`+key+`",`+c.fields+`}`).body["warnings"]
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: got %v, want %s", c.why, got, c.want)
		}
	}
	if got := b.ok("POST", "/key/generate", `{"budget_duration":"30d"}`).body["warnings"]; fmt.Sprint(got) != period {
		t.Errorf("in generate: %v", got)
	}
	got := b.ok("POST", "/key/generate", `{"key_alias":"\ud83d\ude00 \\ud800"}`)
	if got.body["key_alias"] != `😀 \ud800` {
		t.Errorf("a whole pair and an escaped backslash are text: %v", got.body["key_alias"])
	}
}

func TestConcurrentUpdatesKeepEachOthersFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := str(b.ok("POST", "/key/generate", `{"soft_budget":1}`).body["key"])
	fields := []string{"rpm_limit", "tpm_limit", "max_parallel_requests", "agent_id", "project_id", "policies", "key_type", "prompts"}
	want := map[string]string{"soft_budget": "1"}
	var wg sync.WaitGroup
	for _, name := range fields {
		want[name] = "7"
		wg.Go(func() { b.ok("POST", "/key/update", `{"key":"`+key+`","`+name+`":7}`) })
	}
	wg.Wait()
	info, _ := b.ok("GET", "/key/info?key="+key, "").body["info"].(map[string]any)
	checkFields(t, info, want)
}

func TestGenerateWithSpend(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{`{"max_budget":10,"spend":4.000000001}`, `{"spend":4.000000001}`} {
		checkFields(t, b.ok("POST", "/key/generate", body).body, map[string]string{"spend": "4.000000001"})
	}
}

func TestBlockUnblockDelete(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.ok("POST", "/key/generate", `{"key_alias":"first"}`)
	second := b.ok("POST", "/key/generate", `{"key_alias":"second"}`)
	key, hash := str(first.body["key"]), str(second.body["token"])

	checkFields(t, b.ok("POST", "/key/block", `{"key":"`+key+`"}`).body, map[string]string{"blocked": "true"})
	checkFields(t, b.ok("POST", "/key/unblock", `{"key":"`+str(first.body["token"])+`"}`).body, map[string]string{"blocked": "false"})

	a := b.ok("POST", "/key/delete", `{"keys":["`+key+`","sk-there-is-no-such-key"]}`)
	checkFields(t, a.body, map[string]string{"deleted_keys": `["` + key + `"]`, "missing_keys": `["sk-there-is-no-such-key"]`})
	a = b.ok("POST", "/key/delete", `{"key_aliases":["second"]}`)
	checkFields(t, a.body, map[string]string{"deleted_keys": `["second"]`})

	for _, c := range []struct{ why, method, path, body string }{
		{"deleted already", "POST", "/key/delete", `{"keys":["` + key + `"]}`},
		{"deleted alias", "POST", "/key/delete", `{"key_aliases":["second"]}`},
		{"update of a deleted key", "POST", "/key/update", `{"key":"` + hash + `","blocked":true}`},
		{"later field of a deleted key", "POST", "/key/update", `{"key":"` + hash + `","rpm_limit":1}`},
		{"block of a deleted key", "POST", "/key/block", `{"key":"` + hash + `"}`},
		{"info of a deleted key", "GET", "/key/info?key=" + hash, ""},
		{"info of nonsense", "GET", "/key/info?key=nonsense", ""},
	} {
		if a := b.call(c.method, c.path, c.body); a.status != 404 {
			t.Errorf("%s: %d %s", c.why, a.status, a.raw)
		}
	}
}

// actors sees who deletes.
type actors struct {
	store.Store
	deleted []string
}

func (a *actors) DeleteKeys(ctx context.Context, ids []string, by string) ([]string, error) {
	a.deleted = append(a.deleted, by)
	return a.Store.DeleteKeys(ctx, ids, by)
}

func TestDeleteNamesItsActor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seen := &actors{Store: b.store}
	b.api = apiOver(seen)
	for _, header := range [][]string{nil, {"litellm-changed-by", "alice"}} {
		key := str(b.ok("POST", "/key/generate", `{}`).body["key"])
		b.ok("POST", "/key/delete", `{"keys":["`+key+`"]}`, header...)
	}
	if got := strings.Join(seen.deleted, " "); got != "master alice" {
		t.Errorf("deleted by %q, want master and alice", got)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("POST", "/team/new", `{"team_id":"t"}`)
	for i := range 5 {
		b.ok("POST", "/key/generate", fmt.Sprintf(`{"key_alias":"k%d","user_id":"u%d","team_id":"t"}`, i, i%2))
	}
	a := b.ok("GET", "/key/list?page=2&size=2", "")
	checkFields(t, a.body, map[string]string{"total_count": "5", "current_page": "2", "total_pages": "3"})
	if keys, _ := a.body["keys"].([]any); len(keys) != 2 || len(str(keys[0])) != 64 {
		t.Errorf("a page of hashes, got %s", a.raw)
	}
	a = b.ok("GET", "/key/list?user_id=u1&return_full_object=true&include_team_keys=true", "")
	keys, _ := a.body["keys"].([]any)
	if len(keys) != 2 {
		t.Fatalf("two keys of u1, got %s", a.raw)
	}
	checkFields(t, keys[0].(map[string]any), map[string]string{"user_id": `"u1"`, "team_id": `"t"`})
	if w := a.header.Get("x-penstock-warning"); !strings.Contains(w, "include_team_keys") {
		t.Errorf("a parameter without effect is not told: %q", w)
	}
	a = b.ok("GET", "/key/list?key_alias=k3", "")
	checkFields(t, a.body, map[string]string{"total_count": "1"})
	for _, q := range []string{"page=0", "page=-1", "page=x", "size=1001", "size=9999999999999999999", "return_full_object=2"} {
		if a := b.call("GET", "/key/list?"+q, ""); a.status != 400 {
			t.Errorf("%s: %d %s", q, a.status, a.raw)
		}
	}
}
