package admin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// cut books an interrupted request on one lease of a budgeted key, and has another
// lease charged as lost, whose name it returns.
func cut(t *testing.T, b *bundle, keyID string) (lease string) {
	t.Helper()
	beat := func(ttl time.Duration) {
		t.Helper()
		if _, err := b.store.Heartbeat(t.Context(), []store.HolderID{holder}, ttl); err != nil {
			t.Fatal(err)
		}
	}
	beat(time.Hour)
	res, err := b.store.Grant(t.Context(), store.Grant{Holder: holder, Seq: 1, Wants: []store.Want{{Entities: []string{store.KeyEntity(keyID)}, Amount: 2e9}}})
	if err != nil || len(res.Leases) != 1 {
		t.Fatalf("%+v %v", res, err)
	}
	ref, now := res.Leases[0].LeaseRef, time.Now()
	if _, err := b.store.Commit(t.Context(), holder, []store.Record{{
		Seq: 1, RequestID: "req-cut", KeyID: keyID, Model: "m", Start: now, End: now, Status: store.StatusInterrupted, Attempts: 1,
		Cost: 5e8, Hold: 5e8, Charges: []store.LeaseCharge{{LeaseRef: ref, Cost: 5e8}},
	}}); err != nil {
		t.Fatal(err)
	}
	beat(-time.Minute)
	if _, err := b.store.Reap(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return store.LeaseName(holder, ref)
}

func TestSpendCorrect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := str(b.ok("POST", "/key/generate", `{"max_budget":10}`).body["token"])
	lease := cut(t, b, id)
	spent := func(want string) {
		t.Helper()
		info, _ := b.ok("GET", "/key/info?key="+id, "").body["info"].(map[string]any)
		checkFields(t, info, map[string]string{"spend": want})
	}
	spent("2") // the request and what was charged as lost
	row := rowsOf(t, b.ok("GET", "/spend/logs?request_id=req-cut", ""))[0]
	checkFields(t, row, map[string]string{"spend": "0.5", "spend_before_correction": "null", "unpriced": "true"})

	done := b.ok("POST", "/spend/correct", `{"request_id":"req-cut","spend":0.125,"reason":"invoice"}`, "litellm-changed-by", "ann")
	checkFields(t, done.body, map[string]string{"spend_before": "0.5", "spend": "0.125", "reason": `"invoice"`})
	row = rowsOf(t, b.ok("GET", "/spend/logs?request_id=req-cut", ""))[0]
	checkFields(t, row, map[string]string{"spend": "0.125", "spend_before_correction": "0.5"})
	done = b.ok("POST", "/spend/correct", `{"lease":"`+lease+`"}`)
	checkFields(t, done.body, map[string]string{"spend_before": "1.5", "spend": "0", "reason": "null"})
	spent("0.125")
}

func TestSpendCorrectRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := b.ok("POST", "/key/generate", `{"max_budget":10}`)
	lease := cut(t, b, str(key.body["token"]))
	b.ok("POST", "/spend/correct", `{"lease":"`+lease+`"}`)
	for _, c := range []struct {
		why, body string
		status    int
		param     string
	}{
		{"nothing", `{}`, 400, "request_id"},
		{"both", `{"request_id":"req-cut","lease":"` + lease + `"}`, 400, "request_id"},
		{"no cost", `{"request_id":"req-cut"}`, 400, "spend"},
		{"a cost of null", `{"request_id":"req-cut","spend":null}`, 400, "spend"},
		{"less than nothing", `{"request_id":"req-cut","spend":-1}`, 400, "spend"},
		{"more than a number", `{"request_id":"req-cut","spend":1e400}`, 400, "spend"},
		{"half a number", `{"request_id":"req-cut","spend":1,"seq":1}`, 400, ""},
		{"not a number", `{"request_id":"req-cut","spend":1,"seq":-1}`, 400, "seq"},
		{"a field that is none", `{"request_id":"req-cut","cost":1}`, 400, "cost"},
		{"a request that is not there", `{"request_id":"x","spend":1}`, 404, "request_id"},
		{"not a lease", `{"lease":"x"}`, 400, "lease"},
		{"a lease with a cost", `{"lease":"` + lease + `","spend":1}`, 400, "lease"},
		{"a lease that is not there", `{"lease":"x/1/1"}`, 404, "lease"},
		{"twice", `{"lease":"` + lease + `"}`, 409, "lease"},
	} {
		a := b.call("POST", "/spend/correct", c.body)
		if _, param, _ := errorOf(t, a); a.status != c.status || param != c.param {
			t.Errorf("%s: %d %s", c.why, a.status, a.raw)
		}
	}
	if a := send(t, b.api, "POST", "/spend/correct", `{"lease":"`+lease+`"}`, "x-api-key", str(key.body["key"])); a.status != 403 {
		t.Errorf("a key corrects spend: %d %s", a.status, a.raw)
	}
	if strings.Contains(b.call("POST", "/spend/correct", `{"lease":"\u0000"}`).raw, "internal") {
		t.Error("NUL is an internal error")
	}
}
