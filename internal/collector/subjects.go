package collector

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/store"
)

// maxSubjects bounds the names of one call: a customer, a model, and a request's tags.
const maxSubjects = 64

// customerPrefix starts the names of customers.
const customerPrefix = string(store.KindCustomer) + ":"

// subjects looks names up. Customers that are not known are made with the budget that
// such customers get, before anyone is told that they have none.
func (c *Collector) subjects(ctx context.Context, names []string, customerBudget string) ([]store.Subject, error) {
	found, err := c.cfg.Store.Subjects(ctx, names)
	if err != nil || customerBudget == "" {
		return found, err
	}
	settings, err := json.Marshal(map[string]string{"budget_id": customerBudget})
	if err != nil {
		return nil, err
	}
	made := false
	for _, s := range found {
		id, customer := strings.CutPrefix(s.Name, customerPrefix)
		if s.Found || !customer {
			continue
		}
		err := c.cfg.Store.CreateEntities(ctx, []store.Entity{
			{Kind: store.KindCustomer, ID: id, SettingsJSON: string(settings), CreatedBy: "max_end_user_budget_id"},
		})
		if err != nil && !errors.Is(err, store.ErrConflict) { // another request made it
			return nil, c.unmade(ctx, err, customerBudget)
		}
		made = true
	}
	if !made {
		return found, nil
	}
	return c.cfg.Store.Subjects(ctx, names)
}

// unmade says why a customer could not be made.
func (c *Collector) unmade(ctx context.Context, err error, budget string) error {
	_, missing := c.cfg.Store.Entity(ctx, store.EntityName(store.KindTemplate, budget))
	if errors.Is(missing, store.ErrNotFound) {
		return invalidf("cannot make a customer: max_end_user_budget_id names no budget: %.60q", budget)
	}
	return err
}

func encodeSubjects(found []store.Subject) *ledgerv1.SubjectsResponse {
	resp := &ledgerv1.SubjectsResponse{Subjects: make([]*ledgerv1.Subject, len(found))}
	for i, s := range found {
		resp.Subjects[i] = &ledgerv1.Subject{
			Name: s.Name, Found: s.Found, Blocked: s.Blocked, Entities: slices.Clone(s.Entities), Limits: limitsOf(s.Name, s.SettingsJSON),
		}
	}
	return resp
}
