package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/penstock-gateway/penstock/internal/store"
)

func (a *api) newCustomer(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.newNamed(w, r, customers)
}

// updateCustomer changes a customer. Requests name customers before anybody has made
// them, so that one who is not known is made.
func (a *api) updateCustomer(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	c, err := customers.readEntity(f)
	if err != nil {
		return nil, err
	}
	if err := customers.required(c.id); err != nil {
		return nil, err
	}
	err = a.store.CreateEntities(r.Context(), []store.Entity{c.entity(store.KindCustomer, by)})
	if err != nil && !errors.Is(err, store.ErrConflict) { // ErrConflict: known already
		return nil, err
	}
	e, err := a.change(r.Context(), customers, c, by)
	if err != nil {
		return nil, err
	}
	return customers.shown(&e, c.warnings)
}

func (a *api) deleteCustomer(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.remove(w, r, customers)
}

func (a *api) customerInfo(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	warnUnused(w, r, "end_user_id")
	id := r.URL.Query().Get("end_user_id")
	if id == "" {
		return nil, badField("end_user_id", "is required")
	}
	e, err := a.find(r.Context(), customers, id)
	if err != nil {
		return nil, err
	}
	return customers.view(&e)
}

func (a *api) listCustomers(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.listAll(w, r, customers)
}

func (a *api) blockCustomer(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.setCustomersBlocked(w, r, true)
}

func (a *api) unblockCustomer(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.setCustomersBlocked(w, r, false)
}

// setCustomersBlocked blocks customers, those too that only requests have named so far.
func (a *api) setCustomersBlocked(w http.ResponseWriter, r *http.Request, blocked bool) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	ids, err := f.idsOf("user_ids")
	if err != nil {
		return nil, err
	}
	if err := a.customersExist(r.Context(), ids, by, blocked); err != nil {
		return nil, err
	}
	changed, err := a.setEntityBlocked(r, customers, ids, by, blocked)
	if err != nil {
		return nil, err
	}
	rows, err := customers.views(changed)
	if blocked {
		return map[string]any{"blocked_users": rows}, err
	}
	return map[string]any{"unblocked_users": rows}, err
}

// customersExist makes those that are to be blocked and are not known, all or none; who
// is to go on has to be known.
func (a *api) customersExist(ctx context.Context, ids []string, by string, blocked bool) error {
	page, err := a.store.ListEntities(ctx, store.EntityFilter{Kind: store.KindCustomer, IDs: ids, Size: 1000})
	if err != nil {
		return err
	}
	var missing []store.Entity
	for _, id := range ids {
		known := func(e store.Entity) bool { return e.ID == id }
		if !slices.ContainsFunc(page.Entities, known) && !slices.ContainsFunc(missing, known) {
			missing = append(missing, store.Entity{Kind: store.KindCustomer, ID: id, Blocked: true, CreatedBy: by})
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if !blocked {
		return customers.unknown()
	}
	err = a.store.CreateEntities(ctx, missing)
	if errors.Is(err, store.ErrConflict) {
		return nil // made meanwhile; it is blocked below
	}
	return err
}

// newNamed makes an entity of a kind that has no members.
func (a *api) newNamed(w http.ResponseWriter, r *http.Request, fam family) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	c, err := fam.readEntity(f)
	if err != nil {
		return nil, err
	}
	if c.id == "" && (fam.kind == store.KindOrganization || fam.kind == store.KindTemplate) {
		c.id = newID()
	}
	if err := errors.Join(fam.required(c.id), c.unspent()); err != nil {
		return nil, err
	}
	e, err := a.create(r.Context(), fam, c.entity(fam.kind, by))
	if err != nil {
		return nil, err
	}
	return fam.shown(&e, c.warnings)
}

// updateNamed changes an entity of a kind that has no members.
func (a *api) updateNamed(w http.ResponseWriter, r *http.Request, fam family) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	c, err := fam.readEntity(f)
	if err != nil {
		return nil, err
	}
	if err := fam.required(c.id); err != nil {
		return nil, err
	}
	e, err := a.change(r.Context(), fam, c, by)
	if err != nil {
		return nil, err
	}
	return fam.shown(&e, c.warnings)
}
