package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/money"
)

// maxWindows bounds the budgets of one entity: each is a row that every request of it
// locks.
const maxWindows = 8

// maxModelBudgets bounds the models that one key has budgets for.
const maxModelBudgets = 200

// BudgetSpec is a budget as its owner wants it.
type BudgetSpec struct {
	Entity   string
	Win      string // "": the main one
	Limit    int64
	Duration string
}

// Template lends its limit to who has none of its own.
type Template struct {
	MaxBudget *int64
	Duration  string
}

// budgetSettings are the fields of SettingsJSON that make budgets.
type budgetSettings struct {
	BudgetID string                     `json:"budget_id"`
	Windows  []windowSetting            `json:"budget_limits"`
	Models   map[string]json.RawMessage `json:"model_max_budget"`
	Member   json.Number                `json:"team_member_budget"`
	Every    string                     `json:"team_member_budget_duration"`
}

// windowSetting is an amount per period. LiteLLM has two pairs of names for it.
type windowSetting struct {
	Max      json.Number `json:"max_budget"`
	Duration string      `json:"budget_duration"`
	Limit    json.Number `json:"budget_limit"`
	Period   string      `json:"time_period"`
}

func (w windowSetting) spec(entity, win string) (BudgetSpec, error) {
	limit, err := money.ParseNano(string(cmp.Or(w.Max, w.Limit)))
	if err != nil {
		return BudgetSpec{}, err
	}
	s := BudgetSpec{Entity: entity, Win: win, Limit: limit, Duration: cmp.Or(w.Duration, w.Period)}
	_, err = ledger.ParsePeriod(s.Duration)
	return s, err
}

func readBudgetSettings(text string) (budgetSettings, error) {
	var s budgetSettings
	if text == "" {
		return s, nil
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := dec.Decode(&s); err != nil {
		return s, fmt.Errorf("cannot read the budgets of settings: %w: %w", ErrInvalid, err)
	}
	return s, nil
}

// specs are the budgets of an entity: the main one and its further windows.
func specs(entity string, own *int64, duration string, t Template, settings string) ([]BudgetSpec, error) {
	s, err := readBudgetSettings(settings)
	if err != nil {
		return nil, err
	}
	var out []BudgetSpec
	switch {
	case own != nil:
		out = append(out, BudgetSpec{Entity: entity, Limit: *own, Duration: duration})
	case t.MaxBudget != nil:
		out = append(out, BudgetSpec{Entity: entity, Limit: *t.MaxBudget, Duration: cmp.Or(duration, t.Duration)})
	}
	if len(s.Windows) > maxWindows {
		return nil, fmt.Errorf("cannot store budget_limits: more than %d windows: %w", maxWindows, ErrInvalid)
	}
	for _, w := range s.Windows {
		win := cmp.Or(w.Duration, w.Period)
		spec, err := w.spec(entity, win)
		switch {
		case err != nil:
			return nil, fmt.Errorf("cannot store budget_limits: %w: %w", ErrInvalid, err)
		case win == "":
			return nil, fmt.Errorf("cannot store budget_limits: a window needs a budget_duration: %w", ErrInvalid)
		case slices.ContainsFunc(out, func(o BudgetSpec) bool { return o.Win == win }):
			return nil, fmt.Errorf("cannot store budget_limits: two windows of %s: %w", win, ErrInvalid)
		}
		out = append(out, spec)
	}
	return out, nil
}

// modelSpecs are a key's budgets by model, in the order of their names.
func modelSpecs(keyID, settings string) ([]BudgetSpec, error) {
	s, err := readBudgetSettings(settings)
	if err != nil {
		return nil, err
	}
	if len(s.Models) > maxModelBudgets {
		return nil, fmt.Errorf("cannot store model_max_budget: more than %d models: %w", maxModelBudgets, ErrInvalid)
	}
	var out []BudgetSpec
	for _, model := range slices.Sorted(maps.Keys(s.Models)) {
		var w windowSetting
		raw := s.Models[model]
		if json.Unmarshal(raw, &w) != nil && json.Unmarshal(raw, &w.Max) != nil {
			return nil, fmt.Errorf("cannot store model_max_budget of %.40q: want budget_limit and time_period: %w", model, ErrInvalid)
		}
		if w.Max == "" && w.Limit == "" {
			continue // only limits of another kind
		}
		name := ModelEntity(keyID, model)
		spec, err := w.spec(name, "")
		if _, win := SplitWindow(model); err != nil || model == "" || win != "" || len(name) > maxName || !Storable(model) {
			return nil, fmt.Errorf("cannot store model_max_budget of %.40q: %w: %w", model, ErrInvalid, cmp.Or(err, errBadModel))
		}
		out = append(out, spec)
	}
	return out, nil
}

var errBadModel = fmt.Errorf("not a model's name")

// Budgets are the budgets that the key wants, its template's limit where it has none.
func (k *Key) Budgets(t Template) ([]BudgetSpec, error) {
	own, err := specs(KeyEntity(k.ID), k.MaxBudget, k.BudgetDuration, t, k.SettingsJSON)
	if err != nil {
		return nil, err
	}
	models, err := modelSpecs(k.ID, k.SettingsJSON)
	return append(own, models...), err
}

// Budgets are the budgets that the entity wants, its template's limit where it has none.
func (e *Entity) Budgets(t Template) ([]BudgetSpec, error) {
	all, err := specs(e.Name(), e.MaxBudget, e.BudgetDuration, t, e.SettingsJSON)
	if e.Kind == KindTemplate {
		return nil, err
	}
	return all, err
}

// TemplateID is the template that settings name; "": none.
func TemplateID(settings string) (string, error) {
	s, err := readBudgetSettings(settings)
	return s.BudgetID, err
}

// MemberTemplate is what a team lends to its members.
func (e *Entity) MemberTemplate() (Template, error) {
	s, err := readBudgetSettings(e.SettingsJSON)
	if err != nil || s.Member == "" {
		return Template{}, err
	}
	limit, err := money.ParseNano(string(s.Member))
	if err == nil {
		_, err = ledger.ParsePeriod(s.Every)
	}
	if err != nil {
		return Template{}, fmt.Errorf("cannot store team_member_budget: %w: %w", ErrInvalid, err)
	}
	return Template{MaxBudget: &limit, Duration: s.Every}, nil
}

// BudgetMoves is what a change of its owner does to budget rows.
type BudgetMoves struct {
	End    []int64      // rows that stop being current
	Limits []BudgetRow  // rows with their new limit
	Spans  []BudgetRow  // rows with their new duration, whose period starts anew
	Open   []BudgetSpec // rows to make; their period starts now
	// OpenSpent is what each of Open starts with.
	OpenSpent []int64
}

// PlanBudgets brings the current rows of an owner in line with what it wants. sofar is
// the spend that the owner reports before: a main budget that is opened knows it.
// spend, where it is set, corrects the main budget's spend, and 0 starts every budget
// of the owner anew: that is a new row, so that leases of the old one settle where
// they belong.
func PlanBudgets(entity string, have []BudgetRow, want []BudgetSpec, sofar int64, spend *int64) BudgetMoves {
	var m BudgetMoves
	for _, row := range have {
		if !slices.ContainsFunc(want, row.is) {
			m.End = append(m.End, row.ID)
		}
	}
	for _, w := range want {
		main := w.Entity == entity && w.Win == ""
		at := slices.IndexFunc(have, func(b BudgetRow) bool { return b.is(w) })
		switch {
		case at < 0 && !main:
			m.open(w, 0)
		case at < 0 && spend == nil:
			m.open(w, sofar)
		case at < 0:
			m.open(w, *spend)
		case spend != nil && (main || *spend == 0):
			m.End = append(m.End, have[at].ID)
			m.open(w, *spend)
		default:
			m.adjust(have[at], w)
		}
	}
	return m
}

func (m *BudgetMoves) open(w BudgetSpec, spent int64) {
	m.Open, m.OpenSpent = append(m.Open, w), append(m.OpenSpent, spent)
}

func (m *BudgetMoves) adjust(row BudgetRow, w BudgetSpec) {
	if row.Limit != w.Limit {
		row.Limit = w.Limit
		m.Limits = append(m.Limits, row)
	}
	if row.Duration != w.Duration {
		row.Duration = w.Duration
		m.Spans = append(m.Spans, row)
	}
}

// is says whether the row is the one that w asks for.
func (b BudgetRow) is(w BudgetSpec) bool { return b.Entity == w.Entity && b.Win == w.Win }

// OpenRow is a fresh row for a budget whose period starts now.
func (w BudgetSpec) OpenRow(spent int64, now time.Time) (BudgetRow, error) {
	end, err := PeriodEnd(w.Duration, now, now)
	d := ledger.Opening(w.Limit, spent)
	return BudgetRow{
		Budget: ledger.Budget{Entity: w.Entity, Limit: w.Limit, Spent: d.Spent, Overrun: d.Overrun, Until: end},
		Win:    w.Win, Anchor: now, Duration: w.Duration,
	}, err
}

// SpecEntities lists the distinct entities of budgets, with one more.
func SpecEntities(entity string, lists ...[]BudgetSpec) []string {
	names := []string{entity}
	for _, list := range lists {
		for _, s := range list {
			names = append(names, s.Entity)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
