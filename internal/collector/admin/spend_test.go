package admin_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/store"
)

const holder = store.HolderID("pod/0/000102030405060708090a0b0c0d0e0f")

// book commits two records of one key, a day apart, and one of another.
func book(t *testing.T, b *bundle, keyID string) time.Time {
	t.Helper()
	day := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	rec := func(seq uint64, id, key string, start time.Time, cost int64) store.Record {
		return store.Record{
			Seq: seq, RequestID: id, KeyID: key, KeyAlias: "alias", UserID: "u1", EndUser: "end", Tags: []string{"prod"},
			CallType: "chat_completion", RequestedModel: "fast", Model: "gpt-4o", ModelID: "dep-1", Provider: "openai",
			APIBase: "https://api.example.com/v1", Start: start, End: start.Add(time.Second), FirstToken: start.Add(100 * time.Millisecond),
			Stream: true, Status: store.StatusSuccess, HTTPStatus: 200, Usage: money.Usage{Input: 10, Output: 5, Cached: 4, Reasoning: 2},
			Cost: cost, Hold: 2 * cost, Attempts: 1, PriceVersion: "v1", UpstreamID: "chatcmpl-1", OutputCap: 16,
		}
	}
	_, err := b.store.Commit(t.Context(), holder, []store.Record{
		rec(1, "req-1", keyID, day, 30_000_000),
		rec(2, "req-2", keyID, day.AddDate(0, 0, 1), 10_000_001),
		rec(3, "req-3", strings.Repeat("f", 64), day, 5),
	})
	if err != nil {
		t.Fatal(err)
	}
	return day
}

func rowsOf(t *testing.T, a answer) []map[string]any {
	t.Helper()
	var rows []map[string]any
	dec := json.NewDecoder(strings.NewReader(a.raw))
	dec.UseNumber()
	if err := dec.Decode(&rows); err != nil {
		t.Fatalf("not a list: %v\n%s", err, a.raw)
	}
	return rows
}

func TestSpendLogs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := b.ok("POST", "/key/generate", `{"key_alias":"k"}`)
	book(t, b, str(key.body["token"]))

	cases := []struct {
		why, query string
		ids        string // in order
	}{
		{"all, newest first", "", "req-2 req-3 req-1"},
		{"by key", "api_key=" + str(key.body["key"]), "req-2 req-1"},
		{"by hash", "api_key=" + str(key.body["token"]), "req-2 req-1"},
		{"by user", "user_id=u1", "req-2 req-3 req-1"},
		{"of nobody", "user_id=u2", ""},
		{"by request", "request_id=req-1", "req-1"},
		{"the end date is included", "start_date=2026-03-05&end_date=2026-03-05&summarize=false", "req-2"},
		{"instants", "start_date=2026-03-04T12:00:00Z&end_date=" + url.QueryEscape("2026-03-04 12:00:00") + "&summarize=false", "req-3 req-1"},
		{"newest", "limit=1", "req-2"},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			var ids []string
			for _, row := range rowsOf(t, b.ok("GET", "/spend/logs?"+c.query, "")) {
				ids = append(ids, str(row["request_id"]))
			}
			if got := strings.Join(ids, " "); got != c.ids {
				t.Errorf("got %q, want %q", got, c.ids)
			}
		})
	}

	row := rowsOf(t, b.ok("GET", "/spend/logs?request_id=req-2", ""))[0]
	checkFields(t, row, map[string]string{
		"api_key": `"` + str(key.body["token"]) + `"`, "spend": "0.010000001", "total_tokens": "15", "prompt_tokens": "10",
		"completion_tokens": "5", "startTime": `"2026-03-05T12:00:00.000Z"`, "endTime": `"2026-03-05T12:00:01.000Z"`,
		"completionStartTime": `"2026-03-05T12:00:00.100Z"`, "model": `"gpt-4o"`, "model_id": `"dep-1"`, "model_group": `"fast"`,
		"custom_llm_provider": `"openai"`, "api_base": `"https://api.example.com/v1"`, "user": `"u1"`, "end_user": `"end"`,
		"request_tags": `["prod"]`, "cache_hit": `"False"`, "status": `"success"`, "call_type": `"chat_completion"`,
		"estimated": "false", "hold": "0.020000002", "attempts": "1", "output_cap": "16",
	})
	if got := b.ok("GET", "/spend/logs?limit=1", "").header.Get("x-litellm-spend-logs-truncated"); got != "true" {
		t.Errorf("a cut list is not marked: %q", got)
	}
}

func TestSpendSummary(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := b.ok("POST", "/key/generate", `{"key_alias":"k"}`)
	id := str(key.body["token"])
	book(t, b, id)
	days := rowsOf(t, b.ok("GET", "/spend/logs?start_date=2026-03-04&end_date=2026-03-05&api_key="+id, ""))
	if len(days) != 2 {
		t.Fatalf("two days, got %v", days)
	}
	checkFields(t, days[0], map[string]string{
		"startTime": `"2026-03-04"`, "spend": "0.03", id: "0.03", "models": `{"gpt-4o":0.03}`, "users": "{}", "api_requests": "1", "total_tokens": "15",
	})
	days = rowsOf(t, b.ok("GET", "/spend/logs?start_date=2026-03-04&end_date=2026-03-04&user_id=u1&summarize=true", ""))
	checkFields(t, days[0], map[string]string{"spend": "0.030000005", "users": `{"u1":0.030000005}`, "api_requests": "2"})
}

func TestSpendLogsBadQueries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ why, query, param string }{
		{"half a range", "start_date=2026-01-01", "start_date"},
		{"the other half", "end_date=2026-01-01", "start_date"},
		{"not a date", "start_date=yesterday&end_date=2026-01-01", "start_date"},
		{"no such day", "start_date=2026-01-01&end_date=2026-02-31", "end_date"},
		{"a year that no database knows", "start_date=0001-01-01&end_date=9999-12-31", "start_date"},
		{"backwards", "start_date=2026-01-02&end_date=2026-01-01", "end_date"},
		{"summarize", "summarize=maybe", "summarize"},
		{"limit", "limit=10001", "limit"},
	} {
		a := b.call("GET", "/spend/logs?"+c.query, "")
		if _, param, _ := errorOf(t, a); a.status != 400 || param != c.param {
			t.Errorf("%s: %d %s", c.why, a.status, a.raw)
		}
	}
}
