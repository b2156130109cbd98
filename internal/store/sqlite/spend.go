package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

const recordColumns = `start_ts, request_id, seq, key_id, key_alias, user_id, team_id, organization_id, end_user, tags,
	call_type, requested_model, model, model_id, provider, api_base, end_ts, first_token_ts, stream, status, http_status, error_code,
	input, output, cached, cache_write, reasoning, cost, hold, charges, attempts, estimated, price_version, upstream_id, client_ip, output_cap`

const recordMarks = `?,?,?,?,?,?,?,?,?,?, ?,?,?,?,?,?,?,?,?,?,?,?, ?,?,?,?,?,?,?,?,?,?,?,?,?,?`

// insertRecord writes one record, or its dead letter when it cannot stand among
// the others.
func (t *tx) insertRecord(holder store.HolderID, r *store.Record) error {
	reason := r.Defect()
	if reason == "" {
		err := t.exec(`INSERT INTO spend_records (holder, `+recordColumns+`) VALUES (?, `+recordMarks+`)`,
			append([]any{holder}, recordValues(r)...)...)
		if err == nil || !constraint(err) {
			return err
		}
		reason = err.Error() // a failed statement leaves the transaction as it was
	}
	return t.bury(holder, r, reason)
}

// bury writes a dead letter.
func (t *tx) bury(holder store.HolderID, r *store.Record, reason string) error {
	return t.writeLetter(holder, r, reason, r.Payload())
}

func (t *tx) writeLetter(holder store.HolderID, r *store.Record, reason, payload string) error {
	return t.exec(`INSERT INTO dead_letters (holder, seq, request_id, reason, payload, at, booked) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		holder, int64(r.Seq), r.RequestID, reason, payload, micros(t.now), text(r.Booked()))
}

func recordValues(r *store.Record) []any {
	return []any{
		r.Start.UnixMicro(), r.RequestID, int64(r.Seq), r.KeyID, r.KeyAlias, r.UserID, r.TeamID, r.OrganizationID, r.EndUser, text(r.Tags),
		r.CallType, r.RequestedModel, r.Model, r.ModelID, r.Provider, r.APIBase, r.End.UnixMicro(), micros(r.FirstToken), r.Stream, r.Status, r.HTTPStatus, r.ErrorCode,
		r.Usage.Input, r.Usage.Output, r.Usage.Cached, r.Usage.CacheWrite, r.Usage.Reasoning, r.Cost, r.Hold, text(r.Charges), r.Attempts, r.Estimated, r.PriceVersion, r.UpstreamID, r.ClientIP, r.OutputCap,
	}
}

// text is a list or map as a JSON column.
func text(v any) string {
	b, _ := json.Marshal(v) // strings, integers, lists and maps of them: cannot fail
	return string(b)
}

// addDays adds records to the daily sums.
func (t *tx) addDays(records []store.Record) error {
	keys, sums := store.DaySums(records)
	for _, k := range keys {
		d := sums[k]
		if err := t.exec(`INSERT INTO spend_daily AS s (day, key_id, user_id, team_id, organization_id, model,
			requests, input, output, cached, cache_write, reasoning, cost) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)
			ON CONFLICT DO UPDATE SET requests = s.requests + excluded.requests, input = s.input + excluded.input,
			output = s.output + excluded.output, cached = s.cached + excluded.cached, cache_write = s.cache_write + excluded.cache_write,
			reasoning = s.reasoning + excluded.reasoning, cost = s.cost + excluded.cost`,
			k.Day, k.KeyID, k.UserID, k.TeamID, k.OrgID, k.Model,
			d.Requests, d.Usage.Input, d.Usage.Output, d.Usage.Cached, d.Usage.CacheWrite, d.Usage.Reasoning, d.Cost); err != nil {
			return err
		}
	}
	return nil
}

// where collects conditions and their values.
type where struct {
	conds []string
	args  []any
}

func (w *where) equal(column, value string) {
	if value != "" {
		w.add(column+" = ?", value)
	}
}

func (w *where) add(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
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
		w.add("start_ts >= ?", micros(f.From))
	}
	if !f.To.IsZero() {
		w.add("start_ts < ?", micros(f.To))
	}
	return w
}

// Records implements store.Spend.
func (s *Store) Records(ctx context.Context, f store.RecordFilter) ([]store.Record, error) {
	w := filtered(f)
	if !f.BeforeStart.IsZero() {
		w.add("(start_ts, request_id) < (?, ?)", micros(f.BeforeStart), f.BeforeID)
	}
	rows, err := s.read.QueryContext(ctx, `SELECT holder, `+recordColumns+`, corrected_from FROM spend_records`+w.String()+
		` ORDER BY start_ts DESC, request_id DESC LIMIT ?`, append(w.args, store.RecordLimit(f.Limit))...)
	if err != nil {
		return nil, failure("read records", err)
	}
	defer rows.Close()
	var out []store.Record
	for rows.Next() {
		r, err := scanCandidate(rows)
		if err != nil {
			return nil, failure("read records", err)
		}
		out = append(out, r.Record)
	}
	return out, failure("read records", rows.Err())
}

func scanCandidate(rows *sql.Rows) (store.Candidate, error) {
	var r store.Candidate
	var start, end, first sql.NullInt64
	var tags, charges string
	if err := rows.Scan(&r.Holder, &start, &r.RequestID, &r.Seq, &r.KeyID, &r.KeyAlias, &r.UserID, &r.TeamID, &r.OrganizationID, &r.EndUser, &tags,
		&r.CallType, &r.RequestedModel, &r.Model, &r.ModelID, &r.Provider, &r.APIBase, &end, &first, &r.Stream, &r.Status, &r.HTTPStatus, &r.ErrorCode,
		&r.Usage.Input, &r.Usage.Output, &r.Usage.Cached, &r.Usage.CacheWrite, &r.Usage.Reasoning, &r.Cost, &r.Hold, &charges, &r.Attempts, &r.Estimated, &r.PriceVersion, &r.UpstreamID, &r.ClientIP, &r.OutputCap, &r.CorrectedFrom); err != nil {
		return r, err
	}
	r.Start, r.End, r.FirstToken = timeOf(start), timeOf(end), timeOf(first)
	if err := json.Unmarshal([]byte(tags), &r.Tags); err != nil {
		return r, err
	}
	return r, json.Unmarshal([]byte(charges), &r.Charges)
}

// DailySpend implements store.Spend. Whole days come from the daily sums, which
// hold dead letters too; anything finer is added up from the records.
func (s *Store) DailySpend(ctx context.Context, f store.RecordFilter) ([]store.DaySpend, error) {
	day, requests, from, w := "day", "sum(requests)", "spend_daily", &where{}
	if f.WholeDays() {
		w.equal("key_id", f.KeyID)
		w.equal("user_id", f.UserID)
		if !f.From.IsZero() {
			w.add("day >= ?", f.From.UTC().Format(time.DateOnly))
		}
		if !f.To.IsZero() {
			w.add("day < ?", f.To.UTC().Format(time.DateOnly))
		}
	} else {
		day, requests, from, w = "date(start_ts / 1000000, 'unixepoch')", "count(*)", "spend_records", filtered(f)
	}
	rows, err := s.read.QueryContext(ctx, `SELECT `+day+` AS d, key_id, model, `+requests+`, sum(input), sum(output), sum(cached), sum(cache_write), sum(reasoning), sum(cost)
		FROM `+from+w.String()+` GROUP BY d, key_id, model ORDER BY d, key_id, model`, w.args...)
	if err != nil {
		return nil, failure("read daily spend", err)
	}
	defer rows.Close()
	var out []store.DaySpend
	for rows.Next() {
		var d store.DaySpend
		var day string
		if err := rows.Scan(&day, &d.KeyID, &d.Model, &d.Requests, &d.Usage.Input, &d.Usage.Output, &d.Usage.Cached, &d.Usage.CacheWrite, &d.Usage.Reasoning, &d.Cost); err != nil {
			return nil, failure("read daily spend", err)
		}
		if d.Day, err = time.Parse(time.DateOnly, day); err != nil {
			return nil, failure("read daily spend", err)
		}
		out = append(out, d)
	}
	return out, failure("read daily spend", rows.Err())
}
