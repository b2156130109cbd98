package admin

import (
	"encoding/json"
	"time"

	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/store"
)

// viewKey is a key as the API shows it. Later fields stand at the top level, where
// they were given.
func viewKey(k *store.Key) (map[string]any, error) {
	stored, err := parseSettings(k.SettingsJSON)
	if err != nil {
		return nil, err
	}
	view := map[string]any{
		"token":           k.ID,
		"token_id":        k.ID,
		"key_name":        k.Name,
		"key_alias":       orNull(k.Alias),
		"user_id":         orNull(k.UserID),
		"team_id":         orNull(k.TeamID),
		"organization_id": orNull(k.OrganizationID),
		"models":          notNil(k.Models),
		"aliases":         k.Aliases,
		"blocked":         k.Blocked,
		"expires":         timeOrNull(k.Expires),
		"spend":           dollars(k.Spend),
		"max_budget":      nil,
		"budget_duration": orNull(k.BudgetDuration),
		"budget_reset_at": timeOrNull(k.BudgetResetAt),
		"tags":            notNil(k.Tags),
		"metadata":        json.RawMessage(orEmpty(k.MetadataJSON)),
		"created_by":      orNull(k.CreatedBy),
		"created_at":      timeOrNull(k.CreatedAt),
		"updated_by":      orNull(k.UpdatedBy),
		"updated_at":      timeOrNull(k.UpdatedAt),

		"tpm_limit":             nil,
		"rpm_limit":             nil,
		"max_parallel_requests": nil,
		"soft_budget":           nil,
		"config":                struct{}{},
		"permissions":           struct{}{},
		"model_max_budget":      struct{}{},
		"litellm_budget_table":  nil,
	}
	if k.MaxBudget != nil {
		view["max_budget"] = dollars(*k.MaxBudget)
	}
	if k.Aliases == nil {
		view["aliases"] = struct{}{}
	}
	for name, value := range stored {
		view[name] = value
	}
	return view, nil
}

// dollars is an amount as an exact JSON number.
func dollars(nano int64) json.RawMessage { return json.RawMessage(money.FormatNano(nano)) }

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func orEmpty(object string) string {
	if object == "" {
		return "{}"
	}
	return object
}

// timeOrNull is a time in UTC with milliseconds; the zero time is null.
func timeOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
