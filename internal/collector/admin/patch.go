package admin

import (
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// change is what a body asks of a key.
type change struct {
	patch    store.KeyPatch
	settings settings // later fields, null where one is taken away
	warnings []string
}

// readChange reads the fields that /key/generate and /key/update share; f has taken
// those that are the caller's own.
func readChange(f *fieldReader, now time.Time) (change, error) {
	c := change{patch: store.KeyPatch{
		Alias:          f.text("key_alias"),
		UserID:         f.text("user_id"),
		TeamID:         f.text("team_id"),
		OrganizationID: f.text("organization_id"),
		Models:         f.texts("models"),
		Aliases:        f.textMap("aliases"),
		Blocked:        f.flag("blocked"),
		Expires:        f.expiry("duration", now),
		MaxBudget:      f.amount("max_budget"),
		BudgetDuration: f.period("budget_duration"),
		Tags:           f.texts("tags"),
		MetadataJSON:   f.jsonObject("metadata"),
	}}
	if spend := f.amount("spend"); spend != nil {
		c.patch.Spend = *spend // null changes nothing
	}
	c.settings, c.warnings = f.later()
	return c, f.err
}

// notes are the warnings, with those that depend on what the key has become.
func (c *change) notes(k *store.Key) []string {
	if d := c.patch.BudgetDuration; d != nil && k.BudgetDuration != "" && k.MaxBudget == nil && k.BudgetResetAt.IsZero() {
		return append(c.warnings, "budget_duration is stored, but has no effect without max_budget")
	}
	return c.warnings
}

// period reads the length of a budget's period.
func (f *fieldReader) period(name string) *string {
	s := f.text(name)
	if s == nil {
		return nil
	}
	if _, err := ledger.ParsePeriod(*s); err != nil {
		f.fail(badField(name, "must be a whole number and one of s, m, h, d, mo, such as 30d"))
		return nil
	}
	return s
}

// expiry reads a key's life from now on. Null, "" and "-1" mean for ever.
func (f *fieldReader) expiry(name string, now time.Time) *time.Time {
	s := f.text(name)
	if s == nil {
		return nil
	}
	if *s == "" || *s == "-1" {
		return &time.Time{}
	}
	period, err := ledger.ParsePeriod(*s)
	if err != nil {
		f.fail(badField(name, "must be a whole number and one of s, m, h, d, mo, such as 30d"))
		return nil
	}
	end := period.End(now, now)
	return &end
}
