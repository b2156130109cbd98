package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// entryWith is a good entry with more lines in its litellm_params, the first of which is
// line 5 of the file.
func entryWith(lines ...string) string {
	text := "model_list:\n- model_name: m\n  litellm_params:\n    model: openai/gpt-4o\n"
	for _, line := range lines {
		text += "    " + line + "\n"
	}
	return text
}

const good = "model_list: [{model_name: m, litellm_params: {model: openai/gpt-4o}}]\n"

func TestBadFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, text, want string }{
		// YAML itself.
		{"an empty file is not an empty configuration", "", "c.yaml: cannot read the configuration: the file is empty"},
		{"only comments", "# nothing\n", "the file is empty"},
		{"a tab for indentation", "model_list:\n\t- x\n", "c.yaml:2:1: cannot read the configuration: found character '\t'"},
		{"wrong indentation", "a: 1\n  b: 2\n", "c.yaml:1:4: cannot read the configuration: mapping value is not allowed"},
		{"an open bracket", "model_list: [\n", "c.yaml:1:13: cannot read"},
		{"a key twice", good + "model_list: []\n", `c.yaml:2:1: cannot read the configuration: mapping key "model_list" already defined`},
		{"a key twice, deep", entryWith("timeout: 1", "timeout: 2"), "c.yaml:6:5: cannot read"},
		{"two documents", good + "---\na: 1\n", "c.yaml:3:1: cannot read the configuration: a second YAML document"},
		{"an alias without an anchor", "model_list: *nope\n", "c.yaml:1:13: cannot read the configuration: the alias *nope has no anchor"},
		{"a tag that builds an object", "model_list: !!python/object x\n", "the tag !!python/object is not supported"},
		{"not text", "\xff\xfe", "the file is not UTF-8"},
		{"too large", "#" + strings.Repeat("x", maxFile), "larger than"},
		{"a list at the top", "- a\n", "c.yaml:1:1: cannot read the configuration: it must be a mapping, not a list"},
		{"aliases that multiply", bomb(), "more than 200000 values"},

		// Entries.
		{"nothing to serve", "general_settings: {}\n", "cannot use model_list: it is missing or empty, there is nothing to serve"},
		{"model_list is a mapping", "model_list: {a: b}\n", "c.yaml:1:14: cannot use model_list: it must be a list, not a mapping"},
		{"an entry without a name", "model_list:\n- litellm_params: {model: gpt-4o}\n", "c.yaml:2:3: cannot use model_list[0].model_name: it is missing"},
		{"an empty name", "model_list:\n- model_name: ''\n  litellm_params: {model: gpt-4o}\n", `c.yaml:2:15: cannot use model_list[0].model_name: "" is empty`},
		{"an entry without parameters", "model_list:\n- model_name: m\n", "cannot use model_list[0].litellm_params: it is missing"},
		{"an entry without a model", "model_list:\n- model_name: m\n  litellm_params: {api_key: k}\n", "cannot use model_list[0].litellm_params.model: it is missing"},
		{"a model mistyped", "model_list:\n- model_name: m\n  litellm_params: {api_key: k, mdoel: gpt-4o}\n", "c.yaml:3:32: cannot use model_list[0].litellm_params.model: it is missing: is 'mdoel' meant for 'model'?"},
		{"a name mistyped", "model_list:\n- model-name: m\n  litellm_params: {model: gpt-4o}\n", "c.yaml:2:3: cannot use model_list[0].model_name: it is missing: is 'model-name' meant for 'model_name'?"},
		{"parameters mistyped", "model_list:\n- model_name: m\n  litellm_parms: {model: gpt-4o}\n", "c.yaml:3:3: cannot use model_list[0].litellm_params: it is missing: is 'litellm_parms' meant for 'litellm_params'?"},
		{"the list mistyped", "models_list: []\n", "c.yaml:1:1: cannot use model_list: it is missing or empty, there is nothing to serve: is 'models_list' meant for 'model_list'?"},
		{"nobody knows whose model it is", "model_list:\n- model_name: m\n  litellm_params: {model: my-model}\n", `c.yaml:3:27: cannot use model_list[0].litellm_params.model: cannot tell the provider of "my-model"`},
		{"no address for a server of one's own", "model_list:\n- model_name: m\n  litellm_params: {model: hosted_vllm/x}\n", "cannot use model_list[0].litellm_params.api_base: it is missing"},
		{"nothing that can be served", "model_list:\n- model_name: m\n  litellm_params: {model: azure/x}\n", "it has no model that can be served; left out: m (azure/x)"},
		{"a star in the middle", "model_list:\n- model_name: a*b\n  litellm_params: {model: gpt-4o}\n", "not its last character"},
		{"a wildcard upstream for one name", "model_list:\n- model_name: m\n  litellm_params: {model: openai/*}\n", `"*" ends in * and model_name "m" does not`},
		{"two entries with one id", good[:len(good)-2] + ",{model_name: a, litellm_params: {model: gpt-4o}, model_info: {id: x}}\n,{model_name: b, litellm_params: {model: gpt-4o}, model_info: {id: x}}]\n", `c.yaml:2:68: cannot use model_list[2].model_info.id: another entry has the id "x"`},

		// Values.
		{"a timeout of words", entryWith("timeout: abc"), `c.yaml:5:14: cannot use model_list[0].litellm_params.timeout: "abc" is not a number of 0 or more`},
		{"a timeout of zero", entryWith("timeout: 0"), `"0" is not a number of seconds above 0`},
		{"a negative timeout", entryWith("stream_timeout: -1"), "c.yaml:5:21: cannot use model_list[0].litellm_params.stream_timeout: \"-1\""},
		{"an endless timeout", entryWith("timeout: .inf"), "is not a number"},
		{"a list for a timeout", entryWith("timeout: [1]"), "it must be a single value, not a list"},
		{"a boolean for retries", entryWith("max_retries: true"), `"true" is not a whole number`},
		{"octal or decimal? neither", entryWith("max_retries: 0x10"), `"0x10" is not a whole number`},
		{"underscores", entryWith("rpm: 1_000"), `"1_000" is not a number`},
		{"thousands", entryWith("tpm: '1,000.00'"), `"1,000.00" is not a number`},
		{"a negative weight", entryWith("weight: -1"), "negative"},
		{"not a URL", entryWith("api_base: localhost:8000"), "c.yaml:5:15: cannot use model_list[0].litellm_params.api_base: it is not an http:// or https:// URL"},
		{"a password in a URL", entryWith("api_base: http://user:hunter2@h/v1"), "it has a user or password"},
		{"a query in a URL", entryWith("api_base: http://h/v1?key=hunter2"), "it has a query or fragment"},
		{"a header that frames the request", entryWith("extra_headers: {Content-Length: 1}"), "c.yaml:5:21: cannot use model_list[0].litellm_params.extra_headers.Content-Length: the gateway writes this header itself"},
		{"a header with a space", entryWith("extra_headers: {'a b': 1}"), "it is not the name of a header"},
		{"a header that injects another", entryWith(`extra_headers: {a: "x\r\nb: c"}`), "control characters"},
		{"a header twice", entryWith("extra_headers: {a: 1, A: 2}"), "the header stands twice"},
		{"a key with a line break inside", entryWith(`api_key: "a\nb"`), "control characters"},

		// Prices (each must name its field).
		{"negative", entryWith("input_cost_per_token: -1"), "c.yaml:5:27: cannot use model_list[0].litellm_params.input_cost_per_token: cannot read \"-1\" as a price in dollars per token: negative"},
		{"not a number", entryWith("input_cost_per_token: .nan"), "litellm_params.input_cost_per_token"},
		{"infinite", entryWith("output_cost_per_token: .inf"), "litellm_params.output_cost_per_token"},
		{"beyond floats", entryWith("output_cost_per_token: 1e400"), "too large"},
		{"boolean", entryWith("output_cost_per_token: true"), "not a decimal number"},
		{"per million tokens", entryWith("input_cost_per_token: 2.5"), "is it a price per million tokens?"},
		{"in a tier", entryWith("input_cost_per_token_above_200k_tokens: -1e-6"), "negative"},
		{"in model_info", "model_list:\n- model_name: m\n  litellm_params: {model: gpt-4o}\n  model_info:\n    output_cost_per_token: x\n", "c.yaml:5:28: cannot use model_list[0].model_info.output_cost_per_token"},

		// Environment.
		{"a variable that is not set", entryWith("api_key: os.environ/NOT_SET"), "c.yaml:5:14: cannot use model_list[0].litellm_params.api_key: the environment variable NOT_SET is not set"},
		{"also for the master key", good + "general_settings: {master_key: os.environ/NOT_SET}\n", "c.yaml:2:32: cannot use general_settings.master_key: the environment variable NOT_SET"},
		{"a value from the environment is not shown", entryWith("input_cost_per_token: os.environ/SECRET"), `"os.environ/SECRET" is not a price`},

		// Settings.
		{"a database that is not ours", good + "general_settings: {database_url: mysql://u:hunter2@h/d}\n", "cannot use general_settings.database_url: it is not a postgresql:// URL"},
		{"neither true nor false", good + "litellm_settings: {network_mock: maybe}\n", `"maybe" is not true or false`},
		{"a setting of ours that does not exist", good + "penstock_settings: {maxbudget: 1}\n", "c.yaml:2:21: cannot use penstock_settings.maxbudget: there is no such setting; there are client_write_idle, "},
		{"one of ours mistyped", good + "penstock_settings: {max_body_byte: 1}\n", "penstock_settings.max_body_byte: there is no such setting (is 'max_body_byte' meant for 'max_body_bytes'?); there are "},
		{"less for all bodies than for one", good + "penstock_settings: {max_body_bytes: 2048, max_body_bytes_in_flight: 2047}\n", "c.yaml:2:69: cannot use penstock_settings.max_body_bytes_in_flight: 2047 is below the 2048 bytes of one body (max_body_bytes)"},
		{"less for all bodies than for one by default", good + "penstock_settings: {max_body_bytes_in_flight: 1000000}\n", "1000000 is below the 33554432 bytes of one body"},
		{"a duration without a unit", good + "penstock_settings: {client_write_idle: 30}\n", `"30" is not a duration with a unit`},
		{"a negative duration", good + "penstock_settings: {upstream_header: -1s}\n", `"-1s" is not a duration`},
		{"a body limit of zero", good + "penstock_settings: {max_body_bytes: 0}\n", `"0" is not a whole number from 1024`},
		{"a factor that lowers holds", good + "penstock_settings: {estimate_factor: 0.9}\n", "not a factor from 1 to 100"},
		{"a price map that is not there", good + "penstock_settings: {price_map: nope.json}\n", "c.yaml:2:32: cannot use penstock_settings.price_map: cannot open the price map"},
		{"an alias of no model", good + "router_settings: {model_group_alias: {a: b}}\n", `c.yaml:2:42: cannot use router_settings.model_group_alias.a: there is no model "b"`},
		{"an alias that says nothing", good + "router_settings: {model_group_alias: {a: {hidden: true}}}\n", "it names no model group"},
		{"environment variables as a list", good + "environment_variables: [a]\n", "environment_variables: it must be a mapping"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			got, _, err := compile(Source{Path: "c.yaml", Getenv: env("SECRET", "hunter2")}, []byte(c.text))
			if err == nil {
				t.Fatalf("it loaded: %+v", got)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "c.yaml") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

// bomb is a small file that means ten million values.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := 1; i < 8; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	return b.String()
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	text := "litellm_settings:\n  request_timeout: x\nmodel_list:\n- model_name: m\n  litellm_params:\n    model: gpt-4o\n    timeout: abc\n    api_base: nope\n"
	_, _, err := compile(Source{Path: "c.yaml"}, []byte(text))
	var first *Problem
	if !errors.As(err, &first) || first.Line() != 2 || first.Path != "litellm_settings.request_timeout" {
		t.Fatalf("first: %+v of %v", first, err)
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[2], "c.yaml:8:15: ") {
		t.Errorf("want three problems in the order of the file, got\n%v", err)
	}
}

func TestWarningsStandBesideErrors(t *testing.T) {
	t.Parallel()
	text := "model_list:\n- model_name: m\n  litellm_params: {mdoel: gpt-4o, api_bse: x, timeout: abc, rpm: 5}\n" +
		"- model_name: b\n  litellm_params: {model: bedrock/x}\n" +
		"- model_name: u\n  litellm_params: {model: mock/x}\n"
	_, warnings, err := compile(Source{Path: "c.yaml"}, []byte(text))
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != 2 || !strings.Contains(lines[1], "timeout") {
		t.Errorf("the second problem of an entry must be found with its first:\n%v", err)
	}
	got := map[string]string{}
	for _, w := range warnings {
		got[w.Code] = strings.Join(w.Details, ", ")
	}
	for code, want := range map[string]string{
		WarnKeys: "model_list[].litellm_params.api_bse (unknown, is 'api_bse' meant for 'api_base'?), " +
			"model_list[].litellm_params.mdoel (unknown, is 'mdoel' meant for 'model'?)",
		WarnProviders: "b (bedrock/x)",
		WarnUnpriced:  "u (model_list[2])",
		WarnWeights:   "model_list[].litellm_params.rpm",
	} {
		if got[code] != want {
			t.Errorf("%s: got %q, want %q", code, got[code], want)
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	text := "model_list:\n" + strings.Repeat("- {}\n", 100)
	_, _, err := compile(Source{Path: "c.yaml"}, []byte(text))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != maxProblems+1 || lines[maxProblems] != "and 175 more" {
		t.Errorf("%d lines, last %q", len(lines), lines[len(lines)-1])
	}
}

func TestLoadMissingFile(t *testing.T) {
	t.Parallel()
	_, _, err := Load(Source{Path: "testdata/nope.yaml"})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot read the configuration: ") {
		t.Errorf("got %v", err)
	}
}
