package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

// SubjectKey is what spend_subjects adds up by.
type SubjectKey struct {
	Subject string // "customer:<id>" or "tag:<name>"
	Day     string // YYYY-MM-DD, UTC
}

// SubjectSums adds records up by customer and by tag, in an order that is the same in
// every transaction.
func SubjectSums(records []Record) ([]SubjectKey, map[SubjectKey]*DaySpend) {
	sums := make(map[SubjectKey]*DaySpend)
	var keys []SubjectKey
	for i := range records {
		r := &records[i]
		day := r.Start.UTC().Format(time.DateOnly)
		if !plausible(r.Start) {
			day = "1970-01-01"
		}
		for _, subject := range r.subjects() {
			k := SubjectKey{subject, day}
			s := sums[k]
			if s == nil {
				s = &DaySpend{}
				sums[k] = s
				keys = append(keys, k)
			}
			s.Requests++
			s.Cost += min(max(r.Cost, 0), ledger.MaxCost)
			addUsage(&s.Usage, r.Usage)
		}
	}
	slices.SortFunc(keys, func(a, b SubjectKey) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), strings.Compare(a.Day, b.Day))
	})
	return keys, sums
}

// maxSummedTags bounds the tags of one record that are added up.
const maxSummedTags = 20

// subjects are the customer and the tags of a record.
func (r *Record) subjects() []string {
	var names []string
	if r.EndUser != "" {
		names = append(names, clip(EntityName(KindCustomer, r.EndUser)))
	}
	for _, tag := range r.Tags {
		name := clip(EntityName(KindTag, tag))
		if tag != "" && !slices.Contains(names, name) && len(names) <= maxSummedTags {
			names = append(names, name)
		}
	}
	return names
}
