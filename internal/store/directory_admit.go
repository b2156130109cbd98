package store

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Standing is one row of what stands behind a name: each of its current budgets, or
// one row without a budget.
type Standing struct {
	Name     string
	Found    bool   // there is an entity
	Entity   Entity // with what admission asks of it
	Budgeted bool
	Win      string
	Limit    *int64
}

// Behind are the names of what a key may depend on beside its team's organization.
func (k *Key) Behind() []string {
	names := k.Payers()
	if user := EntityName(KindUser, k.UserID); k.UserID != "" && !slices.Contains(names, user) {
		names = append(names, user)
	}
	return names
}

// ExpireBy brings the key's end forward; the zero time changes nothing.
func (k *Key) ExpireBy(t time.Time) {
	if !t.IsZero() && (k.Expires.IsZero() || t.Before(k.Expires)) {
		k.Expires = t
	}
}

// Fill completes an admission whose key was read, from what stands behind it.
func (a *Admission) Fill(rows []Standing) {
	entities := make(map[string]Entity)
	for _, r := range rows {
		if r.Found {
			entities[r.Name] = r.Entity
		}
	}
	a.Key.Counts(entities)
	for _, name := range slices.Sorted(maps.Keys(entities)) {
		a.Related = append(a.Related, entities[name])
	}
	for _, payer := range a.Key.Payers() {
		for _, r := range rows {
			if r.Name != payer || !r.Budgeted {
				continue
			}
			a.Entities = append(a.Entities, WindowName(r.Name, r.Win))
			if r.Win == "" && payer == KeyEntity(a.Key.ID) {
				a.Limit = r.Limit
			}
		}
	}
}

// SubjectsOf sorts rows by the names that were asked for. A key's model exists when it
// has a budget: it has no other row.
func SubjectsOf(names []string, rows []Standing) []Subject {
	out := make([]Subject, len(names))
	for i, name := range names {
		out[i].Name = name
		for _, r := range rows {
			if r.Name != name {
				continue
			}
			out[i].Found = out[i].Found || r.Found || r.Budgeted
			out[i].Blocked = out[i].Blocked || r.Entity.Blocked
			out[i].SettingsJSON = r.Entity.SettingsJSON
			if r.Budgeted {
				out[i].Entities = append(out[i].Entities, WindowName(name, r.Win))
			}
		}
	}
	return out
}

// Named are names out of Changes, by what they are.
type Named struct {
	Keys, Teams, Users, Organizations, Templates []string
	MemberTeams, MemberUsers                     []string // parallel
}

// SortNames sorts names out of Changes. What has no kind is a key's id.
func SortNames(names []string) Named {
	var n Named
	for _, name := range names {
		kind, id, ok := strings.Cut(name, ":")
		switch {
		case !ok:
			n.Keys = appendUnlessGlobal(n.Keys, name)
		case Kind(kind) == KindTeam:
			n.Teams = append(n.Teams, id)
		case Kind(kind) == KindUser:
			n.Users = append(n.Users, id)
		case Kind(kind) == KindOrganization:
			n.Organizations = append(n.Organizations, id)
		case Kind(kind) == KindTemplate:
			n.Templates = append(n.Templates, id)
		case Kind(kind) == KindMember:
			team, user, _ := strings.Cut(id, "/")
			n.MemberTeams, n.MemberUsers = append(n.MemberTeams, team), append(n.MemberUsers, user)
		}
	}
	return n
}

func appendUnlessGlobal(keys []string, name string) []string {
	if name == GlobalEntity {
		return keys
	}
	return append(keys, name)
}
