package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

// Apply changes k as the patch says. Spend is not a field of the row and is left
// to the store.
func (p KeyPatch) Apply(k *Key) {
	set(&k.Alias, p.Alias)
	set(&k.UserID, p.UserID)
	set(&k.TeamID, p.TeamID)
	set(&k.OrganizationID, p.OrganizationID)
	set(&k.Models, p.Models)
	set(&k.Aliases, p.Aliases)
	set(&k.Blocked, p.Blocked)
	set(&k.Expires, p.Expires)
	set(&k.MaxBudget, p.MaxBudget)
	set(&k.BudgetDuration, p.BudgetDuration)
	set(&k.Tags, p.Tags)
	set(&k.MetadataJSON, p.MetadataJSON)
	k.SettingsJSON = mergeSettings(k.SettingsJSON, p.Settings)
	k.UpdatedBy = p.UpdatedBy
}

// mergeSettings lays changes over the fields of a JSON object; null has none. What is
// no object is left as it is.
func mergeSettings(text string, changes map[string]json.RawMessage) string {
	if len(changes) == 0 {
		return text
	}
	var fields map[string]json.RawMessage
	if text != "" && json.Unmarshal([]byte(text), &fields) != nil {
		return text
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	for name, value := range changes {
		if string(value) == "null" {
			delete(fields, name)
			continue
		}
		fields[name] = value
	}
	merged, err := json.Marshal(fields)
	if err != nil {
		return err.Error() // a change that is not JSON: refused as well
	}
	return string(merged)
}

func set[T any](field *T, v *T) {
	if v != nil {
		*field = *v
	}
}

// maxName bounds the texts of a key that stand in an index, in bytes.
const maxName = 1024

// Normalize checks a key before it is written and fills in the empty JSON
// objects. Its errors wrap ErrInvalid.
func (k *Key) Normalize() error {
	if k.ID == "" {
		return fmt.Errorf("cannot store a key without an id: %w", ErrInvalid)
	}
	if k.MaxBudget != nil && *k.MaxBudget < 0 {
		return fmt.Errorf("cannot store max_budget %d: want 0 or more: %w", *k.MaxBudget, ErrInvalid)
	}
	if _, err := ledger.ParsePeriod(k.BudgetDuration); err != nil {
		return fmt.Errorf("%w: %w", err, ErrInvalid)
	}
	if err := errors.Join(normalizeJSON("metadata", &k.MetadataJSON), normalizeJSON("settings", &k.SettingsJSON)); err != nil {
		return err
	}
	for _, s := range []*string{&k.ID, &k.Name, &k.Alias, &k.UserID, &k.TeamID, &k.OrganizationID, &k.CreatedBy, &k.UpdatedBy} {
		if *s = CleanText(*s); len(*s) > maxName {
			return fmt.Errorf("cannot store a name of %d bytes (%.20s…): want at most %d: %w", len(*s), *s, maxName, ErrInvalid)
		}
	}
	k.Models, k.Tags, k.Aliases = cleanAll(k.Models), cleanAll(k.Tags), cleanMap(k.Aliases)
	_, err := k.Budgets(Template{})
	return err
}

func normalizeJSON(name string, text *string) error {
	if *text == "" {
		*text = "{}"
	}
	*text = strings.ToValidUTF8(*text, "\uFFFD")
	// PostgreSQL's jsonb cannot hold the NUL character in any spelling.
	if !json.Valid([]byte(*text)) || strings.Contains(*text, `\u0000`) {
		return fmt.Errorf("cannot store %s: not JSON, or with a NUL character: %w", name, ErrInvalid)
	}
	return nil
}

func cleanAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = CleanText(s)
	}
	return out
}

func cleanMap(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[CleanText(k)] = CleanText(v)
	}
	return out
}

// PeriodEnd is the end of the budget's period that runs at now, counted from
// anchor; zero when it never ends.
func PeriodEnd(duration string, anchor, now time.Time) (time.Time, error) {
	p, err := ledger.ParsePeriod(duration)
	if err != nil {
		return time.Time{}, err
	}
	return p.End(anchor, now), nil
}

// SettleSpend fills in Spend and BudgetResetAt from the rows they are read from.
// A period that is over counts as spent nothing although its next row is only
// made by the next grant.
func (k *Key) SettleSpend(b *BudgetRow, unbudgeted int64, now time.Time) (err error) {
	k.Spend, k.BudgetResetAt, err = b.settled(unbudgeted, now)
	return err
}

// SettleSpend is Key.SettleSpend for an entity.
func (e *Entity) SettleSpend(b *BudgetRow, unbudgeted int64, now time.Time) (err error) {
	e.Spend, e.BudgetResetAt, err = b.settled(unbudgeted, now)
	return err
}

func (b *BudgetRow) settled(unbudgeted int64, now time.Time) (spend int64, reset time.Time, err error) {
	if b == nil {
		return unbudgeted, time.Time{}, nil
	}
	if b.Over(now) {
		reset, err = PeriodEnd(b.Duration, b.Anchor, now)
		return 0, reset, err
	}
	return b.Reported(), b.Until, nil
}

// BudgetRow is a budget with what its next period is made from.
type BudgetRow struct {
	ledger.Budget
	Win      string // "": the entity's main budget
	Anchor   time.Time
	Duration string
}

// Over says whether the row's period has ended.
func (b BudgetRow) Over(now time.Time) bool { return !b.Until.IsZero() && !b.Until.After(now) }

// Window is the filter's page as limit and offset.
func (f KeyFilter) Window() (limit, offset int) {
	const most, usual = 1000, 50
	limit = f.Size
	if limit <= 0 {
		limit = usual
	}
	limit = min(limit, most)
	return limit, (max(f.Page, 1) - 1) * limit
}
