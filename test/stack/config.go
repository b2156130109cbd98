package stack

import (
	"fmt"
	"log/slog"
)

// Prices of the configured models in nano-dollars per token, so that a cost is
// exact arithmetic in a test.
const (
	// FakeInput and FakeOutput are those of "fake" and of every "fake-…".
	FakeInput  int64 = 2_000
	FakeOutput int64 = 8_000
	// MockPrice is that of the in-process model "mock", input and output.
	MockPrice int64 = 1_000
	// CentsPrice is that of ThreeCents, input and output.
	CentsPrice int64 = 300_000
)

// ThreeCents is a model whose hold and cost are both exactly 0.03 USD for the prompt
// ThreeCentsPrompt with max_tokens ThreeCentsCap: 9 tokens in and 91 out, counted
// here and reported by the provider alike.
const (
	ThreeCents       = "three-cents"
	ThreeCentsPrompt = "Hello!"
	ThreeCentsCap    = 91
)

// masterKey guards the admin API of every stack. It opens nothing else.
const masterKey = "sk-stack-master-0123456789"

// Config says how a stack is started. BinDir is required.
type Config struct {
	// BinDir has the programs: see Build.
	BinDir string
	// Workers is the gateway's --workers. Zero means 1: no supervisor of its own.
	Workers int
	// GatewayCPUs pins the gateway, as a list for taskset. Everything else runs
	// where the caller runs.
	GatewayCPUs string
	// GatewayEnv is added to the gateway's environment, "NAME=value" each.
	GatewayEnv []string
	// CollectorArgs are added to the collector's arguments.
	CollectorArgs []string
	// Beside starts a further pod, with a PgBouncer of its own, in front of another
	// stack's PostgreSQL and fake upstream. The other is stopped last.
	Beside *Stack
	// Relayed puts a Relay between PgBouncer and PostgreSQL. A pod beside another takes
	// the other's.
	Relayed bool
	// Models are further elements of model_list, as YAML; "%s" is the fake
	// upstream's base URL.
	Models string
	// Logger is told what is started and restarted. Nil means slog.Default.
	Logger *slog.Logger
}

func (cfg Config) withDefaults() Config {
	if cfg.Workers == 0 {
		cfg.Workers = 1
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return cfg
}

// yaml is the gateway's configuration in front of the fake upstream at base. All
// models are counted as gpt-4o, so that a hold is exact.
func (cfg Config) yaml(base string) string {
	entry := func(name, model string, in, out int64, extra string) string {
		return fmt.Sprintf("- model_name: %q\n  litellm_params: {model: %q, input_cost_per_token: %de-9, output_cost_per_token: %de-9, %s}\n"+
			"  model_info: {base_model: gpt-4o, max_output_tokens: 4096}\n", name, model, in, out, extra)
	}
	upstream := fmt.Sprintf("api_base: %q, api_key: sk-fake", base+"/v1")
	return "model_list:\n" +
		entry("fake", "openai/fake", FakeInput, FakeOutput, upstream) +
		entry("fake-*", "openai/fake-*", FakeInput, FakeOutput, upstream) +
		entry(ThreeCents, "openai/fake-in-9-out-91", CentsPrice, CentsPrice, upstream) +
		entry("mock", "mock/mock", MockPrice, MockPrice, "") +
		cfg.models(base) +
		"litellm_settings: {num_retries: 0}\n"
}

func (cfg Config) models(base string) string {
	if cfg.Models == "" {
		return ""
	}
	return fmt.Sprintf(cfg.Models, base)
}
