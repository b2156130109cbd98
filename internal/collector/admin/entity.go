package admin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/penstock-gateway/penstock/internal/store"
)

// family is one kind of entity as the API names it.
type family struct {
	kind  store.Kind
	noun  string // in messages
	id    string // the field with the id
	ids   string // the field with ids to delete
	alias string // the field with the alias; "": it has none
	email string
	role  string
	org   bool // it may belong to an organization
	table bool // LiteLLM keeps its budget in a row of its own, and shows it as litellm_budget_table
}

var (
	teams         = family{kind: store.KindTeam, noun: "team", id: "team_id", ids: "team_ids", alias: "team_alias", org: true}
	users         = family{kind: store.KindUser, noun: "user", id: "user_id", ids: "user_ids", alias: "user_alias", email: "user_email", role: "user_role"}
	customers     = family{kind: store.KindCustomer, noun: "customer", id: "user_id", ids: "user_ids", alias: "alias", table: true}
	organizations = family{kind: store.KindOrganization, noun: "organization", id: "organization_id", ids: "organization_ids", alias: "organization_alias", table: true}
	tags          = family{kind: store.KindTag, noun: "tag", id: "name", ids: "name", table: true}
	templates     = family{kind: store.KindTemplate, noun: "budget", id: "budget_id", ids: "id"}
)

// entityChange is what a body asks of an entity.
type entityChange struct {
	id       string
	patch    store.EntityPatch
	warnings []string
}

// readEntity reads the fields that /new and /update share; f has taken those that are
// the caller's own.
func (fam family) readEntity(f *fieldReader) (entityChange, error) {
	c := entityChange{id: given(f.text(fam.id)), patch: store.EntityPatch{
		Models:         f.texts("models"),
		Blocked:        f.flag("blocked"),
		MaxBudget:      f.amount("max_budget"),
		BudgetDuration: f.period("budget_duration"),
		MetadataJSON:   f.jsonObject("metadata"),
	}}
	if fam.alias != "" {
		c.patch.Alias = f.text(fam.alias)
	}
	if fam.email != "" {
		c.patch.Email = f.text(fam.email)
	}
	if fam.role != "" {
		c.patch.Role = f.text(fam.role)
	}
	if fam.org {
		c.patch.OrganizationID = f.text("organization_id")
	}
	if spend := f.amount("spend"); spend != nil {
		c.patch.Spend = *spend // null changes nothing
	}
	settings, warnings := f.rest(entityFields, fam.acts)
	c.patch.Settings, c.warnings = settings, warnings
	if max := c.patch.MaxBudget; fam.comesWithRequest() && max != nil && *max != nil {
		c.warnings = append(c.warnings, "max_budget of a "+fam.noun+" is stored but refuses no request in this release")
	}
	return c, f.err
}

// comesWithRequest says that a request names the entity itself: the gateway does not
// ask for such budgets yet.
func (fam family) comesWithRequest() bool {
	return fam.kind == store.KindCustomer || fam.kind == store.KindTag
}

// acts says whether a field that is kept as it came has an effect on this kind.
func (fam family) acts(field string) bool {
	if isRateLimit(field) {
		return fam.kind == store.KindTeam || fam.kind == store.KindUser || fam.kind == store.KindOrganization
	}
	switch field {
	case "description", "default_model", "allowed_model_region":
		return field == "description"
	case "budget_id", "budget_limits":
		return fam.kind != store.KindTemplate && !fam.comesWithRequest()
	case "team_member_budget", "team_member_budget_duration":
		return fam.kind == store.KindTeam
	}
	return false
}

// entity is a new entity as the change makes it.
func (c *entityChange) entity(kind store.Kind, by string) store.Entity {
	e := store.Entity{Kind: kind, ID: c.id, CreatedBy: by}
	c.patch.UpdatedBy = by
	c.patch.Apply(&e)
	return e
}

// unspent refuses a spend of what is only being made.
func (c *entityChange) unspent() error {
	if c.patch.Spend != nil {
		return badField("spend", "can be set by an update only")
	}
	return nil
}

// name is the entity's name in the store.
func (fam family) name(id string) string { return store.EntityName(fam.kind, id) }

// unknown is the answer where there is no such entity.
func (fam family) unknown() error {
	return &apiError{status: http.StatusNotFound, kind: "not_found_error", msg: "no such " + fam.noun, param: fam.id}
}

// fault gives what the store says the field that is at fault.
func (fam family) fault(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fam.unknown()
	case errors.Is(err, store.ErrInUse):
		return &apiError{status: http.StatusBadRequest, kind: "bad_request_error", msg: err.Error(), param: fam.id}
	case errors.Is(err, store.ErrConflict):
		fields := fam.id
		for _, other := range []string{fam.alias, fam.email} {
			if other != "" {
				fields += " or " + other
			}
		}
		return &apiError{status: http.StatusBadRequest, kind: "bad_request_error", msg: fields + " is taken already", param: fam.id}
	}
	return err
}

// required refuses a call that names nothing.
func (fam family) required(id string) error {
	if id == "" {
		return badField(fam.id, "is required")
	}
	return nil
}

// newID makes an id where the caller gave none.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // crypto/rand never fails: it ends the program instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

// start reads what every change begins with: who makes it, and its body.
func start(w http.ResponseWriter, r *http.Request) (by string, f *fieldReader, err error) {
	if by, err = changedBy(r); err != nil {
		return "", nil, err
	}
	obj, err := readObject(w, r)
	return by, newFieldReader(obj), err
}

// create makes one entity.
func (a *api) create(ctx context.Context, fam family, e store.Entity) (store.Entity, error) {
	if err := a.store.CreateEntities(ctx, []store.Entity{e}); err != nil {
		return e, fam.fault(err)
	}
	a.log.Info(fam.noun+" created", "name", e.Name(), "by", e.CreatedBy)
	return a.store.Entity(ctx, e.Name())
}

// change updates one entity.
func (a *api) change(ctx context.Context, fam family, c entityChange, by string) (store.Entity, error) {
	c.patch.UpdatedBy = by
	e, err := a.store.UpdateEntity(ctx, fam.name(c.id), c.patch)
	if err != nil {
		return e, fam.fault(err)
	}
	a.log.Info(fam.noun+" updated", "name", e.Name(), "by", by)
	return e, nil
}

// find reads one entity.
func (a *api) find(ctx context.Context, fam family, id string) (store.Entity, error) {
	if err := fam.required(id); err != nil {
		return store.Entity{}, err
	}
	e, err := a.store.Entity(ctx, fam.name(id))
	if err != nil {
		return e, fam.fault(err)
	}
	return e, nil
}

// remove deletes entities. Those that do not exist are named in the answer; when none
// does, that is an error.
func (a *api) remove(w http.ResponseWriter, r *http.Request, fam family) (any, error) {
	by, f, err := start(w, r)
	if err != nil {
		return nil, err
	}
	ids, err := f.idsOf(fam.ids)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = fam.name(id)
	}
	gone, err := a.store.DeleteEntities(r.Context(), names, by)
	if err != nil {
		return nil, fam.fault(err)
	}
	if len(gone) == 0 {
		return nil, fam.unknown()
	}
	a.log.Info(fam.noun+" deleted", "names", gone, "by", by)
	deleted, missing := []string{}, []string{}
	was := make(map[string]bool, len(gone))
	for _, name := range gone {
		was[name] = true
	}
	for i, name := range names {
		if was[name] {
			deleted = append(deleted, ids[i])
		} else {
			missing = append(missing, ids[i])
		}
	}
	return map[string]any{"deleted_" + fam.noun + "s": deleted, "missing_" + fam.noun + "s": missing}, nil
}

// idsOf reads a list of ids, or one.
func (f *fieldReader) idsOf(name string) ([]string, error) {
	raw, ok := f.obj.fields[name]
	var one string
	if ok && json.Unmarshal(raw, &one) == nil {
		id := f.text(name)
		if f.err == nil && given(id) == "" {
			return nil, badField(name, "is required")
		}
		return []string{given(id)}, f.err
	}
	list := f.texts(name)
	switch {
	case f.err != nil:
		return nil, f.err
	case list == nil || len(*list) == 0 || len(*list) > maxDelete:
		return nil, badField(name, "must name 1 to %d", maxDelete)
	}
	return *list, nil
}

// setEntityBlocked blocks entities, or lets them go on.
func (a *api) setEntityBlocked(r *http.Request, fam family, ids []string, by string, blocked bool) ([]store.Entity, error) {
	out := make([]store.Entity, 0, len(ids))
	for _, id := range ids {
		e, err := a.change(r.Context(), fam, entityChange{id: id, patch: store.EntityPatch{Blocked: &blocked}}, by)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}
