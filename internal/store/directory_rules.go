package store

import (
	"errors"
	"fmt"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

// Apply changes e as the patch says. Spend is not a field of the row and is left to
// the store.
func (p EntityPatch) Apply(e *Entity) {
	set(&e.OrganizationID, p.OrganizationID)
	set(&e.Alias, p.Alias)
	set(&e.Email, p.Email)
	set(&e.Role, p.Role)
	set(&e.Models, p.Models)
	set(&e.Blocked, p.Blocked)
	set(&e.MaxBudget, p.MaxBudget)
	set(&e.BudgetDuration, p.BudgetDuration)
	set(&e.MetadataJSON, p.MetadataJSON)
	e.SettingsJSON = mergeSettings(e.SettingsJSON, p.Settings)
	e.UpdatedBy = p.UpdatedBy
}

// maxEntityID bounds an id so that the sums, whose texts are clipped, tell it from others.
const maxEntityID = 240

// Normalize checks an entity before it is written and fills in the empty JSON objects.
// Its errors wrap ErrInvalid.
func (e *Entity) Normalize() error {
	for _, s := range []*string{&e.ID, &e.TeamID, &e.OrganizationID, &e.Alias, &e.Email, &e.Role, &e.CreatedBy, &e.UpdatedBy} {
		if *s = CleanText(*s); len(*s) > maxName {
			return fmt.Errorf("cannot store a name of %d bytes (%.20s…): want at most %d: %w", len(*s), *s, maxName, ErrInvalid)
		}
	}
	if err := e.checkID(); err != nil {
		return err
	}
	if len(e.ID) > maxEntityID || len(e.TeamID) > maxEntityID {
		return fmt.Errorf("cannot store the id %.20q…: it has more than %d bytes: %w", e.ID, maxEntityID, ErrInvalid)
	}
	if e.MaxBudget != nil && *e.MaxBudget < 0 {
		return fmt.Errorf("cannot store max_budget %d: want 0 or more: %w", *e.MaxBudget, ErrInvalid)
	}
	if _, err := ledger.ParsePeriod(e.BudgetDuration); err != nil {
		return fmt.Errorf("%w: %w", err, ErrInvalid)
	}
	if err := errors.Join(normalizeJSON("metadata", &e.MetadataJSON), normalizeJSON("settings", &e.SettingsJSON)); err != nil {
		return err
	}
	e.Models = cleanAll(e.Models)
	_, err := e.Budgets(Template{})
	if err == nil {
		_, err = e.MemberTemplate()
	}
	return err
}

// Counts merges what the key's team, user and organization say into the key. entities
// holds those of them that exist.
func (k *Key) Counts(entities map[string]Entity) {
	team, inTeam := entities[EntityName(KindTeam, k.TeamID)]
	if inTeam && team.OrganizationID != "" {
		k.OrganizationID = team.OrganizationID
	}
	k.Models = CommonModels(ownModels(k.Models, team.Models), team.Models)
	user, known := entities[EntityName(KindUser, k.UserID)]
	k.Blocked = k.Blocked || inTeam && team.Blocked || known && user.Blocked
	if k.TeamID == "" { // a team's key is the team's, whoever made it
		k.Models = CommonModels(k.Models, user.Models)
	}
	if k.OrganizationID != "" {
		k.Models = CommonModels(k.Models, entities[EntityName(KindOrganization, k.OrganizationID)].Models)
	}
}

// Payers are the entities of which every request of the key needs money, where they
// have budgets. A user's own budget pays for keys that belong to no team; within a
// team it is the member's.
func (k *Key) Payers() []string {
	names := []string{GlobalEntity}
	if k.OrganizationID != "" {
		names = append(names, EntityName(KindOrganization, k.OrganizationID))
	}
	switch {
	case k.TeamID == "" && k.UserID != "":
		names = append(names, EntityName(KindUser, k.UserID))
	case k.TeamID != "" && k.UserID != "":
		names = append(names, EntityName(KindTeam, k.TeamID), MemberEntity(k.TeamID, k.UserID))
	case k.TeamID != "":
		names = append(names, EntityName(KindTeam, k.TeamID))
	}
	return append(names, KeyEntity(k.ID))
}

// KeepsHistory says whether a new entity counts what was spent under its name before
// it existed. Requests name customers and tags without anybody having made them.
func (e *Entity) KeepsHistory() bool { return e.Kind == KindCustomer || e.Kind == KindTag }

// Parents are the names of what must exist for the entity to.
func (e *Entity) Parents() []string {
	var names []string
	if e.OrganizationID != "" {
		names = append(names, EntityName(KindOrganization, e.OrganizationID))
	}
	if e.Kind == KindMember {
		names = append(names, EntityName(KindTeam, e.TeamID), EntityName(KindUser, e.ID))
	}
	return names
}

// NewParents are the names of what must exist for a key that was old before.
func (k *Key) NewParents(old Key) []string {
	var names []string
	if k.OrganizationID != "" && k.OrganizationID != old.OrganizationID {
		names = append(names, EntityName(KindOrganization, k.OrganizationID))
	}
	if k.TeamID != "" && k.TeamID != old.TeamID {
		names = append(names, EntityName(KindTeam, k.TeamID))
	}
	return names
}
