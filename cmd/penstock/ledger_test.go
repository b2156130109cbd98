package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/sqlite"
)

const testHolder = store.HolderID("pod/0/000102030405060708090a0b0c0d0e0f")

// newLedgerFile makes a ledger with one open lease, one that was charged as lost, and
// one interrupted request. It returns its file and the lost lease's name.
func newLedgerFile(t *testing.T) (file, lost string) {
	t.Helper()
	ctx, file := t.Context(), filepath.Join(t.TempDir(), "ledger.db")
	st, err := sqlite.Open(ctx, sqlite.Config{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	limit := int64(10e9)
	key := strings.Repeat("a", 64)
	must(st.CreateKey(ctx, store.Key{ID: key, Name: "sk-...aaaa", MaxBudget: &limit}))
	lease := func(seq uint64) store.LeaseRef {
		res, err := st.Grant(ctx, store.Grant{Holder: testHolder, Seq: seq, Wants: []store.Want{{Entities: []string{store.KeyEntity(key)}, Amount: 2e9}}})
		must(err)
		return res.Leases[0].LeaseRef
	}
	beat := func(ttl time.Duration) {
		_, err := st.Heartbeat(ctx, []store.HolderID{testHolder}, ttl)
		must(err)
	}
	beat(time.Hour)
	ref := lease(1)
	now := time.Now().UTC().Truncate(time.Microsecond)
	_, err = st.Commit(ctx, testHolder, []store.Record{{
		Seq: 1, RequestID: "req-cut", KeyID: key, Model: "gpt-4o", Start: now, End: now, Status: store.StatusInterrupted, Attempts: 1,
		Cost: 500e6, Hold: 500e6, PriceVersion: "v1", Charges: []store.LeaseCharge{{LeaseRef: ref, Cost: 500e6}},
	}})
	must(err)
	beat(-time.Minute)
	_, err = st.Reap(ctx, 0)
	must(err)
	beat(time.Hour)
	lease(2)
	return file, store.LeaseName(testHolder, ref)
}

// penstock runs the program and returns its output and status.
func penstock(ctx context.Context, args ...string) (out string, status int) {
	var text strings.Builder
	root := newRoot()
	root.SetOut(&text)
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		return text.String() + "penstock: " + err.Error(), exitStatus(err)
	}
	return text.String(), 0
}

func TestLedgerVerify(t *testing.T) {
	t.Parallel()
	file, lost := newLedgerFile(t)
	out, status := penstock(t.Context(), "ledger", "verify", "--sqlite", file)
	for _, want := range []string{
		"No differences", "open leases", "interrupted requests, at all that was held 1 0.5", lost, "req-cut", "penstock ledger correct --lease",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	if status != 0 {
		t.Errorf("everything is explained: status %d", status)
	}

	damage(t, file, "UPDATE budgets SET spent = spent - 5")
	out, status = penstock(t.Context(), "ledger", "verify", "--sqlite", file)
	if status != statusDifferences || !strings.Contains(out, "1 UNEXPLAINED DIFFERENCES") || !strings.HasSuffix(out, "the ledger has 1 unexplained difference") {
		t.Errorf("status %d:\n%s", status, out)
	}
	out, status = penstock(t.Context(), "ledger", "verify", "--sqlite", file, "--json")
	var report struct {
		Explained   bool
		Differences store.List[store.Difference]
		LostLeases  store.List[store.LeaseFinding] `json:"lost_leases"`
	}
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&report); err != nil || status != statusDifferences {
		t.Fatalf("status %d, %v:\n%s", status, err, out)
	}
	if d := report.Differences; report.Explained || d.Count != 1 || d.First[0].Field != "spent" || d.First[0].Have != d.First[0].Want-5 || report.LostLeases.Sum != 1500e6 {
		t.Errorf("got %+v", report)
	}
	tomorrow := time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly)
	if out, status = penstock(t.Context(), "ledger", "verify", "--sqlite", file, "--since", tomorrow); status != 0 {
		t.Errorf("nothing began tomorrow: status %d:\n%s", status, out)
	}
}

// What cannot be read is never taken for a difference.
func TestLedgerVerifyUnread(t *testing.T) {
	t.Parallel()
	file, _ := newLedgerFile(t)
	for _, c := range []struct {
		why  string
		args []string
		want string
	}{
		{"no such file", []string{"--sqlite", file + "x"}, "no such file"},
		{"not a ledger", []string{"--sqlite", "ledger_test.go"}, "cannot"},
		{"two of them", []string{"--sqlite", file, "--database-url", "postgres://h/d"}, "two ledgers"},
		{"not a URL", []string{"--database-url", "localhost:5432/x?password=secret"}, "want postgres://"},
		{"nobody there", []string{"--database-url", "postgres://postgres:secret@127.0.0.1:1/x"}, "cannot"},
		{"a day that is none", []string{"--sqlite", file, "--since", "yesterday"}, "--since"},
		{"a list of less than nothing", []string{"--sqlite", file, "--limit", "-1"}, "--limit"},
		{"a flag that is none", []string{"--sqlight", file}, "sqlight"},
		{"an argument", []string{"--sqlite", file, "now"}, "now"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			out, status := penstock(t.Context(), append([]string{"ledger", "verify"}, c.args...)...)
			if status != statusUnread || !strings.Contains(out, c.want) || strings.Contains(out, "secret") {
				t.Errorf("status %d: %s", status, out)
			}
		})
	}
}

func TestLedgerCorrect(t *testing.T) {
	t.Parallel()
	file, lost := newLedgerFile(t)
	correct := func(args ...string) (string, int) {
		return penstock(t.Context(), append([]string{"ledger", "correct", "--sqlite", file}, args...)...)
	}
	for _, c := range []struct {
		why  string
		args []string
		want string
		code int
	}{
		{"nothing named", nil, "at least one of the flags", 1},
		{"a cost is missing", []string{"--request-id", "req-cut"}, "cost", 1},
		{"not money", []string{"--request-id", "req-cut", "--cost", "-1"}, "--cost", 1},
		{"a request that is not there", []string{"--request-id", "x", "--cost", "1"}, "not found", 1},
		{"not a lease", []string{"--lease", "x"}, "holder/grant/budget", 1},
		{"the request", []string{"--request-id", "req-cut", "--cost", "0.2", "--reason", "invoice", "--by", "ann"}, "was 0.5 dollars, is 0.2", 0},
		{"the request again", []string{"--request-id", "req-cut", "--cost", "0.1"}, "corrected already", 1},
		{"the lease", []string{"--lease", lost, "--by", "ann"}, "lease:" + lost + ": was 1.5 dollars, is 0", 0},
		{"the lease again", []string{"--lease", lost}, "nothing is charged", 1},
	} {
		if out, code := correct(c.args...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: status %d: %s", c.why, code, out)
		}
	}
	if out, status := penstock(t.Context(), "ledger", "verify", "--sqlite", file); status != 0 {
		t.Errorf("corrections are explained: status %d:\n%s", status, out)
	}
}

// damage changes a ledger behind everybody's back.
func damage(t *testing.T, file, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
