package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/penstock-gateway/penstock/internal/store"
)

// recordColumns are the columns of spend_records in the order of appendRecord.
var recordColumns = []string{
	"holder", "start_ts", "request_id", "seq", "key_id", "key_alias", "user_id", "team_id", "organization_id", "end_user", "tags",
	"call_type", "requested_model", "model", "model_id", "provider", "api_base", "end_ts", "first_token_ts", "stream", "status", "http_status", "error_code",
	"input", "output", "cached", "cache_write", "reasoning", "cost", "hold", "charges", "attempts", "estimated", "price_version", "upstream_id", "client_ip", "output_cap",
}

// readColumns are what scanCandidate reads.
var readColumns = strings.Join(recordColumns, ", ") + ", corrected_from"

func scanRecord(row pgx.CollectableRow) (store.Record, error) {
	r, err := scanCandidate(row)
	return r.Record, err
}

func scanCandidate(row pgx.CollectableRow) (store.Candidate, error) {
	var r store.Candidate
	var first *time.Time
	var status, charges string
	if err := row.Scan(&r.Holder, &r.Start, &r.RequestID, &r.Seq, &r.KeyID, &r.KeyAlias, &r.UserID, &r.TeamID, &r.OrganizationID, &r.EndUser, &r.Tags,
		&r.CallType, &r.RequestedModel, &r.Model, &r.ModelID, &r.Provider, &r.APIBase, &r.End, &first, &r.Stream, &status, &r.HTTPStatus, &r.ErrorCode,
		&r.Usage.Input, &r.Usage.Output, &r.Usage.Cached, &r.Usage.CacheWrite, &r.Usage.Reasoning, &r.Cost, &r.Hold, &charges, &r.Attempts, &r.Estimated, &r.PriceVersion, &r.UpstreamID, &r.ClientIP, &r.OutputCap, &r.CorrectedFrom); err != nil {
		return r, err
	}
	r.Start, r.End, r.FirstToken, r.Status = r.Start.UTC(), r.End.UTC(), timeOf(first), store.Status(status)
	return r, json.Unmarshal([]byte(charges), &r.Charges)
}

// where collects conditions and their values; "?" stands for a value.
type where struct {
	conds []string
	args  []any
}

func (w *where) equal(column, value string) {
	switch {
	case value == "":
	case !store.Storable(value):
		w.add("false")
	default:
		w.add(column+" = ?", value)
	}
}

func (w *where) add(cond string, args ...any) {
	for _, a := range args {
		w.args = append(w.args, a)
		cond = strings.Replace(cond, "?", fmt.Sprintf("$%d", len(w.args)), 1)
	}
	w.conds = append(w.conds, cond)
}

func (w *where) String() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

func filtered(f store.RecordFilter) *where {
	w := &where{}
	w.equal("request_id", f.RequestID)
	w.equal("key_id", f.KeyID)
	w.equal("user_id", f.UserID)
	if !f.From.IsZero() {
		w.add("start_ts >= ?", f.From)
	}
	if !f.To.IsZero() {
		w.add("start_ts < ?", f.To)
	}
	return w
}

// Records implements store.Spend.
func (s *Store) Records(ctx context.Context, f store.RecordFilter) ([]store.Record, error) {
	w := filtered(f)
	if !f.BeforeStart.IsZero() {
		w.add("(start_ts, request_id) < (?, ?)", f.BeforeStart, f.BeforeID)
	}
	sql := fmt.Sprintf(`SELECT %s FROM spend_records%s ORDER BY start_ts DESC, request_id DESC LIMIT %d`,
		readColumns, w, store.RecordLimit(f.Limit))
	var out []store.Record
	err := s.tx(ctx, "read records", func(t *tx) (err error) {
		out, err = query(t, scanRecord, sql, w.args...)
		return err
	})
	return out, err
}

// DailySpend implements store.Spend. Whole days come from the daily sums, which
// hold dead letters too; anything finer is added up from the records.
func (s *Store) DailySpend(ctx context.Context, f store.RecordFilter) ([]store.DaySpend, error) {
	day, requests, from, w := "(start_ts AT TIME ZONE 'UTC')::date", "count(*)", "spend_records", filtered(f)
	if f.WholeDays() {
		day, requests, from, w = "day", "sum(requests)", "spend_daily", wholeDays(f)
	}
	sql := fmt.Sprintf(`SELECT %s AS d, key_id, model, %s::bigint, sum(input)::bigint, sum(output)::bigint, sum(cached)::bigint,
		sum(cache_write)::bigint, sum(reasoning)::bigint, sum(cost)::bigint FROM %s%s GROUP BY d, key_id, model ORDER BY d, key_id, model`,
		day, requests, from, w)
	var out []store.DaySpend
	err := s.tx(ctx, "read daily spend", func(t *tx) (err error) {
		out, err = query(t, func(row pgx.CollectableRow) (store.DaySpend, error) {
			var d store.DaySpend
			err := row.Scan(&d.Day, &d.KeyID, &d.Model, &d.Requests, &d.Usage.Input, &d.Usage.Output, &d.Usage.Cached, &d.Usage.CacheWrite, &d.Usage.Reasoning, &d.Cost)
			return d, err
		}, sql, w.args...)
		return err
	})
	return out, err
}

func wholeDays(f store.RecordFilter) *where {
	w := &where{}
	w.equal("key_id", f.KeyID)
	w.equal("user_id", f.UserID)
	if !f.From.IsZero() {
		w.add("day >= ?::text::date", f.From.UTC().Format(time.DateOnly))
	}
	if !f.To.IsZero() {
		w.add("day < ?::text::date", f.To.UTC().Format(time.DateOnly))
	}
	return w
}
