package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

// maxTokens bounds a token count that goes into a sum.
const maxTokens int64 = 1e12

// Clean removes what no database takes as text: NUL bytes, and bytes that are
// not UTF-8 become U+FFFD.
func (r *Record) Clean() {
	for _, s := range []*string{
		&r.RequestID, &r.KeyID, &r.KeyAlias, &r.UserID, &r.TeamID, &r.OrganizationID, &r.EndUser,
		&r.CallType, &r.RequestedModel, &r.Model, &r.ModelID, &r.Provider, &r.APIBase, (*string)(&r.Status),
		&r.ErrorCode, &r.PriceVersion, &r.UpstreamID, &r.ClientIP,
	} {
		*s = CleanText(*s)
	}
	r.Tags = cleanAll(r.Tags) // a copy: the caller may send the batch again
}

// CleanText is Clean for one text.
func CleanText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 { // as nearly all are
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// Defect names why a record cannot stand among the others, or "". Such a record
// becomes a dead letter: it moves its money all the same.
func (r *Record) Defect() string {
	switch {
	case r.Cost < 0 || r.Cost > ledger.MaxCost:
		return fmt.Sprintf("cost %d is outside 0 to %d", r.Cost, ledger.MaxCost)
	case !plausible(r.Start) || !plausible(r.End) || !r.FirstToken.IsZero() && !plausible(r.FirstToken):
		return "a time is outside the years 1970 to 2200"
	case r.HTTPStatus < 0 || r.HTTPStatus > 999 || r.Attempts < 0 || r.Attempts > 1e6:
		return "http_status or attempts is not plausible"
	}
	if r.Hold < 0 || r.Hold > ledger.MaxCost {
		return fmt.Sprintf("hold %d is outside 0 to %d", r.Hold, ledger.MaxCost)
	}
	for _, n := range []int64{r.Usage.Input, r.Usage.Output, r.Usage.Cached, r.Usage.CacheWrite, r.Usage.Reasoning, r.OutputCap} {
		if n < 0 || n > maxTokens {
			return fmt.Sprintf("token count %d is outside 0 to %d", n, maxTokens)
		}
	}
	return ""
}

func plausible(t time.Time) bool {
	y := t.Year()
	return y >= 1970 && y <= 2200
}

// Charge applies the record's effect on the leases of its holder, which the
// caller read under its locks. It returns the changes of budgets by budget id. A
// charge whose lease is not there is ErrNoLease: money is never dropped in silence.
func (r *Record) Charge(leases map[LeaseRef]*ledger.Lease, changes map[int64]ledger.Delta) error {
	for _, c := range r.Charges {
		l := leases[c.LeaseRef]
		if l == nil {
			return fmt.Errorf("cannot charge record %d: lease %d of budget %d: %w", r.Seq, c.Seq, c.Budget, ErrNoLease)
		}
		d, err := l.Charge(c.Cost, c.Overrun)
		if err != nil {
			return err
		}
		if d != (ledger.Delta{}) {
			changes[c.Budget] = changes[c.Budget].Add(d)
		}
	}
	return nil
}

// RecordLimit is the number of records a page may have.
func RecordLimit(asked int) int {
	const most = 10_000
	if asked <= 0 || asked > most {
		return most
	}
	return asked
}

// WholeDays says whether the daily sums can answer the filter.
func (f RecordFilter) WholeDays() bool {
	midnight := func(t time.Time) bool { return t.IsZero() || t.UTC().Equal(t.UTC().Truncate(24*time.Hour)) }
	return f.RequestID == "" && midnight(f.From) && midnight(f.To)
}

// Storable says whether a text can stand in a database as it is. One that cannot
// names nothing there, so that a look-up needs no answer from the database.
func Storable(s string) bool { return CleanText(s) == s }

// Unpriced says whether the request went to a model without a price, so that its cost
// of 0 is not known to be right. A key with a budget cannot use such a model.
func (r *Record) Unpriced() bool { return r.PriceVersion == "" && r.Attempts > 0 }

// Payload is the record as a dead letter keeps it: JSON, or Go's notation where a
// time is beyond what JSON can say.
func (r *Record) Payload() string {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Sprintf("%+v", *r)
	}
	return string(b)
}
