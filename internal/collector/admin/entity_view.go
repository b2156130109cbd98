package admin

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/penstock-gateway/penstock/internal/store"
)

// view is an entity as the API shows it. Fields that are kept as they came stand at the
// top level, where they were given.
func (fam family) view(e *store.Entity) (map[string]any, error) {
	stored, err := parseSettings(e.SettingsJSON)
	if err != nil {
		return nil, err
	}
	view := map[string]any{
		fam.id:            e.ID,
		"models":          notNil(e.Models),
		"blocked":         e.Blocked,
		"spend":           dollars(e.Spend),
		"max_budget":      nil,
		"budget_duration": orNull(e.BudgetDuration),
		"budget_reset_at": timeOrNull(e.BudgetResetAt),
		"metadata":        json.RawMessage(orEmpty(e.MetadataJSON)),
		"created_by":      orNull(e.CreatedBy),
		"created_at":      timeOrNull(e.CreatedAt),
		"updated_by":      orNull(e.UpdatedBy),
		"updated_at":      timeOrNull(e.UpdatedAt),

		"soft_budget":           nil,
		"tpm_limit":             nil,
		"rpm_limit":             nil,
		"max_parallel_requests": nil,
		"model_max_budget":      struct{}{},
	}
	if e.MaxBudget != nil {
		view["max_budget"] = dollars(*e.MaxBudget)
	}
	for field, value := range map[string]string{fam.alias: e.Alias, fam.email: e.Email, fam.role: e.Role} {
		if field != "" {
			view[field] = orNull(value)
		}
	}
	if fam.org {
		view["organization_id"] = orNull(e.OrganizationID)
	}
	for name, value := range stored {
		view[name] = value
	}
	if fam.table {
		view["litellm_budget_table"] = fam.budgetTable(view)
	}
	return view, nil
}

// budgetTable repeats an entity's budget where LiteLLM's clients look for it; null
// where it has none.
func (fam family) budgetTable(view map[string]any) any {
	if view["max_budget"] == nil && view["budget_id"] == nil && view["soft_budget"] == nil {
		return nil
	}
	table := map[string]any{}
	for _, field := range []string{"budget_id", "max_budget", "soft_budget", "budget_duration", "budget_reset_at", "tpm_limit", "rpm_limit", "max_parallel_requests", "model_max_budget"} {
		table[field] = view[field]
	}
	return table
}

// views shows many.
func (fam family) views(entities []store.Entity) ([]map[string]any, error) {
	out := make([]map[string]any, 0, len(entities))
	for i := range entities {
		v, err := fam.view(&entities[i])
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// shown is a changed entity with the warnings of its change.
func (fam family) shown(e *store.Entity, warnings []string) (map[string]any, error) {
	view, err := fam.view(e)
	if err != nil {
		return nil, err
	}
	view["warnings"] = notNil(warnings)
	return view, nil
}

// listPage lists a page of a kind by the query's page and size.
func (a *api) listPage(r *http.Request, f store.EntityFilter, usual int) (store.EntityPage, store.EntityFilter, error) {
	q := r.URL.Query()
	var err error
	if f.Page, err = number(q, "page", 1, 1_000_000); err != nil {
		return store.EntityPage{}, f, err
	}
	size := "size"
	if q.Has("page_size") {
		size = "page_size"
	}
	if f.Size, err = number(q, size, usual, 1000); err != nil {
		return store.EntityPage{}, f, err
	}
	page, err := a.store.ListEntities(r.Context(), f)
	return page, f, err
}

// listAll answers with a bare list, as LiteLLM does for most kinds. Where there are more
// than the page holds, a header says so.
func (a *api) listAll(w http.ResponseWriter, r *http.Request, fam family) (any, error) {
	warnUnused(w, r, "page", "size", "page_size")
	page, f, err := a.listPage(r, store.EntityFilter{Kind: fam.kind}, 1000)
	if err != nil {
		return nil, err
	}
	if page.Total > f.Page*f.Size {
		w.Header().Set("x-penstock-truncated", "true")
	}
	return fam.views(page.Entities)
}

// keysOf shows the keys of a filter, the newest thousand.
func (a *api) keysOf(ctx context.Context, f store.KeyFilter) ([]any, error) {
	f.Page, f.Size = 1, 1000
	page, err := a.store.ListKeys(ctx, f)
	if err != nil {
		return nil, err
	}
	return listed(page.Keys, true)
}
