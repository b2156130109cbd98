package admin

import (
	"net/http"
	"net/url"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// maxRows is what one call shows at most: the newest.
const maxRows = 10_000

// spendLogs shows records, newest first. With both dates and summarize (the default)
// it shows sums by day.
func (a *api) spendLogs(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	warnUnused(w, r, "api_key", "user_id", "request_id", "start_date", "end_date", "summarize", "limit")
	q := r.URL.Query()
	filter, err := recordFilter(q)
	if err != nil {
		return nil, err
	}
	summarize, err := boolean(q, "summarize", "true")
	if err != nil {
		return nil, err
	}
	if summarize && !filter.From.IsZero() && filter.RequestID == "" {
		days, err := a.store.DailySpend(r.Context(), filter)
		if err != nil {
			return nil, err
		}
		return viewDays(days, filter), nil
	}
	records, err := a.store.Records(r.Context(), filter)
	if err != nil {
		return nil, err
	}
	if len(records) == filter.Limit {
		w.Header().Set("x-litellm-spend-logs-truncated", "true")
	}
	rows := make([]map[string]any, 0, len(records))
	for i := range records {
		rows = append(rows, viewRecord(&records[i]))
	}
	return rows, nil
}

func recordFilter(q url.Values) (store.RecordFilter, error) {
	f := store.RecordFilter{
		RequestID: q.Get("request_id"),
		KeyID:     hashFilter(q.Get("api_key")),
		UserID:    q.Get("user_id"),
	}
	var err error
	if f.Limit, err = number(q, "limit", maxRows, maxRows); err != nil {
		return f, err
	}
	start, end := q.Get("start_date"), q.Get("end_date")
	if (start == "") != (end == "") {
		return f, badField("start_date", "and end_date go together")
	}
	if start == "" {
		return f, nil
	}
	if f.From, _, err = parseDate("start_date", start); err != nil {
		return f, err
	}
	if _, f.To, err = parseDate("end_date", end); err != nil {
		return f, err
	}
	if !f.From.Before(f.To) {
		return f, badField("end_date", "lies before start_date")
	}
	return f, nil
}

// parseDate reads a day or an instant (UTC where it says nothing else) as the time it
// begins and the time after it. An end_date that is a day includes that day.
func parseDate(field, s string) (from, to time.Time, err error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil && inRange(t) {
		return t, t.AddDate(0, 0, 1), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil && inRange(t) {
			return t, t.Add(time.Microsecond), nil
		}
	}
	return from, to, badField(field, "must be a date such as 2026-01-31")
}

func inRange(t time.Time) bool { return t.Year() >= 1970 && t.Year() <= 9998 }

// viewRecord is a record in the API's field names, with what only this gateway knows
// beside them.
func viewRecord(r *store.Record) map[string]any {
	return map[string]any{
		"request_id":           r.RequestID,
		"call_type":            r.CallType,
		"api_key":              r.KeyID,
		"spend":                dollars(r.Cost),
		"total_tokens":         r.Usage.Input + r.Usage.Output,
		"prompt_tokens":        r.Usage.Input,
		"completion_tokens":    r.Usage.Output,
		"startTime":            timeOrNull(r.Start),
		"endTime":              timeOrNull(r.End),
		"completionStartTime":  timeOrNull(r.FirstToken),
		"model":                r.Model,
		"model_id":             r.ModelID,
		"model_group":          r.RequestedModel,
		"custom_llm_provider":  r.Provider,
		"api_base":             r.APIBase,
		"user":                 r.UserID,
		"team_id":              orNull(r.TeamID),
		"organization_id":      orNull(r.OrganizationID),
		"end_user":             r.EndUser,
		"requester_ip_address": orNull(r.ClientIP),
		"metadata":             viewMetadata(r),
		"request_tags":         notNil(r.Tags),
		"cache_hit":            "False",
		"cache_key":            "",
		"messages":             struct{}{},
		"response":             struct{}{},
		"status":               string(r.Status),

		"stream":        r.Stream,
		"http_status":   r.HTTPStatus,
		"error_code":    orNull(r.ErrorCode),
		"hold":          dollars(r.Hold),
		"overrun":       dollars(overrun(r)),
		"attempts":      r.Attempts,
		"estimated":     r.Estimated,
		"price_version": orNull(r.PriceVersion),
		"unpriced":      r.Unpriced(),
		"upstream_id":   orNull(r.UpstreamID),
		"output_cap":    r.OutputCap,
		"seq":           r.Seq,

		"spend_before_correction": correctedFrom(r),
	}
}

// viewMetadata repeats who paid, where dashboards look for it.
func viewMetadata(r *store.Record) map[string]any {
	return map[string]any{
		"user_api_key":         r.KeyID,
		"user_api_key_alias":   orNull(r.KeyAlias),
		"user_api_key_user_id": orNull(r.UserID),
		"user_api_key_team_id": orNull(r.TeamID),
		"user_api_key_org_id":  orNull(r.OrganizationID),
		"status":               string(r.Status),
		"usage_object": map[string]any{
			"prompt_tokens":     r.Usage.Input,
			"completion_tokens": r.Usage.Output,
			"total_tokens":      r.Usage.Input + r.Usage.Output,
			"prompt_tokens_details": map[string]any{
				"cached_tokens":         r.Usage.Cached,
				"cache_creation_tokens": r.Usage.CacheWrite,
			},
			"completion_tokens_details": map[string]any{"reasoning_tokens": r.Usage.Reasoning},
		},
	}
}

// correctedFrom is what the record cost before an administrator corrected it, or null.
func correctedFrom(r *store.Record) any {
	if r.CorrectedFrom == nil {
		return nil
	}
	return dollars(*r.CorrectedFrom)
}

// overrun is the most that was booked beyond a hold on any of the record's budgets.
func overrun(r *store.Record) int64 {
	var most int64
	for _, c := range r.Charges {
		most = max(most, c.Overrun)
	}
	return most
}

// day sums one day.
type day struct {
	spend, requests, prompt, completion int64
	models, keys                        map[string]int64
}

// viewDays is the sums by day: spend, by key at the top level and by model below.
func viewDays(rows []store.DaySpend, f store.RecordFilter) []map[string]any {
	days := map[string]*day{}
	var order []string
	for _, row := range rows {
		date := row.Day.UTC().Format(time.DateOnly)
		d := days[date]
		if d == nil {
			d = &day{models: map[string]int64{}, keys: map[string]int64{}}
			days[date] = d
			order = append(order, date)
		}
		d.spend += row.Cost
		d.requests += row.Requests
		d.prompt += row.Usage.Input
		d.completion += row.Usage.Output
		d.models[row.Model] += row.Cost
		d.keys[row.KeyID] += row.Cost
	}
	out := make([]map[string]any, 0, len(order))
	for _, date := range order {
		out = append(out, viewDay(date, days[date], f.UserID))
	}
	return out
}

func viewDay(date string, d *day, userID string) map[string]any {
	models := map[string]any{}
	for name, nano := range d.models {
		models[name] = dollars(nano)
	}
	// Sums are not kept by user; where one user was asked for, all is theirs.
	users := map[string]any{}
	if userID != "" {
		users[userID] = dollars(d.spend)
	}
	view := map[string]any{}
	for id, nano := range d.keys {
		view[id] = dollars(nano)
	}
	view["startTime"] = date
	view["spend"] = dollars(d.spend)
	view["users"] = users
	view["models"] = models
	view["api_requests"] = d.requests
	view["prompt_tokens"] = d.prompt
	view["completion_tokens"] = d.completion
	view["total_tokens"] = d.prompt + d.completion
	return view
}
