package money

import (
	"regexp"
	"slices"
	"strings"
)

// Table maps model names to prices and limits. It is immutable.
type Table struct {
	version string
	entries map[string]*entry
	// aliases lead from the other ways to write a name to its entry; nil where two
	// models would share one.
	aliases map[string]*entry
}

// Limits are what a table knows of a model beside its price.
type Limits struct {
	MaxInput  int64 // tokens; 0: unknown
	MaxOutput int64 // tokens; 0: unknown
	Provider  string
	Mode      string
}

type entry struct {
	limits Limits
	price  *Price // nil: known, but unpriced
}

// Version names the table, e.g. "builtin-2026-11-30".
func (t *Table) Version() string { return t.version }

// Names lists the models as the table writes them, sorted.
func (t *Table) Names() []string {
	names := make([]string, 0, len(t.entries))
	for name := range t.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Lookup finds a model's price; false means that it has none, which is not the same
// as a price of 0. A name is tried in this order:
//
//  1. as the table writes it;
//  2. with the provider before it ("openai/gpt-4o" finds gpt-4o of openai), and without
//     it ("gemini-2.5-pro" finds gemini/gemini-2.5-pro), unless two providers have it;
//  3. both again without a date at its end ("gpt-4o-2024-08-06", "claude-opus-4-1@20250805")
//     or "-latest";
//  4. a fine-tuned OpenAI model as its base ("ft:gpt-4o:acme::id" as "ft:gpt-4o", in the
//     same steps): never at the base model's own, lower price.
//
// A provider's prefix is never dropped to find another provider's price.
func (t *Table) Lookup(model string) (*Price, bool) {
	e := t.find(model)
	if e == nil || e.price == nil {
		return nil, false
	}
	return e.price, true
}

// Limits finds a model's limits by the rules of Lookup, whether it is priced or not.
func (t *Table) Limits(model string) (Limits, bool) {
	e := t.find(model)
	if e == nil {
		return Limits{}, false
	}
	return e.limits, true
}

// dateSuffix ends the name of one version of a model.
var dateSuffix = regexp.MustCompile(`(?:-\d{4}-\d{2}-\d{2}|[-@]\d{8}|-latest)$`)

func (t *Table) find(model string) *entry {
	model = fineTuneBase(model)
	if e := t.exact(model); e != nil {
		return e
	}
	if cut := dateSuffix.FindStringIndex(model); cut != nil {
		return t.exact(model[:cut[0]])
	}
	return nil
}

func (t *Table) exact(model string) *entry {
	if e := t.entries[model]; e != nil {
		return e
	}
	return t.aliases[model]
}

// fineTuneBase cuts "ft:gpt-4o:acme::id" to "ft:gpt-4o".
func fineTuneBase(model string) string {
	prefix, rest, ok := strings.Cut(model, "ft:")
	if !ok || prefix != "" && prefix != "openai/" {
		return model
	}
	base, _, _ := strings.Cut(rest, ":")
	return prefix + "ft:" + base
}

func newTable(version string) *Table {
	return &Table{version: version, entries: map[string]*entry{}, aliases: map[string]*entry{}}
}

// add enters one model; the alias rules are those of Lookup.
func (t *Table) add(name string, e *entry) {
	t.entries[name] = e
	prefix := e.limits.Provider + "/"
	if e.limits.Provider == "" {
		return
	}
	bare, prefixed := strings.CutPrefix(name, prefix)
	if !prefixed {
		t.alias(prefix+name, e)
	} else if !strings.Contains(bare, "/") {
		t.alias(bare, e)
	}
}

func (t *Table) alias(name string, e *entry) {
	if other, taken := t.aliases[name]; taken && other != e {
		t.aliases[name] = nil
		return
	}
	t.aliases[name] = e
}
