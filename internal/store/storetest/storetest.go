// Package storetest is the one suite that every store.Store must pass. After each
// step that moves money it looks into the database behind the store's back and
// asserts the law: spent − overrun + leased ≤ limit in every budget row.
package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/store"
)

// Subject is a store under test over an empty database.
type Subject struct {
	Store store.Store
	// Query runs SQL in the same database; a row is its columns joined by "|".
	Query func(ctx context.Context, sql string) ([]string, error)
}

// Run runs the suite; open makes a subject of its own for each test.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	tests := []test{
		{"grant/numbered and replayed", grantNumbers},
		{"grant/all entities or none", grantAllOrNone},
		{"grant/partial", grantPartial},
		{"grant/renew first", grantRenewFirst},
		{"grant/exact under contention", grantContention},
		{"grant/next period", grantNextPeriod},
		{"grant/next period under contention", grantNextPeriodContention},
		{"commit/gap and replay", commitReplay},
		{"commit/poison", commitPoison},
		{"commit/unknown lease", commitUnknownLease},
		{"commit/concurrent holders", commitConcurrent},
		{"lease/return", leaseReturn},
		{"lease/trim", leaseTrim},
		{"holder/reap", holderReap},
		{"holder/reap after overrun", holderReapOverrun},
		{"holder/late records of a lost lease", holderLateRecords},
		{"holder/close", holderClose},
		{"keys/round trip", keysRoundTrip},
		{"keys/conflicts and absence", keysConflicts},
		{"keys/names that cannot be stored", keysUnstorable},
		{"keys/patch", keysPatch},
		{"keys/settings", keysSettings},
		{"keys/budget comes and goes", keysBudget},
		{"keys/spend is set", keysSetSpend},
		{"keys/pages", keysPages},
		{"keys/changes", keysChanges},
		{"keys/bad values", keysBadValues},
		{"spend/records", spendRecords},
		{"spend/pages", spendPages},
		{"spend/days", spendDays},
		{"limits/numbered and replayed", limitsNumbers},
		{"limits/all or nothing", limitsAllOrNothing},
		{"limits/returns", limitsReturns},
		{"limits/exact under contention", limitsContention},
		{"limits/dead holder", limitsDeadHolder},
		{"limits/odd rows", limitsOddRows},
		{"limits/old rows", limitsMaintain},
		{"maintain", maintain},
		{"stuck/fence", stuckFence},
		{"stuck/bury", stuckBury},
		{"correct/lost charge", correctLost},
		{"correct/record", correctRecord},
		{"correct/late record", correctLate},
		{"correct/refused", correctRefuses},
		{"correct/together", correctTogether},
		{"verify/explained", verifyExplained},
		{"verify/damage", verifyDamage},
		{"verify/the law", verifyLaw},
		{"verify/since a day", verifySince},
		{"verify/live", verifyLive},
	}
	for _, c := range slices.Concat(tests, directoryTests) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			c.run(&env{T: t, Store: s.Store, query: s.Query, ctx: t.Context(), holder: "pod/0/aa"})
		})
	}
}

// test is one test of the suite.
type test struct {
	name string
	run  func(*env)
}

// env is one test's store with shorthands; each fails the test by itself.
type env struct {
	*testing.T
	store.Store
	query  func(context.Context, string) ([]string, error)
	ctx    context.Context
	holder store.HolderID
}

const (
	cent = int64(10_000_000) // nano-dollars
	usd  = 100 * cent
)

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func equal[T comparable](e *env, what string, got, want T) {
	e.Helper()
	if got != want {
		e.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// sql asks the database itself.
func (e *env) sql(q string, args ...any) string {
	e.Helper()
	rows, err := e.query(e.ctx, fmt.Sprintf(q, args...))
	e.ok(err)
	return strings.Join(rows, "\n")
}

// lawful asserts law 2 and that no amount makes no sense.
func (e *env) lawful() {
	e.Helper()
	if bad := e.sql(`SELECT id, limit_n, spent, overrun, leased, lost FROM budgets WHERE spent - overrun + leased > limit_n
		OR overrun < 0 OR leased < 0 OR lost < 0 OR spent < overrun`); bad != "" {
		e.Fatalf("a budget breaks the law (id|limit|spent|overrun|leased|lost): %s", bad)
	}
	if bad := e.sql(`SELECT b.id, b.leased FROM budgets b WHERE b.leased <>
		(SELECT coalesce(sum(l.granted), 0) FROM leases l WHERE l.budget = b.id AND l.state = 'open')`); bad != "" {
		e.Fatalf("leased is not the sum of open leases (id|leased): %s", bad)
	}
}

// budget is spent|overrun|leased|lost of an entity's current row.
func (e *env) budget(entity string) string {
	e.Helper()
	return e.sql(`SELECT spent, overrun, leased, lost FROM budgets WHERE current AND entity = '%s'`, entity)
}

// beat makes the test's holder live for an hour.
func (e *env) beat() store.HolderState {
	e.Helper()
	return e.beatFor(e.holder, time.Hour)
}

func (e *env) beatFor(h store.HolderID, ttl time.Duration) store.HolderState {
	e.Helper()
	st, err := e.Heartbeat(e.ctx, []store.HolderID{h}, ttl)
	e.ok(err)
	return st[0]
}

// key makes a key with a budget and returns its id and entity.
func (e *env) key(name string, limit int64) (id, entity string) {
	e.Helper()
	id = keyID(name)
	e.ok(e.CreateKey(e.ctx, store.Key{ID: id, Name: "sk-..." + name, MaxBudget: &limit, CreatedBy: "admin"}))
	return id, store.KeyEntity(id)
}

func keyID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

// grant asks for one want and checks the law.
func (e *env) grant(seq uint64, amount int64, entities ...string) store.GrantResult {
	e.Helper()
	res, err := e.Grant(e.ctx, store.Grant{Holder: e.holder, Seq: seq, Wants: []store.Want{{Entities: entities, Amount: amount}}})
	e.ok(err)
	e.lawful()
	return res
}

// lease grants one lease and fails when it is refused.
func (e *env) lease(seq uint64, amount int64, entity string) store.LeaseRef {
	e.Helper()
	res := e.grant(seq, amount, entity)
	if len(res.Leases) != 1 || res.Leases[0].Granted != amount {
		e.Fatalf("grant %d: got %+v, want one lease of %d", seq, res, amount)
	}
	return res.Leases[0].LeaseRef
}

// commit commits records that must be taken and checks the law.
func (e *env) commit(records ...store.Record) uint64 {
	e.Helper()
	last, err := e.Commit(e.ctx, e.holder, records)
	e.ok(err)
	e.lawful()
	return last
}

var start = time.Date(2026, 3, 14, 15, 9, 26, 535_000_000, time.UTC)

// record is a finished request that cost something of a lease.
func record(seq uint64, key string, cost, overrun int64, refs ...store.LeaseRef) store.Record {
	r := store.Record{
		Seq: seq, RequestID: fmt.Sprintf("req-%04d", seq), KeyID: key, UserID: "u1", Model: "gpt-x", CallType: "chat_completion",
		Start: start.Add(time.Duration(seq) * time.Second), End: start.Add(time.Duration(seq+1) * time.Second), Status: store.StatusSuccess, HTTPStatus: 200,
		Usage: money.Usage{Input: 10, Output: 2}, Cost: cost, Hold: cost - overrun, Attempts: 1,
	}
	for _, ref := range refs {
		r.Charges = append(r.Charges, store.LeaseCharge{LeaseRef: ref, Cost: cost, Overrun: overrun})
	}
	return r
}
