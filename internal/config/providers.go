package config

import (
	"regexp"
	"strings"
)

// ProviderMock is the built-in provider that answers in the process.
const ProviderMock = "mock"

// provider is a place that speaks OpenAI's chat format.
type provider struct {
	base    string   // public URL; empty: api_base must say
	keyEnv  []string // where the credential stands when the file has none
	baseEnv []string // where the URL stands when the file has none
	// prices is the name that price tables know the provider by, where it differs.
	prices string
}

// openAICompatible are the providers that are served, by the prefix LiteLLM gives them.
// Those without a native dialect here are reached through their OpenAI-compatible
// endpoints.
var openAICompatible = map[string]provider{
	ProviderMock:    {},
	"openai":        {base: "https://api.openai.com/v1", keyEnv: []string{"OPENAI_API_KEY"}, baseEnv: []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"}},
	"anthropic":     {base: "https://api.anthropic.com/v1", keyEnv: []string{"ANTHROPIC_API_KEY"}},
	"gemini":        {base: "https://generativelanguage.googleapis.com/v1beta/openai", keyEnv: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
	"groq":          {base: "https://api.groq.com/openai/v1", keyEnv: []string{"GROQ_API_KEY"}},
	"mistral":       {base: "https://api.mistral.ai/v1", keyEnv: []string{"MISTRAL_API_KEY"}},
	"deepseek":      {base: "https://api.deepseek.com/v1", keyEnv: []string{"DEEPSEEK_API_KEY"}},
	"xai":           {base: "https://api.x.ai/v1", keyEnv: []string{"XAI_API_KEY"}},
	"together_ai":   {base: "https://api.together.xyz/v1", keyEnv: []string{"TOGETHERAI_API_KEY", "TOGETHER_API_KEY"}},
	"openrouter":    {base: "https://openrouter.ai/api/v1", keyEnv: []string{"OPENROUTER_API_KEY"}},
	"fireworks_ai":  {base: "https://api.fireworks.ai/inference/v1", keyEnv: []string{"FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY"}},
	"perplexity":    {base: "https://api.perplexity.ai", keyEnv: []string{"PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"}},
	"cerebras":      {base: "https://api.cerebras.ai/v1", keyEnv: []string{"CEREBRAS_API_KEY"}},
	"deepinfra":     {base: "https://api.deepinfra.com/v1/openai", keyEnv: []string{"DEEPINFRA_API_KEY"}},
	"nvidia_nim":    {base: "https://integrate.api.nvidia.com/v1", keyEnv: []string{"NVIDIA_NIM_API_KEY"}},
	"cohere":        {base: "https://api.cohere.ai/compatibility/v1", keyEnv: []string{"COHERE_API_KEY"}},
	"cohere_chat":   {base: "https://api.cohere.ai/compatibility/v1", keyEnv: []string{"COHERE_API_KEY"}, prices: "cohere"},
	"hosted_vllm":   {keyEnv: []string{"HOSTED_VLLM_API_KEY"}, baseEnv: []string{"HOSTED_VLLM_API_BASE"}},
	"openai_like":   {keyEnv: []string{"OPENAI_LIKE_API_KEY"}, baseEnv: []string{"OPENAI_LIKE_API_BASE"}},
	"custom_openai": {},
	"litellm_proxy": {keyEnv: []string{"LITELLM_PROXY_API_KEY"}, baseEnv: []string{"LITELLM_PROXY_API_BASE"}},
	"llamafile":     {baseEnv: []string{"LLAMAFILE_API_BASE"}},
	"lm_studio":     {keyEnv: []string{"LM_STUDIO_API_KEY"}, baseEnv: []string{"LM_STUDIO_API_BASE"}},
}

// openAIName recognises OpenAI's own names without a prefix.
var openAIName = regexp.MustCompile(`^(?:ft:)?(?:gpt-\d|chatgpt-|o\d(?:$|-)|codex-|text-embedding-)`)

// splitModel splits "provider/name" and finds the provider of a bare name that
// everybody knows. It is false where the provider cannot be told. A further slash
// belongs to the name ("groq/openai/gpt-oss-120b").
func splitModel(model string) (provider, name string, ok bool) {
	prefix, rest, slash := strings.Cut(model, "/")
	switch {
	case slash:
		return prefix, rest, prefix != "" && rest != ""
	case openAIName.MatchString(model):
		return "openai", model, true
	case strings.HasPrefix(model, "claude-"):
		return "anthropic", model, true
	}
	return "", model, false
}
