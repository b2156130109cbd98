package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

// GlobalEntity is the entity that every request belongs to.
const GlobalEntity = "global"

// EntityName is the name of an entity that is neither a member nor a key's model.
func EntityName(kind Kind, id string) string {
	if kind == KindGlobal {
		return GlobalEntity
	}
	return string(kind) + ":" + id
}

// MemberEntity is the name of a user within a team.
func MemberEntity(team, user string) string { return string(KindMember) + ":" + team + "/" + user }

// ModelEntity is the name of a key's budget for one model.
func ModelEntity(keyID, model string) string { return "model:" + keyID + "/" + model }

// Name is the entity's name, as it stands in budgets.
func (e *Entity) Name() string {
	if e.Kind == KindMember {
		return MemberEntity(e.TeamID, e.ID)
	}
	return EntityName(e.Kind, e.ID)
}

// WindowName is how one budget of an entity is named where the entity alone does not
// do: "<entity>#<window>". The main budget's window is "", its name the entity's.
func WindowName(entity, win string) string {
	if win == "" {
		return entity
	}
	return entity + "#" + win
}

// SplitWindow is the reverse of WindowName. No entity's id may end like a window, so
// that a name has one meaning.
func SplitWindow(name string) (entity, win string) {
	i := strings.LastIndexByte(name, '#')
	if i < 0 || !isWindow(name[i+1:]) {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// SplitWindows splits names into two lists that are parallel to them.
func SplitWindows(names []string) (entities, wins []string) {
	for _, n := range names {
		e, w := SplitWindow(n)
		entities, wins = append(entities, e), append(wins, w)
	}
	return entities, wins
}

// isWindow says whether s is the name of a window: the length of its period.
func isWindow(s string) bool {
	_, err := ledger.ParsePeriod(s)
	return err == nil && s != ""
}

var kinds = []Kind{KindGlobal, KindOrganization, KindTeam, KindMember, KindUser, KindCustomer, KindTag, KindTemplate}

// checkID refuses an id that would make a name with two meanings.
func (e *Entity) checkID() error {
	switch {
	case !slices.Contains(kinds, e.Kind):
		return fmt.Errorf("cannot store a %.20q: it is no kind of entity: %w", e.Kind, ErrInvalid)
	case e.Kind == KindGlobal && e.ID != "":
		return fmt.Errorf("cannot store an id of %s: it has none: %w", GlobalEntity, ErrInvalid)
	case e.Kind != KindGlobal && e.ID == "", e.Kind == KindMember && e.TeamID == "":
		return fmt.Errorf("cannot store a %s without an id: %w", e.Kind, ErrInvalid)
	case e.Kind != KindMember && e.TeamID != "":
		return fmt.Errorf("cannot store a %s in a team: %w", e.Kind, ErrInvalid)
	case e.Kind == KindTeam && strings.Contains(e.ID, "/"):
		return fmt.Errorf(`cannot store the team id %.40q: it must not contain "/": %w`, e.ID, ErrInvalid)
	}
	if _, win := SplitWindow(e.ID); win != "" {
		return fmt.Errorf("cannot store the id %.40q: it must not end like a budget's window (#%s): %w", e.ID, win, ErrInvalid)
	}
	return nil
}
