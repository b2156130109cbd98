package admin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shape is how the value of a field is checked.
type shape int

const (
	shapeAny    shape = iota // any JSON
	shapeCount               // a whole number, 0 or more
	shapeAmount              // dollars, 0 or more
	shapeLimits              // any JSON whose numbers are 0 or more
)

// laterShape knows the fields of /key/generate and /key/update that are kept and
// shown but have no effect yet.
func laterShape(name string) (shape, bool) {
	switch name {
	case "tpm_limit", "rpm_limit", "max_parallel_requests", "default_estimated_output_tokens":
		return shapeCount, true
	case "soft_budget", "temp_budget_increase":
		return shapeAmount, true
	case "model_max_budget", "model_rpm_limit", "model_tpm_limit", "budget_limits",
		"default_estimated_output_tokens_per_model":
		return shapeLimits, true
	case "agent_id", "project_id", "budget_id", "config", "router_settings", "send_invite_email",
		"tpm_limit_type", "rpm_limit_type", "budget_fallbacks", "guardrails", "policies",
		"disable_global_guardrails", "permissions", "allowed_cache_controls", "prompts", "enforced_params",
		"allowed_routes", "allowed_passthrough_routes", "object_permission", "key_type", "auto_rotate",
		"rotation_interval", "access_group_ids", "temp_budget_expiry":
		return shapeAny, true
	}
	return shapeAny, false
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

func (s settings) text() string { return string(encodeValue(map[string]json.RawMessage(s))) }

// with returns s after changes, in which null takes a field away.
func (s settings) with(changes settings) settings {
	out := maps.Clone(s)
	for name, raw := range changes {
		if isNull(raw) {
			delete(out, name)
			continue
		}
		out[name] = raw
	}
	return out
}

// later reads the fields that no one took, and says what becomes of each that asks
// for something.
func (f *fieldReader) later() (changes settings, warnings []string) {
	changes = settings{}
	for _, name := range f.obj.names {
		if f.used[name] || f.err != nil {
			continue
		}
		raw := f.obj.fields[name]
		kind, known := laterShape(name)
		if !known {
			warnings = append(warnings, printable(name)+" is not known and was ignored")
			continue
		}
		value, err := checkShape(name, raw, kind)
		if err != nil {
			f.fail(err)
			continue
		}
		changes[name] = value
		if asks(value) {
			warnings = append(warnings, name+" is stored but has no effect in this release")
		}
	}
	return changes, warnings
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
		if _, err := parseAmount(raw); err != nil {
			return nil, badField(name, "must be an amount in dollars, 0 or more: %v", err)
		}
	case shapeLimits:
		if negative(v) {
			return nil, badField(name, "must not contain negative numbers")
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
