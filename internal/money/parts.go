package money

import (
	"maps"
	"slices"
)

// PartRates are prices in pico-dollars per token as a source gives them: nil where it
// does not name one.
type PartRates struct {
	Input, Output, Cached, CacheWrite, Reasoning *int64
}

// Parts are a model's prices as a source gives them, before what is missing is filled
// in.
type Parts struct {
	Base  PartRates
	Tiers map[int64]PartRates // by the input above which they hold
}

// Empty says that no price is named at all.
func (p *Parts) Empty() bool { return p.Base == PartRates{} && len(p.Tiers) == 0 }

// Price completes the parts, or returns nil where the model stays unpriced: the input
// or the output price is missing (only a model without output, such as an embedding,
// may leave that out). A missing part has the price of its whole. A part that a tier
// does not name keeps its price from before, where that was named, else it has the
// tier's price of its whole.
func (p *Parts) Price(limits Limits, version string) *Price {
	base := p.Base
	if base.Output == nil && noOutput(limits.Mode) {
		base.Output = new(int64)
	}
	if base.Input == nil || base.Output == nil {
		return nil
	}
	price := &Price{
		Rates:    base.complete(),
		MaxInput: limits.MaxInput, MaxOutput: limits.MaxOutput,
		Provider: limits.Provider, Mode: limits.Mode,
		Version: version,
	}
	for _, above := range slices.Sorted(maps.Keys(p.Tiers)) {
		base = p.Tiers[above].Over(base)
		price.Tiers = append(price.Tiers, Tier{Above: above, Rates: base.complete()})
	}
	return price
}

// noOutput says whether a mode answers without tokens that are billed.
func noOutput(mode string) bool { return mode == "embedding" || mode == "rerank" }

// fields lists the parts in the order input, output, cached, cache write, reasoning.
func (r *PartRates) fields() []**int64 {
	return []**int64{&r.Input, &r.Output, &r.Cached, &r.CacheWrite, &r.Reasoning}
}

// Over takes from below what r does not name.
func (r PartRates) Over(below PartRates) PartRates {
	lower := below.fields()
	for i, p := range r.fields() {
		if *p == nil {
			*p = *lower[i]
		}
	}
	return r
}

// complete fills missing parts from their whole; input and output are named.
func (r PartRates) complete() Rates {
	or := func(p, whole *int64) int64 {
		if p != nil {
			return *p
		}
		return *whole
	}
	return Rates{
		Input: *r.Input, Output: *r.Output,
		Cached: or(r.Cached, r.Input), CacheWrite: or(r.CacheWrite, r.Input),
		Reasoning: or(r.Reasoning, r.Output),
	}
}
