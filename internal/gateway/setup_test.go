package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/fakeupstream"
	"github.com/penstock-gateway/penstock/internal/gateway"
	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/sqlite"
)

func TestMain(m *testing.M) {
	// fasthttp's pool cleaner sleeps for up to ten seconds before it sees that its server has stopped.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

const masterKey = "sk-master-0123456789"

// stack is a worker and a collector over a real store in this process, with a
// provider behind them.
type stack struct {
	t       *testing.T
	address string
	store   *sqlite.Store
	fake    *fakeupstream.Server
	dir     string
}

// models gives every test the same prices as the field cases: 100 USD per million
// tokens, so that one token is 0.0001 USD.
const models = `
model_list:
- model_name: m-o
  litellm_params: {model: openai/gpt-4o, api_base: "%[1]s/v1", api_key: sk-provider, input_cost_per_token: 1e-4, output_cost_per_token: 1e-4, cache_read_input_token_cost: 1e-4}
  model_info: {id: fake-1, max_output_tokens: 1000}
- model_name: "fake-*"
  litellm_params: {model: "openai/fake-*", api_base: "%[1]s/v1", api_key: sk-provider, input_cost_per_token: 1e-4, output_cost_per_token: 1e-4}
- model_name: unpriced
  litellm_params: {model: openai/nobody-knows-this, api_base: "%[1]s/v1", api_key: sk-provider}
- model_name: canned
  litellm_params: {model: openai/gpt-4o-mini, mock_response: "Hello from the mock"}
- model_name: dead
  litellm_params: {model: openai/gpt-4o, api_base: "http://127.0.0.1:1/v1", api_key: sk-provider}
general_settings: {master_key: ` + masterKey + `}
litellm_settings: {num_retries: 0}
penstock_settings: {max_body_bytes: 1000000}
`

// setup starts a stack whose upstream is the fake provider, or handler when given.
func setup(t *testing.T, handler http.Handler) *stack {
	t.Helper()
	s := &stack{t: t, dir: t.TempDir(), fake: fakeupstream.New(fakeupstream.Config{})}
	if handler == nil {
		handler = s.fake
	}
	provider := httptest.NewServer(handler)
	t.Cleanup(provider.Close)
	s.start(fmt.Sprintf(models, provider.URL))
	return s
}

func (s *stack) start(yaml string) {
	t := s.t
	t.Helper()
	path := filepath.Join(s.dir, "config.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Source{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if s.store, err = sqlite.Open(context.Background(), sqlite.Config{Path: filepath.Join(s.dir, "db")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.store.Close)
	coll, err := collector.New(collector.Config{
		Store: s.store, RunDir: s.dir, MasterKeySHA256: sha256.Sum256([]byte(masterKey)), Logger: log, BatchWait: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := coll.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, coll.Stop(stopContext(t))) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- gateway.Run(ctx, gateway.Config{Config: cfg, Listener: l, RunDir: s.dir, PodUID: "pod", Grace: 10 * time.Second, Logger: log})
	}()
	t.Cleanup(func() { cancel(); check(t, <-ended) })
}

func stopContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// newKey makes a virtual key; budget is decimal dollars, "" for none.
func (s *stack) newKey(budget string, change func(*store.Key)) string {
	s.t.Helper()
	key := "sk-" + strings.ReplaceAll(s.t.Name(), "/", "-") + fmt.Sprint(time.Now().UnixNano())
	sum := sha256.Sum256([]byte(key))
	row := store.Key{ID: hex.EncodeToString(sum[:]), Name: "sk-...test", Alias: key[3:], MetadataJSON: "{}", SettingsJSON: "{}"}
	if budget != "" {
		n, err := money.ParseNano(budget)
		if err != nil {
			s.t.Fatal(err)
		}
		row.MaxBudget = &n
	}
	if change != nil {
		change(&row)
	}
	if err := s.store.CreateKey(context.Background(), row); err != nil {
		s.t.Fatal(err)
	}
	return key
}

func keyID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// answer is a whole response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) code() string {
	var e struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(a.body, &e) != nil {
		return ""
	}
	return e.Error.Code
}

func (s *stack) do(method, path, key, body string, headers ...string) answer {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	payload, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("cannot read the answer after %d bytes: %v", len(payload), err)
	}
	return answer{resp.StatusCode, resp.Header, payload}
}

func (s *stack) chat(key, body string) answer {
	s.t.Helper()
	return s.do(http.MethodPost, "/v1/chat/completions", key, body)
}

// records waits until the key has n records, and a little for one too many.
func (s *stack) records(key string, n int) []store.Record {
	s.t.Helper()
	var rows []store.Record
	s.eventually(func() bool {
		var err error
		rows, err = s.store.Records(context.Background(), store.RecordFilter{KeyID: keyID(key), Limit: 10_000})
		check(s.t, err)
		return len(rows) >= n
	}, "%d records", n)
	if len(rows) != n {
		s.t.Fatalf("want %d records, have %d", n, len(rows))
	}
	return rows
}

// eventually polls a state that other goroutines bring about.
func (s *stack) eventually(cond func() bool, format string, args ...any) {
	s.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			s.t.Fatalf("did not come about: "+format, args...)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func events(body []byte) []string {
	var out []string
	for _, block := range bytes.Split(body, []byte("\n\n")) {
		if len(block) > 0 {
			out = append(out, strings.TrimPrefix(string(block), "data: "))
		}
	}
	return out
}
