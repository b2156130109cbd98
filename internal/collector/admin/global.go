package admin

import (
	"errors"
	"net/http"

	"github.com/penstock-gateway/penstock/internal/store"
)

// gateway is the entity that every request belongs to.
var gateway = family{kind: store.KindGlobal, noun: "gateway", id: "gateway"}

// globalBudget shows the budget of the gateway as a whole.
func (a *api) globalBudget(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	warnUnused(w, r)
	e, err := a.store.Entity(r.Context(), store.GlobalEntity)
	if errors.Is(err, store.ErrNotFound) {
		e, err = store.Entity{Kind: store.KindGlobal}, nil
	}
	if err != nil {
		return nil, err
	}
	return viewGlobal(&e)
}

func viewGlobal(e *store.Entity) (map[string]any, error) {
	view, err := gateway.view(e)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, field := range []string{"max_budget", "budget_duration", "budget_reset_at", "budget_limits", "spend", "updated_at", "updated_by"} {
		out[field] = view[field]
	}
	return out, nil
}

// updateGlobalBudget sets the budget of the gateway as a whole.
func (a *api) updateGlobalBudget(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	c := entityChange{patch: store.EntityPatch{MaxBudget: f.amount("max_budget"), BudgetDuration: f.period("budget_duration")}}
	if spend := f.amount("spend"); spend != nil {
		c.patch.Spend = *spend
	}
	limits, has := f.take("budget_limits")
	if err := f.onlyTaken(); err != nil {
		return nil, err
	}
	if has {
		value, err := checkShape("budget_limits", limits, shapeLimits)
		if err != nil {
			return nil, err
		}
		c.patch.Settings = settings{"budget_limits": value}
	}
	err = a.store.CreateEntities(r.Context(), []store.Entity{{Kind: store.KindGlobal, CreatedBy: by}})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return nil, err
	}
	e, err := a.change(r.Context(), gateway, c, by)
	if err != nil {
		return nil, err
	}
	return viewGlobal(&e)
}
