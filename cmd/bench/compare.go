package main

import (
	"context"
	"strings"

	"github.com/penstock-gateway/penstock/test/stack"
)

// compare holds the records of a key against the upstream's ledger, row for row, and
// its budget against both.
func (o *smokeOptions) compare(ctx context.Context, r *report, s *stack.Stack, key string) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	books, err := s.AwaitBooks(ctx, key)
	if books == nil {
		r.fail("records arrive and leases return", err)
		return
	}
	c := books.Compare()
	r.check("records arrive and leases return", err == nil, "%s", text(err))
	r.check("every request has one record", int64(len(books.Keys[0].Records)) == o.requests, "%d of %d", len(books.Keys[0].Records), o.requests)
	r.check("the upstream served as many", int64(c.Dispatches) == o.requests && complete(books), "%d", c.Dispatches)
	r.check("all records are exact, row for row", int64(c.Exact) == o.requests, "%d of %d", c.Exact, o.requests)
	r.check("requests, upstream, records and the budget agree", len(c.Differences) == 0, "%d differences %s", len(c.Differences), first(c.Differences))
}

// complete says whether the upstream sent every answer to its end.
func complete(books *stack.Books) bool {
	for _, e := range books.Served {
		if !e.Complete {
			return false
		}
	}
	return true
}

// first are the first few.
func first(differences []stack.Difference) string {
	var all []string
	for _, d := range differences[:min(3, len(differences))] {
		all = append(all, d.String())
	}
	return strings.Join(all, "; ")
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
