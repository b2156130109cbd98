package money

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

func TestBuiltin(t *testing.T) {
	t.Parallel()
	table := Builtin()
	if n := len(table.Names()); n < 40 {
		t.Errorf("only %d models", n)
	}
	if !regexp.MustCompile(`^builtin-\d{4}-\d{2}-\d{2}$`).MatchString(table.Version()) {
		t.Errorf("version %q is not a day", table.Version())
	}
	for _, name := range table.Names() {
		p, ok := table.Lookup(name)
		if !ok {
			t.Errorf("%s has no price", name)
			continue
		}
		checkSound(t, name, p)
	}
}

// checkSound refuses what no list price has: a typing error in the table is one of these.
func checkSound(t *testing.T, name string, p *Price) {
	t.Helper()
	if p.Input <= 0 || p.Mode != "embedding" && p.Output < p.Input {
		t.Errorf("%s: output %d is cheaper than input %d", name, p.Output, p.Input)
	}
	if p.Cached > p.Input || p.CacheWrite < p.Input || p.Input > 200_000_000 {
		t.Errorf("%s: implausible rates %+v", name, p.Rates)
	}
	if p.MaxInput < 2048 || p.MaxOutput > p.MaxInput || p.Version == "" {
		t.Errorf("%s: implausible limits %d, %d", name, p.MaxInput, p.MaxOutput)
	}
	for _, tier := range p.Tiers {
		if tier.Above <= 0 || tier.Above >= p.MaxInput && p.MaxInput > tier.Above*2 || tier.Input <= p.Input || tier.Cached > tier.Input {
			t.Errorf("%s: implausible tier %+v", name, tier)
		}
	}
}

func TestBuiltinFacts(t *testing.T) {
	t.Parallel()
	table := Builtin()
	for _, c := range []struct {
		model string
		want  Rates
		max   int64
	}{
		{"gpt-4o", Rates{Input: 2_500_000, Output: 10_000_000, Cached: 1_250_000, CacheWrite: 2_500_000, Reasoning: 10_000_000}, 16384},
		{"gpt-4o-mini", Rates{Input: 150_000, Output: 600_000, Cached: 75_000, CacheWrite: 150_000, Reasoning: 600_000}, 16384},
		{"claude-opus-4-5", Rates{Input: 5_000_000, Output: 25_000_000, Cached: 500_000, CacheWrite: 6_250_000, Reasoning: 25_000_000}, 64000},
		{"cohere/command-r7b-12-2024", Rates{Input: 37_500, Output: 150_000, Cached: 37_500, CacheWrite: 37_500, Reasoning: 150_000}, 4000},
	} {
		p, ok := table.Lookup(c.model)
		if !ok || p.Rates != c.want || p.MaxOutput != c.max {
			t.Errorf("%s: %+v", c.model, p)
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	table, err := ParseMap(strings.NewReader(`{
		"gpt-4o": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "litellm_provider": "openai", "mode": "chat"},
		"gpt-4o-2024-05-13": {"input_cost_per_token": 5e-06, "output_cost_per_token": 1.5e-05, "litellm_provider": "openai"},
		"ft:gpt-4o": {"input_cost_per_token": 3.75e-06, "output_cost_per_token": 1.5e-05, "litellm_provider": "openai"},
		"gemini/gemini-2.5-pro": {"input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05, "litellm_provider": "gemini"},
		"azure/gpt-4o": {"input_cost_per_token": 2.6e-06, "output_cost_per_token": 1e-05, "litellm_provider": "azure"},
		"groq/llama": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06, "litellm_provider": "groq"},
		"together/llama": {"input_cost_per_token": 2e-06, "output_cost_per_token": 2e-06, "litellm_provider": "together"},
		"groq/openai/gpt-oss": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06, "litellm_provider": "groq"},
		"free": {"input_cost_per_token": 0, "output_cost_per_token": 0.0},
		"unpriced": {"max_input_tokens": 10}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why, model string
		input      int64 // -1: no price
	}{
		{"as written", "gpt-4o", 2_500_000},
		{"with its provider", "openai/gpt-4o", 2_500_000},
		{"as written wins over the alias", "azure/gpt-4o", 2_600_000},
		{"without its provider", "gemini-2.5-pro", 1_250_000},
		{"a version of its own", "openai/gpt-4o-2024-05-13", 5_000_000},
		{"another version", "gpt-4o-2024-08-06", 2_500_000},
		{"a version at its provider", "openai/gpt-4o-2024-08-06", 2_500_000},
		{"latest", "gpt-4o-latest", 2_500_000},
		{"compact date", "gemini-2.5-pro@20250605", 1_250_000},
		{"a fine-tuned model", "ft:gpt-4o:acme::id1", 3_750_000},
		{"a fine-tuned version at its provider", "openai/ft:gpt-4o-2024-08-06:acme::id1", 3_750_000},
		{"never the base's price for a fine-tuned one", "ft:gpt-5:acme::id1", -1},
		{"two providers have it", "llama", -1},
		{"another provider's price is not taken", "vllm/gpt-4o", -1},
		{"a prefix that is part of the name", "openai/gpt-oss", -1},
		{"no other model of the family", "gpt-4o-mini", -1},
		{"a short date may be another model", "gpt-4o-0806", -1},
		{"free is a price", "free", 0},
		{"unpriced is none", "unpriced", -1},
		{"empty", "", -1},
	} {
		p, ok := table.Lookup(c.model)
		if ok != (c.input >= 0) || ok && p.Input != c.input {
			t.Errorf("%s: Lookup(%q) = %+v, %v; want input %d", c.why, c.model, p, ok, c.input)
		}
	}
	if l, ok := table.Limits("unpriced"); !ok || l.MaxInput != 10 {
		t.Errorf("limits of an unpriced model: %+v, %v", l, ok)
	}
}

func TestParseMapModel(t *testing.T) {
	t.Parallel()
	table, err := ParseMap(strings.NewReader(`{
		"sample_spec": {"max_tokens": "LEGACY", "input_cost_per_token": 0, "litellm_provider": "one of"},
		"m": {
			"input_cost_per_token": 1.25e-06, "output_cost_per_token": "0.00001", "cache_read_input_token_cost": 1.25e-07,
			"output_cost_per_reasoning_token": 1.2e-05,
			"input_cost_per_token_above_200k_tokens": 2.5e-06, "output_cost_per_token_above_200k_tokens": 1.5e-05,
			"input_cost_per_token_above_128k_tokens": 2e-06, "cache_creation_input_token_cost_above_200k_tokens": 3e-06,
			"input_cost_per_token_batches": -1, "max_input_tokens": "1048576", "max_tokens": 8192, "max_output_tokens": null,
			"litellm_provider": "gemini", "mode": "chat", "supports_vision": true
		},
		"embedding": {"input_cost_per_token": 1e-07, "mode": "embedding", "max_tokens": 8191},
		"half": {"input_cost_per_token": 1e-07, "mode": "chat"},
		"ranges": {"input_cost_per_token": 1e-07, "output_cost_per_token": 1e-07, "tiered_pricing": []}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := table.Lookup("m")
	base := Rates{Input: 1_250_000, Output: 10_000_000, Cached: 125_000, CacheWrite: 1_250_000, Reasoning: 12_000_000}
	if p.Rates != base || p.MaxInput != 1048576 || p.MaxOutput != 8192 || p.Provider != "gemini" {
		t.Errorf("base: %+v", p)
	}
	if len(p.Tiers) != 2 || p.Tiers[0].Above != 128_000 || p.Tiers[0].Input != 2_000_000 || p.Tiers[0].Output != 10_000_000 {
		t.Errorf("first tier: %+v", p.Tiers)
	}
	want := Rates{Input: 2_500_000, Output: 15_000_000, Cached: 125_000, CacheWrite: 3_000_000, Reasoning: 12_000_000}
	if p.Tiers[1].Above != 200_000 || p.Tiers[1].Rates != want {
		t.Errorf("second tier: %+v", p.Tiers[1])
	}
	if e, ok := table.Lookup("embedding"); !ok || e.Output != 0 || e.MaxInput != 8191 || e.MaxOutput != 0 {
		t.Errorf("embedding: %+v", e)
	}
	for _, name := range []string{"half", "ranges", "sample_spec"} {
		if _, ok := table.Lookup(name); ok {
			t.Errorf("%s must not have a price", name)
		}
	}
}

func TestParseMapRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, in, want string }{
		{"a negative price would raise budgets", `{"m": {"input_cost_per_token": -1e-6}}`, `model "m": field input_cost_per_token`},
		{"a boolean is not a number", `{"m": {"output_cost_per_token": true}}`, `field output_cost_per_token: not a number: "true"`},
		{"infinite", `{"m": {"output_cost_per_token": 1e400}}`, "field output_cost_per_token: cannot read"},
		{"infinite as a string", `{"m": {"output_cost_per_token": "inf"}}`, "not a decimal number"},
		{"not a number", `{"m": {"input_cost_per_token_above_200k_tokens": "NaN"}}`, "field input_cost_per_token_above_200k_tokens"},
		{"json has no NaN", `{"m": {"output_cost_per_token": NaN}}`, "bad JSON"},
		{"per million in the wrong field", `{"m": {"input_cost_per_token": 2.5}}`, "per million"},
		{"an object for a price", `{"m": {"input_cost_per_token": {}}}`, "not a number"},
		{"negative limit", `{"m": {"max_output_tokens": -1}}`, "field max_output_tokens"},
		{"text for a limit", `{"m": {"max_tokens": "many"}}`, "field max_tokens"},
		{"number for a text", `{"m": {"mode": 1}}`, "field mode: not a string"},
		{"a model twice: one price would be dropped", `{"m": {}, "m": {}}`, `"m" stands twice`},
		{"a field twice", `{"m": {"mode": "chat", "mode": "chat"}}`, `"mode" stands twice`},
		{"not an object", `[]`, "not a JSON object"},
		{"a model that is not an object", `{"m": 1}`, `model "m": not a JSON object`},
		{"empty", ``, "not a JSON object"},
		{"cut off", `{"m": {`, "bad JSON"},
		{"something behind", `{} {}`, "bytes after"},
	} {
		_, err := ParseMap(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "cannot read the price map: ") {
			t.Errorf("%s: got %v, want %q", c.why, err, c.want)
		}
	}
}

func FuzzParseMap(f *testing.F) {
	f.Add([]byte(`{"m": {"input_cost_per_token": 1e-06, "output_cost_per_token": "2e-6", "input_cost_per_token_above_128k_tokens": 2e-06}}`))
	f.Add([]byte(`{"m": {"input_cost_per_token": -1, "max_tokens": null}}`))
	f.Add([]byte(`{"sample_spec": 1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := ParseMap(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, name := range table.Names() {
			p, ok := table.Lookup(name)
			if !ok {
				continue
			}
			if cost := p.Cost(Usage{Input: 1 << 20, Output: 1 << 20, Cached: 1 << 10, CacheWrite: 1 << 10, Reasoning: 1 << 10}); cost < 0 || cost > p.Hold(1<<20, 1, 1<<20) {
				t.Fatalf("%q: cost %d exceeds its hold", name, cost)
			}
		}
	})
}
