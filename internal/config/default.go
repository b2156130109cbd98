package config

import (
	"strings"

	"github.com/penstock-gateway/penstock/internal/money"
)

// defaultPath names the built-in configuration in errors.
const defaultPath = "built-in configuration"

// mockEntry is a model that answers in the process. It has a price, so that budgets and
// spend can be tried with it.
const mockEntry = `model_list:
- model_name: mock
  litellm_params: {model: mock/mock, input_cost_per_token: 1.5e-07, output_cost_per_token: 6e-07}
  model_info: {id: mock, mode: chat, base_model: gpt-4o-mini, max_input_tokens: 128000, max_output_tokens: 16384}
`

// Default is the configuration of an all-in-one that was given no file: the mock model,
// and with OPENAI_API_KEY or ANTHROPIC_API_KEY in the environment the chat models of
// those providers that the built-in price table knows.
func Default(getenv func(string) (string, bool)) (*Config, []Warning, error) {
	var b strings.Builder
	b.WriteString(mockEntry)
	table := money.Builtin()
	for _, name := range table.Names() {
		limits, _ := table.Limits(name)
		if limits.Mode != "chat" || !hasKey(limits.Provider, getenv) {
			continue
		}
		bare := strings.TrimPrefix(name, limits.Provider+"/")
		b.WriteString("- {model_name: '" + bare + "', litellm_params: {model: '" + name + "'}, model_info: {id: '" + name + "'}}\n")
	}
	return compile(Source{Path: defaultPath, Getenv: getenv}, []byte(b.String()))
}

func hasKey(provider string, getenv func(string) (string, bool)) bool {
	if getenv == nil || provider != "openai" && provider != "anthropic" {
		return false
	}
	for _, name := range openAICompatible[provider].keyEnv {
		if value, ok := getenv(name); ok && value != "" {
			return true
		}
	}
	return false
}
