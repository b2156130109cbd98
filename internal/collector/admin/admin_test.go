package admin_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/collector/admin"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/sqlite"
)

const masterKey = "sk-master-0123456789"

// bundle is one API over its own database.
type bundle struct {
	t     testing.TB
	api   http.Handler
	store store.Store
}

func setup(t testing.TB) *bundle {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &bundle{t: t, store: s, api: apiOver(s)}
}

func apiOver(s store.Store) http.Handler {
	return admin.New(admin.Config{
		Store:           s,
		MasterKeySHA256: sha256.Sum256([]byte(masterKey)),
		Logger:          slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any // where the answer is an object; numbers are json.Number
}

func (b *bundle) call(method, path, body string, header ...string) answer {
	b.t.Helper()
	return send(b.t, b.api, method, path, body, append([]string{"Authorization", "Bearer " + masterKey}, header...)...)
}

// send makes one call; header is names and values in turn, later ones replace.
func send(t testing.TB, api http.Handler, method, path, body string, header ...string) answer {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	a := answer{status: w.Code, header: w.Header(), raw: w.Body.String()}
	dec := json.NewDecoder(strings.NewReader(a.raw))
	dec.UseNumber()
	if strings.HasPrefix(a.raw, "{") {
		if err := dec.Decode(&a.body); err != nil {
			t.Fatalf("%s %s: answer is not JSON: %v\n%s", method, path, err, a.raw)
		}
	}
	return a
}

func (b *bundle) ok(method, path, body string, header ...string) answer {
	b.t.Helper()
	a := b.call(method, path, body, header...)
	if a.status != http.StatusOK {
		b.t.Fatalf("%s %s: %d %s", method, path, a.status, a.raw)
	}
	return a
}

// errorOf returns the envelope's type, param and code, and fails on another shape.
func errorOf(t testing.TB, a answer) (kind, param, code string) {
	t.Helper()
	e, ok := a.body["error"].(map[string]any)
	if !ok || len(e) != 4 || len(a.body) != 1 {
		t.Fatalf("not the error envelope: %s", a.raw)
	}
	if msg, _ := e["message"].(string); msg == "" {
		t.Fatalf("an error without a message: %s", a.raw)
	}
	kind, _ = e["type"].(string)
	param, _ = e["param"].(string)
	code, _ = e["code"].(string)
	return kind, param, code
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func TestAccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	own := b.ok("POST", "/key/generate", `{"key_alias":"own"}`)
	blocked := b.ok("POST", "/key/generate", `{"blocked":true}`)
	gone := b.ok("POST", "/key/generate", `{"duration":"1s"}`)
	expire(t, b, str(gone.body["token"]))
	key := str(own.body["key"])

	cases := []struct {
		why, method, path string
		header            []string
		status            int
		kind              string
	}{
		{"no key at all", "GET", "/key/list", nil, 401, "auth_error"},
		{"not a key", "GET", "/key/list", []string{"Authorization", "Bearer hello"}, 401, "auth_error"},
		{"another scheme", "GET", "/key/list", []string{"Authorization", "Basic " + masterKey}, 401, "auth_error"},
		{"unknown key", "GET", "/key/info", []string{"Authorization", "Bearer sk-nobody-has-this-key"}, 401, "token_not_found_in_db"},
		{"blocked key", "GET", "/key/info", []string{"Authorization", "Bearer " + str(blocked.body["key"])}, 401, "auth_error"},
		{"expired key", "GET", "/key/info", []string{"Authorization", "Bearer " + str(gone.body["key"])}, 401, "expired_key"},
		{"a key is no master", "GET", "/key/list", []string{"Authorization", "Bearer " + key}, 403, "auth_error"},
		{"a key cannot make keys", "POST", "/key/generate", []string{"x-api-key", key}, 403, "auth_error"},
		{"a key cannot read spend", "GET", "/spend/logs", []string{"x-api-key", key}, 403, "auth_error"},
		{"a key reads itself", "GET", "/key/info", []string{"Authorization", "bearer " + key}, 200, ""},
		{"a key reads itself by name", "GET", "/key/info?key=" + key, []string{"api-key", key}, 200, ""},
		{"a key reads itself by hash", "GET", "/key/info?key=" + str(own.body["token"]), []string{"api-key", key}, 200, ""},
		{"a key reads no other", "GET", "/key/info?key=" + str(blocked.body["token"]), []string{"api-key", key}, 403, "auth_error"},
		{"master in x-api-key", "GET", "/key/list", []string{"x-api-key", masterKey}, 200, ""},
		{"master in api-key", "GET", "/key/list", []string{"api-key", masterKey}, 200, ""},
		{"the master key has no row", "GET", "/key/info", []string{"api-key", masterKey}, 400, "bad_request_error"},
		{"unknown path", "GET", "/key/nothing", []string{"api-key", masterKey}, 404, "not_found_error"},
		{"root", "GET", "/", []string{"api-key", masterKey}, 404, "not_found_error"},
		{"wrong method", "GET", "/key/generate", []string{"api-key", masterKey}, 405, "method_not_allowed"},
		{"wrong method", "DELETE", "/key/info", []string{"api-key", masterKey}, 405, "method_not_allowed"},
		{"trailing slash", "GET", "/key/list/", []string{"api-key", masterKey}, 200, ""},
		{"NUL in a parameter", "GET", "/key/list?user_id=%00", []string{"api-key", masterKey}, 400, "bad_request_error"},
		{"not UTF-8 in a parameter", "GET", "/spend/logs?user_id=%ff", []string{"api-key", masterKey}, 400, "bad_request_error"},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			a := send(t, b.api, c.method, c.path, "", c.header...)
			if a.status != c.status {
				t.Fatalf("%d %s, want %d", a.status, a.raw, c.status)
			}
			if c.status == http.StatusOK {
				return
			}
			kind, _, code := errorOf(t, a)
			if kind != c.kind || code != jsonInt(c.status) {
				t.Errorf("type %q code %q, want %q and %d", kind, code, c.kind, c.status)
			}
		})
	}
}

func jsonInt(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// away is a database that cannot be reached.
type away struct{ store.Store }

func (away) Key(context.Context, string) (store.Key, error) {
	return store.Key{}, store.ErrUnavailable
}

func (away) Admit(context.Context, string) (store.Admission, error) {
	return store.Admission{}, store.ErrUnavailable
}

func (away) ListKeys(context.Context, store.KeyFilter) (store.KeyPage, error) {
	return store.KeyPage{}, store.ErrUnavailable
}

func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	api := apiOver(away{})
	for _, c := range []struct{ why, path, key string }{
		{"never 401 because a database is away", "/key/info", "sk-some-virtual-key-1"},
		{"the master key is known without it", "/key/list", masterKey},
	} {
		a := send(t, api, "GET", c.path, "", "Authorization", "Bearer "+c.key)
		kind, _, code := errorOf(t, a)
		if a.status != http.StatusServiceUnavailable || kind != "no_db_connection" || code != "503" {
			t.Errorf("%s: %d %s", c.why, a.status, a.raw)
		}
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", c.why)
		}
	}
}
