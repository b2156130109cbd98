package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustCompile(t *testing.T, text string, getenv func(string) (string, bool)) (*Config, []Warning) {
	t.Helper()
	c, warnings, err := compile(Source{Path: "c.yaml", Getenv: getenv}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c, warnings
}

func TestNamesStayTexts(t *testing.T) {
	t.Parallel()
	var names []string
	text := "model_list:\n"
	for _, name := range []string{"no", "on", "1e3", "0x10", "0123", "2026-01-31", "1_000", "true", "'null'", ".5"} {
		text += "- {model_name: " + name + ", litellm_params: {model: mock/x}}\n"
	}
	c, _ := mustCompile(t, text, nil)
	for _, d := range c.Deployments {
		names = append(names, d.ModelName)
	}
	want := []string{"no", "on", "1e3", "0x10", "0123", "2026-01-31", "1_000", "true", "null", ".5"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestGoodValues(t *testing.T) {
	t.Parallel()
	c, warnings := mustCompile(t, entryWith("api_key: k", "timeout: '1.5'", "input_cost_per_token: 1e-6", "output_cost_per_token: '0.000002'", "output_cost_per_token_above_128k_tokens: 3e-6")+`
litellm_settings: {network_mock: on}
penstock_settings:
  max_body_bytes: 2048
  max_in_flight: 10
  max_body_bytes_in_flight: 1000000
  fit_output_min: 1
  estimate_factor: 1.25
  client_write_idle: 1m
  upstream_connect: 250ms
  upstream_header: 10s
  upstream_stream_idle: 11s
  upstream_keep_alive: 12s
  upstream_ca_file: /etc/ca.pem
`, nil)
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	d := c.Deployments[0]
	if d.Timeout != 1500*time.Millisecond || d.Price.Input != 1_000_000 || d.Price.Output != 2_000_000 || d.Price.Tiers[0].Output != 3_000_000 {
		t.Errorf("%+v, price %+v", d, d.Price)
	}
	want := Settings{
		MaxBodyBytes: 2048, MaxInFlight: 10, MaxBodyBytesInFlight: 1_000_000, FitOutputMin: 1, EstimatePermille: 1250,
		ClientWriteIdle: time.Minute, UpstreamConnect: 250 * time.Millisecond, UpstreamHeader: 10 * time.Second,
		UpstreamStreamIdle: 11 * time.Second, UpstreamKeepAlive: 12 * time.Second, UpstreamCAFile: "/etc/ca.pem",
	}
	if diff := cmp.Diff(want, c.Settings); diff != "" || !c.NetworkMock {
		t.Error(diff)
	}
}

func TestDefaultsOfSettings(t *testing.T) {
	t.Parallel()
	c, _ := mustCompile(t, entryWith("api_key: k"), nil)
	d := c.Deployments[0]
	if d.Timeout != 600*time.Second || d.StreamTimeout != d.Timeout || d.NumRetries != 3 || d.Weight != 1 {
		t.Errorf("%+v", d)
	}
	if s := c.Settings; s.MaxBodyBytes != 32<<20 || s.FitOutputMin != 256 || s.EstimatePermille != 1300 || s.MaxInFlight != 0 {
		t.Errorf("%+v", s)
	}
	if !c.MasterKey.IsZero() || !c.DatabaseURL.IsZero() || c.NetworkMock {
		t.Errorf("%+v", c)
	}
}

func TestWeights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		list []string
		want []int64
	}{
		{"none: all the same", []string{"", ""}, []int64{1, 1}},
		{"by weight, the others get nothing", []string{"weight: 0.5", "rpm: 100", "weight: 2"}, []int64{500, 0, 2000}},
		{"by rpm before tpm", []string{"tpm: 5", "rpm: 100", "rpm: 300"}, []int64{0, 100_000, 300_000}},
		{"by tpm", []string{"tpm: 5", "tpm: 6"}, []int64{5000, 6000}},
	} {
		text := "model_list:\n"
		for _, w := range c.list {
			text += "- model_name: m\n  litellm_params:\n    model: mock/x\n    " + w + "\n"
		}
		got, _ := mustCompile(t, text, nil)
		var weights []int64
		for _, d := range got.Deployments {
			weights = append(weights, d.Weight)
		}
		if diff := cmp.Diff(c.want, weights); diff != "" {
			t.Errorf("%s: %s", c.why, diff)
		}
	}
}

func TestEndpointFromEnvironment(t *testing.T) {
	t.Parallel()
	c, _ := mustCompile(t, "model_list:\n- {model_name: m, litellm_params: {model: gpt-4o}}\n- {model_name: v, litellm_params: {model: hosted_vllm/x}}\n",
		env("OPENAI_BASE_URL", "http://proxy/v1/\n", "OPENAI_API_KEY", "k", "HOSTED_VLLM_API_BASE", "http://vllm:8000/v1"))
	if c.Deployments[0].APIBase != "http://proxy/v1" || c.Deployments[1].APIBase != "http://vllm:8000/v1" {
		t.Errorf("%q, %q", c.Deployments[0].APIBase, c.Deployments[1].APIBase)
	}
}

func TestMissingCredentialIsSaid(t *testing.T) {
	t.Parallel()
	_, warnings := mustCompile(t, "model_list:\n- {model_name: m, litellm_params: {model: gpt-4o}}\n- {model_name: v, litellm_params: {model: openai/x, api_base: 'http://own/v1', input_cost_per_token: 0, output_cost_per_token: 0}}\n", nil)
	if len(warnings) != 1 || warnings[0].Code != WarnCredentials || !strings.Contains(warnings[0].String(), "m (model_list[0])") || strings.Contains(warnings[0].String(), "v (") {
		t.Errorf("%v", warnings)
	}
}

func TestMistypedKeysAreAskedFor(t *testing.T) {
	t.Parallel()
	_, warnings := mustCompile(t, `
genral_settings: {}
litellm_settings: {request_timeuot: 5, colour: blue}
model_list:
- model_name: m
  litellm_params: {model: gpt-4o, api_key: k, output_cost_per_tokn: 1e-6, temprature: 1}
  model_info: {max_outpt_tokens: 5, cost_center: 7}
  model_inf: {}
`, nil)
	want := []Warning{{Code: WarnKeys, Text: "these keys of the configuration have no effect yet", Details: []string{
		"genral_settings (unknown, is 'genral_settings' meant for 'general_settings'?)",
		"litellm_settings.colour (unknown)",
		"litellm_settings.request_timeuot (unknown, is 'request_timeuot' meant for 'request_timeout'?)",
		"model_list[].litellm_params.output_cost_per_tokn (unknown, is 'output_cost_per_tokn' meant for 'output_cost_per_token'?)",
		"model_list[].litellm_params.temprature (unknown, is 'temprature' meant for 'temperature'?)",
		"model_list[].model_inf (unknown, is 'model_inf' meant for 'model_info'?)",
		"model_list[].model_info.max_outpt_tokens (unknown, is 'max_outpt_tokens' meant for 'max_output_tokens'?)",
	}}}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestOwnAuthorizationReplacesTheKey(t *testing.T) {
	t.Parallel()
	c, warnings := mustCompile(t, entryWith("extra_headers: {Authorization: Basic abc}"), env("OPENAI_API_KEY", "k"))
	if d := c.Deployments[0]; !d.APIKey.IsZero() || d.Headers[0].Value.Reveal() != "Basic abc" || len(warnings) > 0 {
		t.Errorf("two Authorization headers would be sent: %+v, %v", d, warnings)
	}
}

func TestCustomProvider(t *testing.T) {
	t.Parallel()
	c, _ := mustCompile(t, "model_list:\n- {model_name: m, litellm_params: {model: my/model, custom_llm_provider: openai, api_base: 'http://h/v1', api_key: k}}\n", nil)
	if d := c.Deployments[0]; d.Provider != "openai" || d.Model != "my/model" {
		t.Errorf("%+v", d)
	}
}

func TestSplitModel(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{
		"openai/gpt-4o": {"openai", "gpt-4o"}, "gpt-4o": {"openai", "gpt-4o"}, "o3": {"openai", "o3"}, "o4-mini": {"openai", "o4-mini"},
		"ft:gpt-4o:a::b": {"openai", "ft:gpt-4o:a::b"}, "text-embedding-3-small": {"openai", "text-embedding-3-small"},
		"claude-opus-4-5": {"anthropic", "claude-opus-4-5"}, "groq/openai/gpt-oss-120b": {"groq", "openai/gpt-oss-120b"},
		"ollama": {}, "gpt-oss-120b": {}, "/x": {}, "x/": {}, "": {},
	} {
		provider, name, ok := splitModel(in)
		if ok != (want[0] != "") || ok && (provider != want[0] || name != want[1]) {
			t.Errorf("splitModel(%q) = %q, %q, %v", in, provider, name, ok)
		}
	}
}

func TestYAMLPreamble(t *testing.T) {
	t.Parallel()
	for why, text := range map[string]string{
		"a byte order mark, as some editors write it": "\xef\xbb\xbf" + good,
		"a directive and an end":                      "%YAML 1.1\n---\n" + good + "...\n",
		"line ends of Windows":                        strings.ReplaceAll(good, "\n", "\r\n"),
	} {
		if _, _, err := compile(Source{Path: "c.yaml"}, []byte(text)); err != nil {
			t.Errorf("%s: %v", why, err)
		}
	}
}

func TestYAMLForms(t *testing.T) {
	t.Parallel()
	n, err := parseYAML([]byte("---\na: &x {k: 1, 'q': ~}\nb: *x\nc:\n  <<: [*x, {k: 9, m: 2}]\n  k: 3\n? d\n: |\n  one\n  two\ne: !!str 5\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(toJSON(n)); got != `{"a":{"k":1,"q":null},"b":{"k":1,"q":null},"c":{"k":3,"m":2,"q":null},"d":"one\ntwo\n","e":"5"}` {
		t.Error(got)
	}
}
