package money

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxPriceMap bounds the size of a price-map file; LiteLLM's own has about 2 MB.
const maxPriceMap = 64 << 20

// sampleSpec is the entry of LiteLLM's file that documents the others.
const sampleSpec = "sample_spec"

// ParseMap reads prices in the format of LiteLLM's model_prices_and_context_window.json:
// an object of models, each an object of fields. Read are the fields of PriceField,
// max_input_tokens, max_output_tokens, max_tokens, litellm_provider and mode; others are
// passed over. Prices are read as decimals, exactly; strings are accepted for numbers, as
// LiteLLM has them. A model without input or output price, or with tiered_pricing (ranges
// that are not understood yet), is known but unpriced. An error names the model and the
// field.
func ParseMap(r io.Reader) (*Table, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPriceMap+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the price map: %w", err)
	}
	if len(data) > maxPriceMap {
		return nil, fmt.Errorf("cannot read the price map: larger than %d bytes", maxPriceMap)
	}
	sum := sha256.Sum256(data)
	t := newTable("map-" + hex.EncodeToString(sum[:6]))
	names, models, err := objectFields(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read the price map: %w", err)
	}
	for _, name := range names {
		if name == sampleSpec {
			continue
		}
		e, err := parseModel(models[name], t.version)
		if err != nil {
			return nil, fmt.Errorf("cannot read the price map: model %s: %w", quote(name), err)
		}
		t.add(name, e)
	}
	return t, nil
}

// objectFields reads a JSON object into its raw fields and their order. A name that
// stands twice is refused: one of the two prices would be dropped in silence.
func objectFields(data []byte) ([]string, map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, nil, errors.New("not a JSON object")
	}
	var names []string
	fields := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, nil, fmt.Errorf("bad JSON: %w", err)
		}
		name, _ := key.(string)
		if _, twice := fields[name]; twice {
			return nil, nil, fmt.Errorf("%s stands twice", quote(name))
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, nil, fmt.Errorf("bad JSON at %s: %w", quote(name), err)
		}
		names = append(names, name)
		fields[name] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, fmt.Errorf("bad JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("bytes after the JSON object")
	}
	return names, fields, nil
}

func parseModel(raw json.RawMessage, version string) (*entry, error) {
	names, fields, err := objectFields(raw)
	if err != nil {
		return nil, err
	}
	slices.Sort(names) // so that the first of several errors is always the same
	var parts Parts
	var limits Limits
	for _, name := range names {
		if err := parseField(name, fields[name], &parts, &limits); err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
	}
	maxTokens(fields["max_tokens"], &limits)
	e := &entry{limits: limits}
	if _, ranges := fields["tiered_pricing"]; !ranges {
		e.price = parts.Price(limits, version)
	}
	return e, nil
}

func parseField(name string, raw json.RawMessage, parts *Parts, limits *Limits) error {
	switch name {
	case "litellm_provider":
		return parseText(raw, &limits.Provider)
	case "mode":
		return parseText(raw, &limits.Mode)
	case "max_input_tokens":
		return parseTokens(raw, &limits.MaxInput)
	case "max_output_tokens":
		return parseTokens(raw, &limits.MaxOutput)
	case "max_tokens":
		var ignored int64
		return parseTokens(raw, &ignored)
	}
	field, ok := LookupPriceField(name)
	if !ok {
		return nil
	}
	text, ok, err := numberText(raw)
	if err != nil || !ok {
		return err
	}
	pico, err := ParsePico(text)
	if err != nil {
		return err
	}
	field.Set(parts, pico)
	return nil
}

// maxTokens reads LiteLLM's older field, which is the output limit where there is an
// output, and the input limit where there is none. It was checked before.
func maxTokens(raw json.RawMessage, limits *Limits) {
	to := &limits.MaxOutput
	if noOutput(limits.Mode) {
		to = &limits.MaxInput
	}
	if raw != nil && *to == 0 {
		_ = parseTokens(raw, to)
	}
}

// PriceField is a field of a LiteLLM price map that is understood.
type PriceField struct {
	part  int   // index into PartRates.fields
	above int64 // 0: the base price
}

// priceFields are the names of the parts in the order of PartRates.fields.
var priceFields = [...]string{
	"input_cost_per_token", "output_cost_per_token",
	"cache_read_input_token_cost", "cache_creation_input_token_cost",
	"output_cost_per_reasoning_token",
}

// LookupPriceField recognises "input_cost_per_token", "output_cost_per_token",
// "cache_read_input_token_cost", "cache_creation_input_token_cost" and
// "output_cost_per_reasoning_token", each also as "…_above_200k_tokens" with any number
// of thousands.
func LookupPriceField(name string) (PriceField, bool) {
	base, tier, tiered := strings.Cut(name, "_above_")
	part := slices.Index(priceFields[:], base)
	if part < 0 {
		return PriceField{}, false
	}
	if !tiered {
		return PriceField{part: part}, true
	}
	thousands, ok := strings.CutSuffix(tier, "k_tokens")
	n, err := strconv.ParseUint(thousands, 10, 31)
	if !ok || err != nil || n == 0 {
		return PriceField{}, false
	}
	return PriceField{part: part, above: int64(n) * 1000}, true
}

// Set enters a price in pico-dollars per token.
func (f PriceField) Set(p *Parts, pico int64) {
	if f.above == 0 {
		*p.Base.fields()[f.part] = &pico
		return
	}
	if p.Tiers == nil {
		p.Tiers = map[int64]PartRates{}
	}
	tier := p.Tiers[f.above]
	*tier.fields()[f.part] = &pico
	p.Tiers[f.above] = tier
}

// numberText returns the text of a JSON number or of a string that stands for one; null
// is absent.
func numberText(raw json.RawMessage) (string, bool, error) {
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "null":
		return "", false, nil
	case strings.HasPrefix(text, `"`):
		var s string
		err := json.Unmarshal(raw, &s)
		return s, true, err
	case text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9'):
		return text, true, nil
	}
	return "", false, fmt.Errorf("not a number: %s", quote(text))
}

// parseTokens reads a count of tokens. Zero is unknown, as LiteLLM has it.
func parseTokens(raw json.RawMessage, to *int64) error {
	text, ok, err := numberText(raw)
	if err != nil || !ok {
		return err
	}
	n, err := ParseDecimal(text, 0)
	if err != nil {
		return fmt.Errorf("cannot read %s as a number of tokens: %w", quote(text), err)
	}
	*to = n
	return nil
}

func parseText(raw json.RawMessage, to *string) error {
	if strings.TrimSpace(string(raw)) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("not a string: %s", quote(string(raw)))
	}
	return nil
}
