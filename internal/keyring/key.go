package keyring

import (
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/limit"
)

// MasterID is the ID of the built-in key that the master key stands for.
const MasterID = "master"

// Key is a virtual key as a request needs it. It is immutable and shared: do not
// write to it.
type Key struct {
	ID             string // lower-case hex of the SHA-256, or MasterID
	Alias          string
	Name           string // "sk-...abcd"
	Blocked        bool
	Expires        time.Time         // zero: never
	Aliases        map[string]string // the key's own model names
	Entities       []string          // that have a budget
	Limits         []limit.Subject   // rate limits that a request has to pass
	MaxBudget      int64             // nano-dollars; -1: none
	Spend          int64             // nano-dollars, when the key was read
	UserID         string
	TeamID         string
	OrganizationID string
	Tags           []string
	Version        int64

	models models
}

// Expired says whether the key's time was over at now.
func (k *Key) Expired(now time.Time) bool {
	return !k.Expires.IsZero() && !now.Before(k.Expires)
}

// Allows says whether the key may use the model that a client names: by that name,
// or, where it is one of the key's own aliases, by the name behind it. A name that
// only routing knows (a team's alias, a fallback) has to be asked for itself.
func (k *Key) Allows(model string) bool {
	if k.models.allow(model) {
		return true
	}
	target, ok := k.Aliases[model]
	return ok && k.models.allow(target)
}

func newKey(row *ledgerv1.Key) *Key {
	k := &Key{
		ID:             row.GetId(),
		Alias:          row.GetAlias(),
		Name:           row.GetName(),
		Blocked:        row.GetBlocked(),
		Aliases:        row.GetAliases(),
		MaxBudget:      row.GetMaxBudgetNano(),
		Spend:          row.GetSpendNano(),
		UserID:         row.GetUserId(),
		TeamID:         row.GetTeamId(),
		OrganizationID: row.GetOrganizationId(),
		Tags:           row.GetTags(),
		Version:        row.GetVersion(),
		models:         newModels(row.GetModels()),
	}
	if ms := row.GetExpiresMs(); ms != 0 {
		k.Expires = time.UnixMilli(ms)
	}
	for _, l := range row.GetLimits() {
		k.Limits = append(k.Limits, limit.Subject{Name: l.GetName(), RPM: l.GetRpm(), TPM: l.GetTpm(), Parallel: l.GetParallel()})
	}
	seen := map[string]bool{}
	for _, e := range row.GetEntities() {
		if e.GetBudgeted() && !seen[e.GetName()] {
			seen[e.GetName()] = true
			k.Entities = append(k.Entities, e.GetName())
		}
	}
	return k
}

func newMaster() *Key {
	return &Key{ID: MasterID, MaxBudget: -1, models: newModels(nil)}
}
