package money

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

//go:embed prices.csv
var builtinCSV string

// Columns of prices.csv.
const (
	colModel = iota
	colProvider
	colMode
	colMaxInput
	colMaxOutput
	colBase // input, output, cached, cache_write, reasoning
	_
	_
	_
	_
	colAbove
	colTier // input, output, cached, cache_write
	_
	_
	_
	columns
)

// Builtin returns the table of list prices that is compiled in (prices.csv). It parses
// anew at each call: keep the result.
func Builtin() *Table {
	t, err := parseCSV(builtinCSV)
	if err != nil {
		// The file is part of the program and a test reads it.
		panic("money: " + err.Error())
	}
	return t
}

func parseCSV(text string) (*Table, error) {
	_, version, _ := strings.Cut(text, "# version ")
	version, _, _ = strings.Cut(version, "\n")
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	r.FieldsPerRecord = columns
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cannot read the built-in prices: %w", err)
	}
	t := newTable("builtin-" + strings.TrimSpace(version))
	for _, row := range rows[1:] {
		e, err := parseRow(row, t.version)
		if err != nil {
			return nil, fmt.Errorf("cannot read the built-in price of %s: %w", row[colModel], err)
		}
		name := row[colProvider] + "/" + row[colModel]
		if t.entries[name] != nil {
			return nil, fmt.Errorf("cannot read the built-in prices: %s stands twice", name)
		}
		t.add(name, e)
	}
	return t, nil
}

func parseRow(row []string, version string) (*entry, error) {
	limits := Limits{Provider: row[colProvider], Mode: row[colMode]}
	var err error
	if limits.MaxInput, err = tokensOrZero(row[colMaxInput]); err != nil {
		return nil, err
	}
	if limits.MaxOutput, err = tokensOrZero(row[colMaxOutput]); err != nil {
		return nil, err
	}
	base, err := parsePerMillion(row[colBase : colBase+5])
	if err != nil {
		return nil, err
	}
	parts := Parts{Base: base}
	if row[colAbove] != "" {
		above, err := tokensOrZero(row[colAbove])
		if err != nil {
			return nil, err
		}
		tier, err := parsePerMillion(row[colTier:columns])
		if err != nil {
			return nil, err
		}
		parts.Tiers = map[int64]PartRates{above: tier}
	}
	price := parts.Price(limits, version)
	if price == nil {
		return nil, fmt.Errorf("input or output is missing")
	}
	return &entry{limits: limits, price: price}, nil
}

// parsePerMillion reads input, output, cached, cache write and reasoning prices in
// dollars per million tokens: six decimals of it are twelve of a price per token.
func parsePerMillion(cells []string) (PartRates, error) {
	var r PartRates
	for i, p := range r.fields()[:len(cells)] {
		if cells[i] == "" {
			continue
		}
		n, err := ParseDecimal(cells[i], picoDigits-6)
		if err != nil {
			return r, fmt.Errorf("cannot read %s: %w", quote(cells[i]), err)
		}
		*p = &n
	}
	return r, nil
}

func tokensOrZero(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	return strconv.ParseInt(s, 10, 64)
}
