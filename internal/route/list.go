package route

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/money"
)

// Model is one entry of /v1/models.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // Unix seconds
	OwnedBy string `json:"owned_by"`
}

// created is what LiteLLM answers for every model; clients only need a number.
const created = 1677610602

// Models lists the names that clients may ask for, sorted. Hidden aliases are not there;
// a wildcard is there as its pattern.
func (s *Snapshot) Models() []Model {
	names := map[string]bool{}
	for name := range s.groups {
		names[name] = true
	}
	for _, g := range s.wildcards {
		names[g.Name] = true
	}
	for _, a := range s.config.Aliases {
		if a.Hidden {
			delete(names, a.Name)
		}
	}
	models := make([]Model, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		models = append(models, Model{ID: name, Object: "model", Created: created, OwnedBy: "openai"})
	}
	return models
}

// ModelInfo is one entry of /v1/model/info.
type ModelInfo struct {
	ModelName     string         `json:"model_name"`
	LiteLLMParams map[string]any `json:"litellm_params"`
	ModelInfo     map[string]any `json:"model_info"`
}

// Infos describes every deployment, in the order of the file: model_info as it was
// written, completed by what was resolved. It has no credentials and no headers.
func (s *Snapshot) Infos() []ModelInfo {
	infos := make([]ModelInfo, 0, len(s.config.Deployments))
	for _, d := range s.config.Deployments {
		params := map[string]any{"model": d.Provider + "/" + d.Model}
		if d.APIBase != "" {
			params["api_base"] = d.APIBase
		}
		infos = append(infos, ModelInfo{ModelName: d.ModelName, LiteLLMParams: params, ModelInfo: describe(d)})
	}
	return infos
}

func describe(d *config.Deployment) map[string]any {
	info := map[string]any{}
	var written map[string]json.RawMessage
	if json.Unmarshal(d.Info, &written) == nil { // nothing where the file had none
		for key, value := range written {
			info[key] = value
		}
	}
	info["id"] = d.ID
	info["db_model"] = false
	info["key"] = d.BaseModel
	info["litellm_provider"] = d.Provider
	info["mode"] = orNil(d.Mode)
	info["max_tokens"] = d.MaxOutput
	info["max_output_tokens"] = d.MaxOutput
	info["max_input_tokens"] = orNil(d.MaxInput)
	info["input_cost_per_token"], info["output_cost_per_token"] = nil, nil
	if d.Price != nil {
		info["input_cost_per_token"] = json.Number(money.FormatPico(d.Price.Input))
		info["output_cost_per_token"] = json.Number(money.FormatPico(d.Price.Output))
	}
	return info
}

// orNil makes an unknown value null.
func orNil[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
