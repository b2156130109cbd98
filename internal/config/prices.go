package config

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/penstock-gateway/penstock/internal/money"
)

// Prices looks models up in the operator's price map, then in the built-in table.
type Prices struct {
	tables []*money.Table // the first that knows a model wins
}

// loadPrices reads the price map at path; an empty path leaves the built-in table.
func loadPrices(path string) (Prices, error) {
	builtin := money.Builtin()
	if path == "" {
		return Prices{tables: []*money.Table{builtin}}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return Prices{}, fmt.Errorf("cannot open the price map: %w", err)
	}
	defer f.Close()
	table, err := money.ParseMap(f)
	if err != nil {
		return Prices{}, err
	}
	return Prices{tables: []*money.Table{table, builtin}}, nil
}

// lookup finds the price of a name, nil where there is none.
func (p Prices) lookup(name string) *money.Price {
	for _, t := range p.tables {
		if price, ok := t.Lookup(name); ok {
			return price
		}
	}
	return nil
}

// limits finds what is known of a name; each limit is from the first table that has it.
func (p Prices) limits(name string) money.Limits {
	var found money.Limits
	for _, t := range p.tables {
		l, ok := t.Limits(name)
		if !ok {
			continue
		}
		if found.MaxInput == 0 {
			found.MaxInput = l.MaxInput
		}
		if found.MaxOutput == 0 {
			found.MaxOutput = l.MaxOutput
		}
		if found.Mode == "" {
			found.Mode = l.Mode
		}
	}
	return found
}

// MarshalJSON writes the versions of the tables, for the checksum.
func (p Prices) MarshalJSON() ([]byte, error) {
	versions := make([]string, len(p.tables))
	for i, t := range p.tables {
		versions[i] = t.Version()
	}
	return json.Marshal(versions)
}

// configured names prices that an entry of the file has of its own.
const configured = "config"

// own lays an entry's own price fields over the price of the tables. An entry that
// names its input or output price has its own price list: the tables' cached prices and
// tiers would not fit it, only the other of the two is taken from there. An entry that
// names only parts changes those.
func own(fields money.Parts, table *money.Price, limits money.Limits) *money.Price {
	if fields.Empty() {
		return table
	}
	parts := fields
	ownList := parts.Base.Input != nil || parts.Base.Output != nil
	if table != nil && !ownList {
		parts = overlay(fields, table)
	}
	if table != nil && parts.Base.Input == nil {
		parts.Base.Input = &table.Input
	}
	if table != nil && parts.Base.Output == nil {
		parts.Base.Output = &table.Output
	}
	return parts.Price(limits, configured)
}

// overlay changes single parts of a table's price, in its base rates.
func overlay(fields money.Parts, table *money.Price) money.Parts {
	parts := money.Parts{Base: over(fields.Base, table.Rates), Tiers: map[int64]money.PartRates{}}
	for _, tier := range table.Tiers {
		parts.Tiers[tier.Above] = over(fields.Tiers[tier.Above], tier.Rates)
	}
	for above, rates := range fields.Tiers {
		if _, known := parts.Tiers[above]; !known {
			parts.Tiers[above] = rates
		}
	}
	return parts
}

func over(r money.PartRates, below money.Rates) money.PartRates {
	return r.Over(money.PartRates{
		Input: &below.Input, Output: &below.Output, Cached: &below.Cached,
		CacheWrite: &below.CacheWrite, Reasoning: &below.Reasoning,
	})
}
