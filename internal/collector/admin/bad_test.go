package admin_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestBadBodies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	deep := strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100)
	cases := []struct{ why, path, body, param string }{
		{"no body", "/key/generate", ``, ""},
		{"not JSON", "/key/generate", `{"max_budget":}`, ""},
		{"cut off", "/key/generate", `{"max_budget":1`, ""},
		{"a list", "/key/generate", `[]`, ""},
		{"null", "/key/generate", `null`, ""},
		{"two values", "/key/generate", `{} {}`, ""},
		{"not UTF-8", "/key/generate", "{\"key_alias\":\"\xff\"}", ""},
		{"a field twice", "/key/generate", `{"max_budget":1,"max_budget":100}`, "max_budget"},

		{"negative budget", "/key/generate", `{"max_budget":-1}`, "max_budget"},
		{"negative zero is a sign too", "/key/generate", `{"max_budget":-0.0}`, "max_budget"},
		{"beyond any number", "/key/generate", `{"max_budget":1e400}`, "max_budget"},
		{"beyond int64", "/key/generate", `{"max_budget":1e10}`, "max_budget"},
		{"too small to be kept", "/key/generate", `{"max_budget":1e-12}`, "max_budget"},
		{"NaN is not JSON", "/key/generate", `{"max_budget":NaN}`, ""},
		{"NaN as text", "/key/generate", `{"max_budget":"NaN"}`, "max_budget"},
		{"a number as text", "/key/generate", `{"max_budget":"5"}`, "max_budget"},
		{"true is no amount", "/key/generate", `{"max_budget":true}`, "max_budget"},
		{"a list is no amount", "/key/generate", `{"max_budget":[1]}`, "max_budget"},
		{"negative spend", "/key/generate", `{"spend":-2}`, "spend"},
		{"negative limit", "/key/generate", `{"tpm_limit":-1}`, "tpm_limit"},
		{"a limit is whole", "/key/generate", `{"rpm_limit":1.5}`, "rpm_limit"},
		{"a limit beyond int64", "/key/generate", `{"max_parallel_requests":1e400}`, "max_parallel_requests"},
		{"true is no limit", "/key/generate", `{"rpm_limit":true}`, "rpm_limit"},
		{"negative soft budget", "/key/generate", `{"soft_budget":-0.1}`, "soft_budget"},
		{"negative inside", "/key/generate", `{"model_max_budget":{"m":{"budget_limit":-1}}}`, "model_max_budget"},
		{"too large inside", "/key/generate", `{"metadata":{"a":[1e400]}}`, "metadata"},
		{"a number in words", "/key/generate", `{"max_budget":"one"}`, "max_budget"},

		{"a budget with two letters swapped", "/key/generate", `{"max_bugdet":1}`, "max_bugdet"},
		{"a budget with another sign", "/key/generate", `{"max-budget":1}`, "max-budget"},
		{"a budget by another name", "/key/generate", `{"monthlyBudget":1}`, "monthlyBudget"},
		{"a budget mistyped in an update", "/key/update", `{"key":"sk-0123456789abcdef","max_bugdet":1}`, "max_bugdet"},
		{"models in the singular", "/key/generate", `{"model":["a"]}`, "model"},
		{"a later field mistyped", "/key/generate", `{"rpm_limt":1}`, "rpm_limt"},

		{"half of a character", "/key/generate", `{"key_alias":"a\ud800"}`, "key_alias"},
		{"its other half", "/key/generate", `{"key_alias":"\udc00\ud800"}`, "key_alias"},
		{"half of a character, then a letter", "/key/generate", `{"key_alias":"\ud83d\u0041"}`, "key_alias"},
		{"half of a character deep inside", "/key/generate", `{"metadata":{"a":["\ud800"]}}`, "metadata"},
		{"half of a character in a name", "/key/generate", `{"a\ud800":1}`, ""},

		{"empty duration unit", "/key/generate", `{"duration":"30"}`, "duration"},
		{"negative duration", "/key/generate", `{"duration":"-5d"}`, "duration"},
		{"duration as a number", "/key/generate", `{"duration":30}`, "duration"},
		{"duration without end", "/key/generate", `{"duration":"99999999999999999999d"}`, "duration"},
		{"unknown period", "/key/generate", `{"max_budget":1,"budget_duration":"fortnight"}`, "budget_duration"},

		{"a short key", "/key/generate", `{"key":"sk-short"}`, "key"},
		{"a key of another kind", "/key/generate", `{"key":"pk-0123456789abcdef"}`, "key"},
		{"a key with a space", "/key/generate", `{"key":"sk-0123456789 abcdef"}`, "key"},
		{"a key with a line break", "/key/generate", `{"key":"sk-0123456789\nabcdef"}`, "key"},
		{"a key beyond a header", "/key/generate", `{"key":"sk-` + strings.Repeat("x", 300) + `"}`, "key"},
		{"alias with CR LF", "/key/generate", `{"key_alias":"a\r\nSet-Cookie: x"}`, "key_alias"},
		{"alias with NUL", "/key/generate", `{"key_alias":"a\u0000"}`, "key_alias"},
		{"alias with a C1 control", "/key/generate", `{"key_alias":"a\u0085"}`, "key_alias"},
		{"alias without end", "/key/generate", `{"key_alias":"` + strings.Repeat("x", 600) + `"}`, "key_alias"},
		{"alias as a number", "/key/generate", `{"key_alias":7}`, "key_alias"},
		{"models as text", "/key/generate", `{"models":"gpt-4o"}`, "models"},
		{"a model that is null", "/key/generate", `{"models":[null]}`, "models"},
		{"aliases as a list", "/key/generate", `{"aliases":["a"]}`, "aliases"},
		{"blocked as text", "/key/generate", `{"blocked":"true"}`, "blocked"},
		{"blocked as a number", "/key/generate", `{"blocked":1}`, "blocked"},
		{"metadata as text", "/key/generate", `{"metadata":"x"}`, "metadata"},
		{"NUL in metadata", "/key/generate", `{"metadata":{"a":"\u0000"}}`, "metadata"},
		{"NUL in a name in metadata", "/key/generate", `{"metadata":{"\u0000":1}}`, "metadata"},
		{"nesting without end", "/key/generate", `{"metadata":{"a":` + deep + `}}`, "metadata"},
		{"nesting without end in a later field", "/key/generate", `{"config":` + deep + `}`, "config"},
		{"tags as an object", "/key/generate", `{"tags":{"a":"b"}}`, "tags"},

		{"update of nobody", "/key/update", `{"max_budget":1}`, "key"},
		{"update of a number", "/key/update", `{"key":1}`, "key"},
		{"block of nobody", "/key/block", `{}`, "key"},
		{"delete of nobody", "/key/delete", `{}`, "keys"},
		{"delete of none", "/key/delete", `{"keys":[]}`, "keys"},
		{"delete by text", "/key/delete", `{"keys":"sk-0123456789abcdef"}`, "keys"},
		{"delete of too many", "/key/delete", `{"keys":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`, "keys"},
		{"delete of too many aliases", "/key/delete", `{"key_aliases":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`, "key_aliases"},
	}
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.why, func(t *testing.T) {
				t.Parallel()
				a := b.call("POST", c.path, c.body)
				kind, param, code := errorOf(t, a)
				if a.status != http.StatusBadRequest || code != "400" || kind != "bad_request_error" || param != c.param {
					t.Errorf("%d %s, want 400 that names %q", a.status, a.raw, c.param)
				}
			})
		}
	})
	// The group above ends when all of its cases have: none of them made a key.
	checkFields(t, b.ok("GET", "/key/list", "").body, map[string]string{"total_count": "0"})
}

func TestMessagesArePlain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for body, want := range map[string]string{
		`{"max_budget":"one"}`: "max_budget must be an amount in dollars from 0 to 1000000000, as a number such as 12.5",
		`{"max_budget":2e9}`:   "max_budget must be at most 1000000000 dollars",
		`{"max_bugdet":1}`:     "max_bugdet is not known: is max_budget meant?",
		`{"budget":1}`:         "budget is not known: is max_budget meant?",
		`{"team_ids":1}`:       "team_ids is not known: is team_id meant?",
	} {
		e, _ := b.call("POST", "/key/generate", body).body["error"].(map[string]any)
		if e["message"] != want {
			t.Errorf("%s: got %q, want %q", body, e["message"], want)
		}
	}
}

func TestBodyLimitAndHeaders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.call("POST", "/key/generate", `{"metadata":{"a":"`+strings.Repeat("x", 2<<20)+`"}}`)
	if kind, _, code := errorOf(t, a); a.status != 413 || code != "413" || kind != "request_too_large" {
		t.Errorf("too large a body: %d %s", a.status, a.raw)
	}
	a = b.call("POST", "/key/generate", `{}`, "litellm-changed-by", strings.Repeat("x", 300))
	if _, param, _ := errorOf(t, a); a.status != 400 || param != "litellm-changed-by" {
		t.Errorf("changed-by without end: %d %s", a.status, a.raw)
	}
}

// FuzzGenerate looks for a body that is answered with anything but a key or a 400.
func FuzzGenerate(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"max_budget":0.03,"duration":"30d"}`, `{"key":"sk-0123456789abcdef","models":["a"]}`,
		`{"metadata":{"a":[1,{"b":null}]},"tpm_limit":5}`, `{"max_budget":1e400}`, `{"a":1,"a":2}`, "{\"\xff\":1}",
		`{"aliases":{"a":"b"},"tags":["x"],"soft_budget":1,"spend":3}`, `{"model_max_budget":{"m":-1}}`, `[[[[`,
	} {
		f.Add(seed)
	}
	b := setup(f)
	f.Fuzz(func(t *testing.T, body string) {
		b := &bundle{t: t, api: b.api, store: b.store}
		a := b.call("POST", "/key/generate", body)
		if a.status != http.StatusOK {
			if _, _, code := errorOf(t, a); code != "400" {
				t.Fatalf("%q: %d %s", body, a.status, a.raw)
			}
			return
		}
		info := b.call("GET", "/key/info?key="+str(a.body["token"]), "")
		if info.status != http.StatusOK {
			t.Fatalf("%q made a key that cannot be shown: %s", body, info.raw)
		}
	})
}
