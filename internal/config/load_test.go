package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-gateway/penstock/internal/money"
)

func env(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}

func litellmEnv() func(string) (string, bool) {
	return env(
		"OPENAI_API_KEY", "sk-openai-secret\n", "ANTHROPIC_API_KEY", "sk-ant-secret", "ACME_LLM_KEY", "acme-secret",
		"LITELLM_MASTER_KEY", "sk-master-secret", "DATABASE_URL", "postgresql://u:db-secret@db/penstock",
		"REDIS_SECRET", "redis-secret", "ACME_TOKEN", "of-the-process",
	)
}

func loadLiteLLM(t *testing.T) (*Config, []Warning) {
	t.Helper()
	c, warnings, err := Load(Source{Path: "testdata/litellm.yaml", Getenv: litellmEnv()})
	if err != nil {
		t.Fatal(err)
	}
	return c, warnings
}

func TestLiteLLMFileStartsAndNamesWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	_, warnings := loadLiteLLM(t)
	want := []Warning{{
		Code: WarnKeys, Text: "these keys of the configuration have no effect yet",
		Details: []string{
			"general_settings.alerting",
			"general_settings.database_connection_pool_limit",
			"general_settings.proxy_batch_write_at",
			"general_settings.store_model_in_db",
			"general_settings.use_redis_transaction_buffer",
			"litellm_settings.budget_duration",
			"litellm_settings.cache",
			"litellm_settings.cache_params",
			"litellm_settings.callbacks",
			"litellm_settings.drop_params",
			"litellm_settings.json_logs",
			"litellm_settings.max_budget",
			"litellm_settings.set_verbose",
			"litellm_settings.some_key_of_a_later_release (unknown)",
			"litellm_settings.success_callback",
			"litellm_settings.upperbound_key_generate_params",
			"model_list[].litellm_params.cache_control_injection_points",
			"model_list[].litellm_params.drop_params",
			"model_list[].litellm_params.temperature",
			"model_list[].model_info.access_groups",
			"router_settings.allowed_fails",
			"router_settings.context_window_fallbacks",
			"router_settings.cooldown_time",
			"router_settings.fallbacks",
			"router_settings.redis_host",
			"router_settings.redis_password",
			"x-shared (unknown)",
		},
	}, {
		Code: WarnProviders, Text: "these models are left out, their provider is not supported yet",
		Details: []string{"gpt-4o (azure/gpt-4o-deployment)", "bedrock-nova (bedrock/amazon.nova-pro-v1:0)", "nova (alias of bedrock-nova)"},
	}, {
		Code: WarnUnpriced, Text: "these models have no price and are refused to keys with a budget; set input_cost_per_token and output_cost_per_token, or penstock_settings.price_map",
		Details: []string{"canned (model_list[11])"},
	}, {
		Code: WarnWeights, Text: "these are used as weight of the group, and limit nothing yet",
		Details: []string{"model_list[].litellm_params.rpm", "model_list[].litellm_params.tpm"},
	}}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestLiteLLMFileIsCompiled(t *testing.T) {
	t.Parallel()
	c, _ := loadLiteLLM(t)
	var names []string
	for _, d := range c.Deployments {
		names = append(names, d.ModelName+"="+d.Provider+"/"+d.Model)
	}
	want := []string{
		"gpt-4o=openai/gpt-4o", "gpt-4o=custom_openai/gpt-4o", "gpt-4o-mini=openai/gpt-4o-mini",
		"claude-sonnet=anthropic/claude-sonnet-4-5-20250929", "llama-local=hosted_vllm/meta-llama/Llama-3.3-70B-Instruct",
		"no=groq/llama-3.3-70b-versatile", "1e3=groq/openai/gpt-oss-120b", "text-embedding=openai/text-embedding-3-small",
		"openai/*=openai/*", "canned=vertex_ai/gemini-2.5-pro",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatal(diff)
	}
	primary, own := c.Deployments[0], c.Deployments[1]
	checkPrimary(t, primary)
	if own.APIBase != "https://llm.acme.example/v1" || own.Price.Input != 2_000_000 || own.Price.Version != "config" || own.Weight != 100_000 {
		t.Errorf("own server: %+v, price %+v", own, own.Price)
	}
	if own.StreamTimeout != 30500*time.Millisecond || own.Timeout != 200*time.Second || own.NumRetries != 1 {
		t.Errorf("own server's timeouts: %v, %v, %d retries", own.Timeout, own.StreamTimeout, own.NumRetries)
	}
	if got := own.Headers[1].Value.Reveal(); got != "token-from-the-file" {
		t.Errorf("the file's environment_variables must win, got %q", got)
	}
	if c.MasterKey.Reveal() != "sk-master-secret" || c.Settings.MaxBodyBytes != 16<<20 || c.Settings.MaxInFlight != 500 {
		t.Errorf("settings: %+v", c.Settings)
	}
	if diff := cmp.Diff([]Alias{{Name: "gpt-4", Model: "gpt-4o"}, {Name: "legacy-gpt", Model: "gpt-4o", Hidden: true}}, c.Aliases); diff != "" {
		t.Error(diff)
	}
}

func checkPrimary(t *testing.T, d *Deployment) {
	t.Helper()
	if d.ID != "gpt-4o-primary" || d.APIBase != "https://api.openai.com/v1" || d.APIKey.Reveal() != "sk-openai-secret" {
		t.Errorf("primary: %+v", d)
	}
	if d.Timeout != 120*time.Second || d.StreamTimeout != 120*time.Second || d.NumRetries != 2 || d.Weight != 900_000 {
		t.Errorf("primary's settings: %+v", d)
	}
	if d.Price.Output != 10_000_000 || d.MaxOutput != 16384 || d.MaxInput != 128000 || d.Mode != "chat" {
		t.Errorf("primary's price: %+v", d.Price)
	}
	if want := `{"access_groups":["production"],"base_model":"gpt-4o","cost_center":4711,"id":"gpt-4o-primary","team":"platform"}`; string(d.Info) != want {
		t.Errorf("info: %s", d.Info)
	}
	if d.Headers[0].Name != "OpenAI-Organization" || d.Headers[0].Value.Reveal() != "org-acme" {
		t.Errorf("organization: %+v", d.Headers)
	}
}

func TestLiteLLMFileTraps(t *testing.T) {
	t.Parallel()
	c, _ := loadLiteLLM(t)
	by := map[string]*Deployment{}
	for _, d := range c.Deployments {
		by[d.ModelName] = d
	}
	if d := by["gpt-4o-mini"]; d.APIKey.Reveal() != "sk-openai-secret" {
		t.Errorf("the provider's own variable must give the key, without its newline: %q", d.APIKey.Reveal())
	}
	if d := by["claude-sonnet"]; d.APIBase != "https://api.anthropic.com/v1" || len(d.Price.Tiers) != 1 {
		t.Errorf("anthropic's base without /v1, dated model with its tier: %+v", d)
	}
	if d := by["llama-local"]; d.Price == nil || d.Price.Input != 0 || d.MaxOutput != 8192 {
		t.Errorf("an explicit 0 is a free model, not an unpriced one: %+v", d)
	}
	if d := by["no"]; d.APIKey.Reveal() != "gsk_literal$HOME" {
		t.Errorf("nothing in a secret is expanded: %q", d.APIKey.Reveal())
	}
	if d := by["canned"]; !d.Mock() || *d.MockResponse != "Hello from\nnowhere.\n" || d.APIBase != "" {
		t.Errorf("a canned answer needs no provider: %+v", d)
	}
	if d := by["text-embedding"]; d.Price == nil || d.Price.Output != 0 || d.MaxOutput != DefaultMaxOutput {
		t.Errorf("embedding: %+v", d)
	}
}

func TestWildcardServesARequestedName(t *testing.T) {
	t.Parallel()
	c, _ := loadLiteLLM(t)
	i := slices.IndexFunc(c.Deployments, (*Deployment).Wildcard)
	pattern := c.Deployments[i]
	d := pattern.For("openai/gpt-4.1-mini", c.Prices)
	if d.Model != "gpt-4.1-mini" || d.Price == nil || d.Price.Input != 400_000 || d.MaxOutput != 32768 || d.ID != pattern.ID {
		t.Errorf("%+v", d)
	}
	if unknown := pattern.For("openai/gpt-99", c.Prices); unknown.Price != nil || unknown.MaxOutput != DefaultMaxOutput {
		t.Errorf("an unknown model has no price: %+v", unknown)
	}
	if pattern.Model != "*" || pattern.Price != nil {
		t.Errorf("the pattern was changed: %+v", pattern)
	}
}

func TestPricePrecedence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "prices.json", `{
		"gpt-4o": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.1e-05, "cache_read_input_token_cost": 1e-06,
			"input_cost_per_token_above_100k_tokens": 6e-06, "litellm_provider": "openai", "max_output_tokens": 9000},
		"acme/x": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06}
	}`)
	path := write(t, dir, "config.yaml", `
penstock_settings: {price_map: prices.json}
model_list:
- {model_name: map, litellm_params: {model: gpt-4o}}
- {model_name: builtin, litellm_params: {model: gpt-4o-mini}}
- {model_name: own, litellm_params: {model: gpt-4o, input_cost_per_token: 1e-06}}
- {model_name: part, litellm_params: {model: gpt-4o, cache_read_input_token_cost: 2e-06}}
- {model_name: info, litellm_params: {model: gpt-4o, input_cost_per_token: 1e-06}, model_info: {input_cost_per_token: 9e-06, output_cost_per_token: 2e-06}}
- {model_name: base, litellm_params: {model: openai/deployed-name}, model_info: {base_model: acme/x}}
- {model_name: other-server, litellm_params: {model: hosted_vllm/gpt-4o, api_base: "http://h/v1"}}
- {model_name: half, litellm_params: {model: hosted_vllm/y, api_base: "http://h/v1", input_cost_per_token: 1e-06}}
`)
	c, warnings, err := Load(Source{Path: path, Getenv: env("OPENAI_API_KEY", "k")})
	if err != nil {
		t.Fatal(err)
	}
	flat := func(input, output, cached int64) *money.Rates {
		return &money.Rates{Input: input, Output: output, Cached: cached, CacheWrite: input, Reasoning: output}
	}
	for i, want := range []struct {
		why   string
		rates *money.Rates
		tiers int
		max   int64
	}{
		{"the price map wins over the built-in table", flat(3_000_000, 11_000_000, 1_000_000), 1, 9000},
		{"the built-in table serves the rest", flat(150_000, 600_000, 75_000), 0, 16384},
		{"its own list price has no other's tiers and cached prices", flat(1_000_000, 11_000_000, 1_000_000), 0, 9000},
		{"a part alone changes that part", flat(3_000_000, 11_000_000, 2_000_000), 1, 9000},
		{"litellm_params win over model_info", flat(1_000_000, 2_000_000, 1_000_000), 0, 9000},
		{"base_model is what is looked up", flat(1_000_000, 1_000_000, 1_000_000), 0, DefaultMaxOutput},
		{"a server of one's own is not OpenAI", nil, 0, DefaultMaxOutput},
		{"one price of two is none", nil, 0, DefaultMaxOutput},
	} {
		d := c.Deployments[i]
		if want.rates == nil {
			if d.Price != nil {
				t.Errorf("%s: %+v", want.why, d.Price)
			}
		} else if d.Price == nil || d.Price.Rates != *want.rates || len(d.Price.Tiers) != want.tiers {
			t.Errorf("%s: %+v", want.why, d.Price)
		}
		if d.MaxOutput != want.max {
			t.Errorf("%s: maximum output %d, want %d", want.why, d.MaxOutput, want.max)
		}
	}
	if len(warnings) != 2 || warnings[0].Code != WarnHalfPrices || !strings.HasSuffix(warnings[0].String(), ": half (model_list[7])") ||
		warnings[1].Code != WarnUnpriced || !strings.HasSuffix(warnings[1].String(), ": other-server (model_list[6])") {
		t.Errorf("each model without a price must be named once: %v", warnings)
	}
}

func TestDefault(t *testing.T) {
	t.Parallel()
	c, warnings, err := Default(env())
	if err != nil || len(warnings) > 0 || len(c.Deployments) != 1 {
		t.Fatalf("%v, %v", warnings, err)
	}
	if d := c.Deployments[0]; d.ModelName != "mock" || !d.Mock() || d.Price == nil || d.BaseModel != "gpt-4o-mini" || d.MaxOutput != 16384 {
		t.Errorf("mock: %+v", d)
	}
	c, warnings, err = Default(env("OPENAI_API_KEY", "k", "PENSTOCK_MASTER_KEY", "m", "LITELLM_MASTER_KEY", "l"))
	if err != nil || len(warnings) > 0 || len(c.Deployments) < 15 || c.MasterKey.Reveal() != "m" {
		t.Fatalf("%d models, %v, %v", len(c.Deployments), warnings, err)
	}
	for _, d := range c.Deployments[1:] {
		if d.Provider != "openai" || d.Price == nil || d.APIKey.Reveal() != "k" {
			t.Errorf("%+v", d)
		}
	}
}

func TestChecksum(t *testing.T) {
	t.Parallel()
	sum := func(text string, getenv func(string) (string, bool)) string {
		t.Helper()
		c, _, err := compile(Source{Path: "c.yaml", Getenv: getenv}, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c.Checksum
	}
	const one = "model_list: [{model_name: m, litellm_params: {model: gpt-4o, api_key: os.environ/K, timeout: 5}}]"
	first := sum(one, env("K", "secret"))
	if len(first) != 64 || first != sum(one, env("K", "another")) {
		t.Error("a secret must not change the checksum")
	}
	for _, with := range []string{
		"\ngeneral_settings: {master_key: sk-a, database_url: 'postgres://u:p@h/d'}", "\ngeneral_settings: {master_key: sk-b}",
	} {
		if first != sum(one+with, env("K", "secret")) || first != sum(one, env("K", "", "LITELLM_MASTER_KEY", "sk-c", "DATABASE_URL", "postgres://h/d")) {
			t.Error("neither may its presence")
		}
	}
	if first != sum("# other words\nmodel_list:\n- litellm_params:\n    timeout: 5.0\n    api_key: os.environ/K\n    model: 'gpt-4o'\n  model_name: m\n", env("K", "secret")) {
		t.Error("files that mean the same must have one checksum")
	}
	if first == sum(strings.Replace(one, "timeout: 5", "timeout: 6", 1), env("K", "secret")) {
		t.Error("another meaning must have another checksum")
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	const two = `
- {model_name: m, litellm_params: {model: gpt-4o, api_key: k}}
- {model_name: m, litellm_params: {model: gpt-4o, api_key: k}}`
	a, _, err := compile(Source{}, []byte("model_list:"+two))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := compile(Source{}, []byte("model_list:\n- {model_name: first, litellm_params: {model: mock/x}}"+two))
	if err != nil {
		t.Fatal(err)
	}
	if a.Deployments[0].ID == a.Deployments[1].ID {
		t.Error("equal entries must have different ids")
	}
	if a.Deployments[0].ID != b.Deployments[1].ID || a.Deployments[1].ID != b.Deployments[2].ID {
		t.Error("an id must not depend on the place in the file")
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
