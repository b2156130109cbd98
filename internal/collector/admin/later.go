package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-gateway/penstock/internal/spelling"
)

// shape is how the value of a field is checked.
type shape int

const (
	shapeAny    shape = iota // any JSON
	shapeCount               // a whole number, 0 or more
	shapeAmount              // dollars, 0 or more
	shapeLimits              // any JSON whose numbers are 0 or more
	shapeText                // a string
)

// laterFields are the fields of /key/generate and /key/update that are kept and shown
// but have no effect yet.
var laterFields = map[string]shape{
	"tpm_limit": shapeCount, "rpm_limit": shapeCount, "max_parallel_requests": shapeCount,
	"default_estimated_output_tokens": shapeCount,

	"soft_budget": shapeAmount, "temp_budget_increase": shapeAmount,

	"model_max_budget": shapeLimits, "model_rpm_limit": shapeLimits, "model_tpm_limit": shapeLimits,
	"budget_limits": shapeLimits, "default_estimated_output_tokens_per_model": shapeLimits,

	"agent_id": shapeAny, "project_id": shapeAny, "budget_id": shapeText, "config": shapeAny,
	"router_settings": shapeAny, "send_invite_email": shapeAny, "tpm_limit_type": shapeAny,
	"rpm_limit_type": shapeAny, "budget_fallbacks": shapeAny, "guardrails": shapeAny, "policies": shapeAny,
	"disable_global_guardrails": shapeAny, "permissions": shapeAny, "allowed_cache_controls": shapeAny,
	"prompts": shapeAny, "enforced_params": shapeAny, "allowed_routes": shapeAny,
	"allowed_passthrough_routes": shapeAny, "object_permission": shapeAny, "key_type": shapeAny,
	"auto_rotate": shapeAny, "rotation_interval": shapeAny, "access_group_ids": shapeAny,
	"temp_budget_expiry": shapeAny,
}

// entityFields are those of teams, users and the like.
var entityFields = map[string]shape{
	"tpm_limit": shapeCount, "rpm_limit": shapeCount, "max_parallel_requests": shapeCount,
	"team_member_rpm_limit": shapeCount, "team_member_tpm_limit": shapeCount,

	"soft_budget": shapeAmount, "team_member_budget": shapeAmount,

	"model_max_budget": shapeLimits, "model_rpm_limit": shapeLimits, "model_tpm_limit": shapeLimits, "budget_limits": shapeLimits,

	"budget_id": shapeText, "team_member_budget_duration": shapeText, "description": shapeText, "allowed_model_region": shapeText,
	"default_model": shapeText, "team_member_key_duration": shapeText, "sso_user_id": shapeText,

	"tags": shapeAny, "aliases": shapeAny, "config": shapeAny, "model_aliases": shapeAny, "team_member_permissions": shapeAny, "guardrails": shapeAny,
	"policies": shapeAny, "prompts": shapeAny, "object_permission": shapeAny, "router_settings": shapeAny, "permissions": shapeAny,
	"allowed_cache_controls": shapeAny, "send_invite_email": shapeAny, "tpm_limit_type": shapeAny, "rpm_limit_type": shapeAny,
	"access_group_ids": shapeAny, "allowed_models": shapeAny, "teams": shapeAny,
}

// keyActs says which fields of a key that are kept as they came have an effect.
func keyActs(name string) bool {
	return name == "budget_id" || name == "budget_limits" || isRateLimit(name)
}

// isRateLimit says that a field is a limit that the gateway admits requests by.
func isRateLimit(name string) bool {
	return name == "rpm_limit" || name == "tpm_limit" || name == "max_parallel_requests"
}

// shownFields stand in answers only. A client that sends back what it was told gets a
// warning for them, not a refusal.
var shownFields = map[string]bool{
	"token": true, "token_id": true, "key_name": true, "budget_reset_at": true, "litellm_budget_table": true,
	"created_by": true, "created_at": true, "updated_by": true, "updated_at": true, "expires": true, "warnings": true,
	"soft_budget_cooldown": true,
}

// settings are the later fields of a key, as they came.
type settings map[string]json.RawMessage

// parseSettings reads what a key has stored.
func parseSettings(text string) (settings, error) {
	s := settings{}
	if text == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("cannot read the settings of a key: %w", err)
	}
	return s, nil
}

// later is rest for a key.
func (f *fieldReader) later() (changes settings, warnings []string) {
	return f.rest(laterFields, keyActs)
}

// rest reads the fields that no one took, and says what becomes of each that asks for
// something and has no effect.
func (f *fieldReader) rest(fields map[string]shape, acts func(name string) bool) (changes settings, warnings []string) {
	changes = settings{}
	for _, name := range f.obj.names {
		if f.used[name] || f.err != nil {
			continue
		}
		raw := f.obj.fields[name]
		kind, known := fields[name]
		if !known {
			f.checkSpelling(name, fields)
			warnings = append(warnings, printable(name)+" is not known and was ignored")
			continue
		}
		value, err := checkShape(name, raw, kind)
		if err != nil {
			f.fail(err)
			continue
		}
		changes[name] = value
		if asks(value) && !acts(name) {
			warnings = append(warnings, name+" is stored but has no effect in this release")
		}
	}
	return changes, warnings
}

// checkSpelling refuses an unknown field that was in all likelihood meant to be one of
// ours: a key without the budget that its maker believes in is worse than an error.
func (f *fieldReader) checkSpelling(name string, fields map[string]shape) {
	if shownFields[name] {
		return
	}
	names := slices.Collect(maps.Keys(fields))
	names = append(names, slices.Collect(maps.Keys(f.used))...)
	likely := spelling.Nearest(name, names)
	if likely == "" && strings.Contains(strings.ToLower(name), "budget") {
		likely = "max_budget"
	}
	if likely != "" {
		f.fail(badField(printable(name), "is not known: is %s meant?", likely))
	}
}

// asks says whether a value wants anything: clients send whole forms with most
// fields empty.
func asks(raw json.RawMessage) bool {
	return !slices.Contains([]string{"null", "{}", "[]", `""`, "false", `"default"`}, string(raw))
}

// checkShape returns the value as it is stored. Numbers keep their literal.
func checkShape(name string, raw json.RawMessage, kind shape) (json.RawMessage, error) {
	v, err := decodeValue(name, raw)
	if err != nil {
		return nil, err
	}
	if isNull(raw) {
		return encodeValue(nil), nil
	}
	switch kind {
	case shapeCount:
		if !isCount(raw) {
			return nil, badField(name, "must be a whole number, 0 or more")
		}
	case shapeAmount:
		if _, err := parseAmount(name, raw); err != nil {
			return nil, err
		}
	case shapeLimits:
		if negative(v) {
			return nil, badField(name, "must not contain negative numbers")
		}
	case shapeText:
		if s, ok := v.(string); !ok || len(s) > maxText || !cleanText(s) {
			return nil, badField(name, "must be a string of at most %d bytes without control characters", maxText)
		}
	case shapeAny:
	}
	return bytes.TrimSpace(encodeValue(v)), nil
}

func negative(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return strings.HasPrefix(v.String(), "-")
	case []any:
		return slices.ContainsFunc(v, negative)
	case map[string]any:
		for _, e := range v {
			if negative(e) {
				return true
			}
		}
	}
	return false
}
