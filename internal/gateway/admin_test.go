package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestBadAdminInput: whatever an administrator mistypes is a 4xx that says what is wrong,
// never a 500, and changes nothing.
func TestBadAdminInput(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	a := s.do("POST", "/key/generate", masterKey, `{"key_alias":"good","max_budget":1}`)
	var made struct{ Key string }
	if json.Unmarshal(a.body, &made) != nil || a.status != 200 {
		t.Fatalf("got %d: %s", a.status, a.body)
	}
	values := map[string][]string{
		"max_budget": {"-1", "-0.000000001", "NaN", "Infinity", "1e400", "1e30", `"1"`, `"NaN"`, "true", "[]", "{}", "9223372036854775808", "0x10"},
		"models":     {`"m-o"`, `[1]`, `[null]`, `{"a":1}`, `["a\u0000"]`},
		"key_alias":  {"1", "[]", `"a\r\nb"`, `"` + strings.Repeat("a", 100_000) + `"`},
		"duration":   {"1", `"x"`, `"-1d"`, `"99999999999999999999d"`, "[]"},
		"metadata":   {`"x"`, "1", "[]"},
		"aliases":    {`"x"`, `{"a":1}`, "[]"},
		"blocked":    {`"yes"`, "1", "[]"},
		"tags":       {`"x"`, "[1]", "{}"},
	}
	for _, path := range []string{"/key/generate", "/key/update"} {
		for field, bad := range values {
			for _, value := range bad {
				body := fmt.Sprintf(`{"key":%q,%q:%s}`, made.Key, field, value)
				if path == "/key/generate" {
					body = fmt.Sprintf(`{%q:%s}`, field, value)
				}
				if a := s.do("POST", path, masterKey, body, "Content-Type", "application/json"); a.status < 400 || a.status >= 500 {
					t.Errorf("%s %.80s: got %d: %.200s", path, body, a.status, a.body)
				}
			}
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/key/generate", "{"}, {"POST", "/key/generate", "[]"}, {"POST", "/key/generate", "null"}, {"POST", "/key/generate", "\xff"},
		{"POST", "/key/generate", `{"key":"not-a-key"}`}, {"POST", "/key/generate", `{"key":"sk-"}`}, {"POST", "/key/generate", `{"key":"` + masterKey + `"}`},
		{"POST", "/key/generate", `{"key":"` + made.Key + `"}`}, {"POST", "/key/generate", `{"key_alias":"good"}`}, {"POST", "/key/generate", `{"max_budget":1,"max_budget":2}`},
		{"POST", "/key/update", `{"key":"sk-nobody","max_budget":1}`}, {"POST", "/key/update", `{"max_budget":1}`}, {"POST", "/key/update", `{"key":1}`},
		{"POST", "/key/delete", `{"keys":["sk-nobody"]}`}, {"POST", "/key/delete", `{"keys":"x"}`}, {"POST", "/key/delete", `{}`},
		{"POST", "/key/block", `{"key":"sk-nobody"}`}, {"POST", "/key/block", `{}`}, {"POST", "/key/unblock", `{"key":[]}`},
		{"GET", "/key/info?key=sk-nobody", ""}, {"GET", "/key/list?page=-1", ""}, {"GET", "/key/list?page=x", ""}, {"GET", "/key/list?size=99999999999999999999", ""},
		{"GET", "/spend/logs?start_date=yesterday", ""}, {"GET", "/spend/logs?start_date=2026-13-45&end_date=x", ""},
		{"GET", "/key/nothing", ""}, {"POST", "/spend/nothing", "{}"}, {"DELETE", "/key/delete", ""}, {"GET", "/key/generate", ""},
	} {
		if a := s.do(c.method, c.path, masterKey, c.body); a.status < 400 || a.status >= 500 {
			t.Errorf("%s %s %.80s: got %d: %.200s", c.method, c.path, c.body, a.status, a.body)
		} else if !strings.Contains(string(a.body), `"error"`) {
			t.Errorf("%s %s: no envelope: %s", c.method, c.path, a.body)
		}
	}
	if a := s.do("GET", "/key/info?key="+made.Key, masterKey, ""); a.status != 200 || !strings.Contains(string(a.body), `"max_budget":1`) || !strings.Contains(string(a.body), `"key_alias":"good"`) {
		t.Errorf("the key has changed: %d %s", a.status, a.body)
	}
	if a := s.chat(made.Key, hello); a.status != 200 {
		t.Errorf("the key does not serve: %d %s", a.status, a.body)
	}
}

// TestAdminNeedsTheMasterKey on every route and with every spelling of a key.
func TestAdminNeedsTheMasterKey(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	key := s.newKey("", nil)
	for _, route := range []string{"POST /key/generate", "POST /key/update", "POST /key/delete", "POST /key/block", "POST /key/unblock", "GET /key/list"} {
		method, path, _ := strings.Cut(route, " ")
		for _, secret := range []string{"", key, masterKey + "x", masterKey[:len(masterKey)-1], strings.ToUpper(masterKey), "sk-", keyID(masterKey)} {
			if a := s.do(method, path, secret, "{}"); a.status != 401 && a.status != 403 {
				t.Errorf("%s with %q: got %d: %s", route, secret, a.status, a.body)
			}
		}
	}
}
