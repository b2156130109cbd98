package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/store"
)

func load(t *testing.T, yaml string, env map[string]string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Source{Path: path, Getenv: lookup(env)})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

const (
	pricedModel   = "- {model_name: priced, litellm_params: {model: openai/x, api_key: k, input_cost_per_token: 1e-6, output_cost_per_token: 1e-6}}\n"
	unpricedModel = "- {model_name: unpriced, litellm_params: {model: openai/x, api_key: k}}\n"
	halfPriced    = "- {model_name: unpriced, litellm_params: {model: openai/x, api_key: k, input_cost_per_token: 1e-6, output_cost_per_token: 1e-6}}\n"
	wildcard      = "- {model_name: 'openai/*', litellm_params: {model: 'openai/*', api_key: k}}\n"
	embedding     = "- {model_name: vectors, litellm_params: {model: openai/v, api_key: k, input_cost_per_token: 1e-6, output_cost_per_token: 0}, model_info: {mode: embedding}}\n"
)

func TestGreetingModel(t *testing.T) {
	t.Parallel()
	budget := int64(firstBudget)
	budgeted, free := store.Key{MaxBudget: &budget}, store.Key{}
	for _, c := range []struct {
		why    string
		models string
		key    store.Key
		want   []string
		never  string
	}{
		{"a model without a price is 403 for a key with a budget", unpricedModel + pricedModel, budgeted, []string{`"model":"priced"`, "(2 models;"}, "model_unpriced"},
		{"a key without a budget takes any", unpricedModel + pricedModel, free, []string{`"model":"unpriced"`, "(no budget)"}, "model_unpriced"},
		{"no model has a price: say what to set, and how to go on without", unpricedModel, budgeted,
			[]string{"input_cost_per_token", "/key/generate", `"model":"unpriced"`, "Bearer <its key>", "(1 model;"}, "Bearer sk-first"},
		{"each deployment of a group needs the price", halfPriced + unpricedModel, budgeted, []string{"model_unpriced"}, "Bearer sk-first"},
		{"a pattern is no model's name", wildcard + pricedModel, budgeted, []string{`"model":"priced"`}, "*\""},
		{"only patterns: the reader knows the name", wildcard, free, []string{`"model":"<one of GET /v1/models>"`}, "*\""},
		{"an embedding model does not chat", embedding + pricedModel, budgeted, []string{`"model":"priced"`}, `"vectors"`},
		{"a key with a list gets one of it", unpricedModel + pricedModel, store.Key{Models: []string{"priced"}}, []string{`"model":"priced"`}, `"unpriced"`},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			g := greeting{address: "127.0.0.1:4000", config: load(t, "model_list:\n"+c.models, nil), key: firstKey{secret: "sk-first", row: c.key}}
			expect(t, g, c.want, c.never)
		})
	}
}

func expect(t *testing.T, g greeting, want []string, never string) {
	t.Helper()
	var b strings.Builder
	g.print(&b)
	for _, text := range want {
		if !strings.Contains(b.String(), text) {
			t.Errorf("without %q:\n%s", text, &b)
		}
	}
	if strings.Contains(b.String(), never) {
		t.Errorf("with %q:\n%s", never, &b)
	}
}

func TestGreetingWithoutFirstKey(t *testing.T) {
	t.Parallel()
	g := greeting{address: "127.0.0.1:4000", config: load(t, "model_list:\n"+pricedModel, nil), key: firstKey{secret: "sk-first", gone: true}}
	expect(t, g, []string{"was deleted", "/key/generate", "Bearer <its key>"}, "sk-first ")
}

// A line that is printed has to work in another shell, which knows the outer
// environment and nothing of the file.
func TestFindMasterKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why     string
		section string
		env     map[string]string
		want    string
	}{
		{"made here: it stands in a file", "", nil, `"Authorization: Bearer $(cat '/data/it'\''s/master-key')"`},
		{"from the environment", "", map[string]string{"LITELLM_MASTER_KEY": "sk-m"}, `Bearer $LITELLM_MASTER_KEY"`},
		{"our own name comes first", "", map[string]string{"LITELLM_MASTER_KEY": "sk-m", "PENSTOCK_MASTER_KEY": "sk-p"}, `Bearer $PENSTOCK_MASTER_KEY"`},
		{"a literal in the file", "general_settings: {master_key: sk-file}\n", nil, `'Authorization: Bearer <your master key>'`},
		{"the file wins over the environment", "general_settings: {master_key: sk-file}\n", map[string]string{"LITELLM_MASTER_KEY": "sk-m"}, `<your master key>`},
		{"another variable, named by the file", "general_settings: {master_key: os.environ/OTHER}\n", map[string]string{"OTHER": "sk-o"}, `<your master key>`},
		{"the file's own environment is not a shell's", "environment_variables: {LITELLM_MASTER_KEY: sk-e}\n", nil, `<your master key>`},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			cfg := load(t, c.section+"model_list:\n"+pricedModel, c.env)
			if got := findMasterKey(cfg, folder{path: "/data/it's"}, lookup(c.env)); !strings.Contains(got.header, c.want) {
				t.Errorf("got %s, want %s", got.header, c.want)
			}
		})
	}
}
