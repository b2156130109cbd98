package admin

import (
	"net/http"
	"strings"

	"github.com/penstock-gateway/penstock/internal/store"
)

func (a *api) newBudget(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.newNamed(w, r, templates)
}

func (a *api) updateBudget(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.updateNamed(w, r, templates)
}

func (a *api) deleteBudget(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.remove(w, r, templates)
}

// budgetInfo shows the named budgets that exist.
func (a *api) budgetInfo(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.named(w, r, templates, "budgets")
}

// named lists the entities that the body's list names.
func (a *api) named(w http.ResponseWriter, r *http.Request, fam family, field string) ([]map[string]any, error) {
	obj, err := readObject(w, r)
	if err != nil {
		return nil, err
	}
	ids, err := newFieldReader(obj).idsOf(field)
	if err != nil {
		return nil, err
	}
	page, err := a.store.ListEntities(r.Context(), store.EntityFilter{Kind: fam.kind, IDs: ids, Size: 1000})
	if err != nil {
		return nil, err
	}
	return fam.views(page.Entities)
}

func (a *api) listBudgets(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.listAll(w, r, templates)
}

// splitList reads a list in one query parameter.
func splitList(s string) []string {
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
