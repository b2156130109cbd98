package store

import (
	"context"
	"encoding/json"
	"time"
)

// Directory keeps what budgets belong to beside keys: organizations, teams and
// their members, users, customers, tags, the gateway as a whole, and templates of
// budgets. Every change is audited and told to pollers of Changes in its own
// transaction.
type Directory interface {
	// CreateEntities makes all of the entities, or none. ErrConflict: a name, a team's
	// or organization's alias, or a user's email is taken. A parent (the organization
	// of a team, the team of a member, a template) that does not exist is ErrInvalid.
	CreateEntities(ctx context.Context, entities []Entity) error
	// Entity returns the entity of a name with its reported spend, or ErrNotFound.
	Entity(ctx context.Context, name string) (Entity, error)
	// UpdateEntity changes what the patch names and returns the new row.
	UpdateEntity(ctx context.Context, name string, p EntityPatch) (Entity, error)
	// DeleteEntities deletes the named entities that exist, with the memberships of
	// teams and users, and returns the names that are gone. Keys that belong to a
	// deleted team or user are deleted too. An organization with teams, and a template
	// in use, is ErrInUse and nothing is deleted.
	DeleteEntities(ctx context.Context, names []string, by string) ([]string, error)
	ListEntities(ctx context.Context, f EntityFilter) (EntityPage, error)

	// Admit answers for the SHA-256 of a secret: the key it opens, and everything
	// that counts for its requests. ErrNotFound: it opens none.
	Admit(ctx context.Context, secret string) (Admission, error)
	// RotateKey gives a key a new secret. Old secrets open it for grace longer. The
	// key's id, budgets and spend go on.
	RotateKey(ctx context.Context, r Rotation) (Key, error)
	// Subjects says which names exist and hold budgets, in the order of the names.
	Subjects(ctx context.Context, names []string) ([]Subject, error)
	// Dependents lists what workers may have cached because of names out of Changes, at
	// most so many.
	Dependents(ctx context.Context, names []string, most int) (Dependents, error)
}

// Kind is what an entity is. It is the first part of the entity's name.
type Kind string

// Kinds of entities.
const (
	KindGlobal       Kind = "global"
	KindOrganization Kind = "org"
	KindTeam         Kind = "team"
	KindMember       Kind = "member"
	KindUser         Kind = "user"
	KindCustomer     Kind = "customer"
	KindTag          Kind = "tag"
	KindTemplate     Kind = "budget" // holds no money itself: others take its limits
)

// Roles of users and members that have a meaning here.
const (
	RoleAdmin  = "proxy_admin"        // of a user: its keys may do everything
	RoleViewer = "proxy_admin_viewer" // of a user: its keys may read everything
	RoleTeam   = "admin"              // of a member: sees and manages the team
)

// Entity is one thing that a budget can belong to.
type Entity struct {
	Kind           Kind
	ID             string // of a member: the user's id; of the gateway: ""
	TeamID         string // of a member
	OrganizationID string // of a team
	Alias          string
	Email          string
	Role           string
	Models         []string // allow-list; empty: every model
	Blocked        bool
	MaxBudget      *int64 // its own; nil: the template's, or none
	BudgetDuration string
	Spend          int64     // reported; read only
	BudgetResetAt  time.Time // read only
	MetadataJSON   string
	// SettingsJSON keeps further fields as they came; budget_id, budget_limits,
	// model_max_budget and team_member_budget in it make budgets.
	SettingsJSON string
	CreatedBy    string
	CreatedAt    time.Time
	UpdatedBy    string
	UpdatedAt    time.Time
	Version      int64
}

// EntityPatch changes the fields whose pointer is set.
type EntityPatch struct {
	OrganizationID *string
	Alias          *string
	Email          *string
	Role           *string
	Models         *[]string
	Blocked        *bool
	MaxBudget      **int64
	BudgetDuration *string
	MetadataJSON   *string
	Settings       map[string]json.RawMessage // as in KeyPatch
	Spend          *int64                     // as in KeyPatch
	UpdatedBy      string
}

// EntityFilter selects entities of a kind. Empty fields match everything.
type EntityFilter struct {
	Kind           Kind
	IDs            []string // nil: any
	OrganizationID string
	TeamID         string // of members
	Alias          string
	Email          string // in any case
	Role           string
	Page           int // from 1
	Size           int // at most 1,000
}

// EntityPage is one page of entities, newest first.
type EntityPage struct {
	Entities []Entity
	Total    int
}

// Admission is a key as its requests are admitted by it.
type Admission struct {
	// Key has what counts: it is blocked when its team or user is, its models are those
	// that all allow, its organization may be its team's, and it expires when the
	// secret does that was asked for.
	Key Key
	// Entities are the names of the budgets that must hold money for each request, one
	// for each window.
	Entities []string
	// Limit is the limit of the key's own budget; nil: none.
	Limit *int64
	// Related are the gateway and the key's organization, team, membership and user, those of them that
	// exist; only Kind, ID, TeamID, OrganizationID, Models, Blocked and SettingsJSON are set.
	Related []Entity
}

// Dependents is what workers may have cached because of something that changed.
type Dependents struct {
	Secrets  []string // of keys, and of the keys of teams, users, members, organizations and templates
	Subjects []string // who takes a limit from a template
	TooMany  bool     // there are more than was asked for, and none is listed
}

// Rotation is a new secret for a key.
type Rotation struct {
	ID     string // of the key
	Secret string // SHA-256 of the new secret, lower-case hex
	Name   string // "sk-...abcd" of the new secret
	Grace  time.Duration
	By     string
}

// Subject is what stands behind a name that a request brings with it.
type Subject struct {
	Name     string
	Found    bool
	Blocked  bool
	Entities []string // its budgets, one name for each window
	// SettingsJSON is the entity's; "" where there is none.
	SettingsJSON string
}
