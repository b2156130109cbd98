package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// A grant's number is answered once; a lost answer is found again, a refusal too.
func grantNumbers(e *env) {
	e.beat()
	_, a := e.key("a", usd)
	res := e.grant(1, 60*cent, a)
	equal(e, "first grant", res.Status, store.GrantOK)
	equal(e, "outcome", res.Results[0], store.WantResult{Outcome: store.Granted, Granted: 60 * cent})
	equal(e, "lease", res.Leases[0].State, store.LeaseOpen)
	equal(e, "entity", res.Leases[0].Entity, a)
	equal(e, "a period without end", res.Leases[0].UntilIn, 0)

	again := e.grant(1, 60*cent, a)
	equal(e, "the same number again", again.Status, store.GrantReplayed)
	equal(e, "its lease", again.Leases[0], res.Leases[0])
	equal(e, "nothing was leased twice", e.budget(a), fmt.Sprintf("0|0|%d|0", 60*cent))

	refused := e.grant(2, 50*cent, a)
	equal(e, "refused", refused.Results[0], store.WantResult{Outcome: store.Held, Entity: a, Limit: usd})
	again = e.grant(2, 10*cent, a)
	equal(e, "a refusal is stored too", again.Status, store.GrantReplayed)
	equal(e, "and has no lease", len(again.Leases), 0)

	_, err := e.Grant(e.ctx, store.Grant{Holder: e.holder, Seq: 4})
	if err == nil {
		e.Fatal("grant 4 was answered although grant 3 was never asked for")
	}
	for _, g := range []store.Grant{
		{Holder: e.holder, Seq: 0},
		{Holder: e.holder, Seq: 3, Wants: []store.Want{{Entities: []string{a}, Amount: -1}}},
	} {
		if _, err := e.Grant(e.ctx, g); err == nil {
			e.Fatalf("grant %+v was answered, want an error", g)
		}
	}
}

// One want takes from all its entities or from none, and the blame falls on the
// one that cannot pay.
func grantAllOrNone(e *env) {
	e.beat()
	_, rich := e.key("rich", 10*usd)
	_, poor := e.key("poor", cent)
	res, err := e.Grant(e.ctx, store.Grant{Holder: e.holder, Seq: 1, Wants: []store.Want{
		{Entities: []string{rich, poor}, Amount: 2 * cent},
		{Entities: []string{rich, "key:nobody"}, Amount: cent},
		{Entities: []string{rich, poor, rich}, Amount: cent},
	}})
	e.ok(err)
	e.lawful()
	equal(e, "first want", res.Results[0], store.WantResult{Outcome: store.Exceeded, Entity: poor, Limit: cent})
	equal(e, "second want", res.Results[1], store.WantResult{Outcome: store.UnknownEntity, Entity: "key:nobody"})
	equal(e, "third want", res.Results[2], store.WantResult{Outcome: store.Granted, Granted: cent})
	equal(e, "leases", len(res.Leases), 2)
	equal(e, "rich pays once for the one want that was granted", e.budget(rich), fmt.Sprintf("0|0|%d|0", cent))
}

// Min lets a smaller hold serve; Desired is met only while there is plenty.
func grantPartial(e *env) {
	e.beat()
	_, a := e.key("a", 10*cent)
	want := func(seq uint64, w store.Want) store.GrantResult {
		e.Helper()
		w.Entities = []string{a}
		res, err := e.Grant(e.ctx, store.Grant{Holder: e.holder, Seq: seq, Wants: []store.Want{w}})
		e.ok(err)
		e.lawful()
		return res
	}
	res := want(1, store.Want{Amount: 7 * cent, Min: cent, Desired: 7 * cent})
	equal(e, "no extra near the end", res.Leases[0].Granted, 7*cent)
	res = want(2, store.Want{Amount: 7 * cent, Min: 2 * cent})
	equal(e, "what is left", res.Results[0].Granted, 3*cent)
	res = want(3, store.Want{Amount: 7 * cent, Min: cent})
	equal(e, "all is held", res.Results[0].Outcome, store.Held)
	_, b := e.key("b", 100*usd)
	res, err := e.Grant(e.ctx, store.Grant{Holder: e.holder, Seq: 4, Wants: []store.Want{{Entities: []string{b}, Amount: cent, Desired: usd}}})
	e.ok(err)
	e.lawful()
	equal(e, "an extra while there is plenty", res.Leases[0].Granted, usd+cent)
}

// A holder that is unknown, expired or closed gets nothing, and nothing is recorded.
func grantRenewFirst(e *env) {
	_, a := e.key("a", usd)
	equal(e, "unknown holder", e.grant(1, cent, a).Status, store.GrantRenewFirst)
	e.beatFor(e.holder, -time.Second)
	equal(e, "expired holder", e.grant(1, cent, a).Status, store.GrantRenewFirst)
	e.beat()
	equal(e, "the number was not used", e.grant(1, cent, a).Status, store.GrantOK)
	done, err := e.CloseHolder(e.ctx, e.holder, 0)
	e.ok(err)
	equal(e, "closed", done, true)
	equal(e, "closed holder", e.grant(2, cent, a).Status, store.GrantRenewFirst)
	equal(e, "a closed holder is fenced", e.beat().Fenced, true)
}

// 200 requests of 0.03 at once on a budget of 1.00: exactly 33 are granted.
func grantContention(e *env) {
	_, a := e.key("a", usd)
	var granted, held atomic.Int32
	var wg sync.WaitGroup
	for w := range 20 { // workers, each with one grant outstanding
		h := store.HolderID(fmt.Sprintf("pod/%d/bb", w))
		e.beatFor(h, time.Hour)
		wg.Go(func() {
			for seq := uint64(1); seq <= 10; seq++ {
				res, err := e.Grant(e.ctx, store.Grant{Holder: h, Seq: seq, Wants: []store.Want{{Entities: []string{a}, Amount: 3 * cent, Desired: usd}}})
				if err != nil {
					e.Error(err)
					return
				}
				switch res.Results[0].Outcome {
				case store.Granted:
					granted.Add(1)
				case store.Held:
					held.Add(1)
				default:
					e.Errorf("outcome %v, want granted or held", res.Results[0].Outcome)
				}
			}
		})
	}
	wg.Wait()
	e.lawful()
	equal(e, "granted", granted.Load(), 33)
	equal(e, "held", held.Load(), 167)
	equal(e, "budget", e.budget(a), fmt.Sprintf("0|0|%d|0", 99*cent))
}

// A grant past the period's end makes the next row; leases stay with theirs.
func grantNextPeriod(e *env) {
	e.beat()
	limit := usd
	id := keyID("a")
	e.ok(e.CreateKey(e.ctx, store.Key{ID: id, MaxBudget: &limit, BudgetDuration: "1mo"}))
	a := store.KeyEntity(id)
	old := e.grant(1, 60*cent, a).Leases[0]
	if old.UntilIn < 27*24*time.Hour || old.UntilIn > 32*24*time.Hour {
		e.Fatalf("a month's lease ends in %v", old.UntilIn)
	}
	e.commit(record(1, id, 60*cent, 0, old.LeaseRef))
	refused := e.grant(2, 60*cent, a).Results[0]
	equal(e, "the old period is spent", refused.Outcome, store.Exceeded)
	equal(e, "reported spend", refused.Spent, 60*cent)
	if refused.Reset.IsZero() {
		e.Fatal("a refusal does not tell the reset time")
	}
	e.sql(`UPDATE budgets SET until_ts = from_ts`)
	k, err := e.Key(e.ctx, id)
	e.ok(err)
	equal(e, "a period that is over is spent nothing", k.Spend, 0)

	next := e.grant(3, 60*cent, a)
	equal(e, "the new period pays", next.Results[0].Outcome, store.Granted)
	if next.Leases[0].Budget == old.Budget {
		e.Fatal("the new lease is of the old row")
	}
	equal(e, "one current row", e.sql(`SELECT count(*) FROM budgets WHERE current`), "1")
	_, err = e.Return(e.ctx, e.holder, []store.ReturnLease{{LeaseRef: old.LeaseRef, After: 1}})
	e.ok(err)
	e.lawful()
	equal(e, "the old lease settles in its own row", e.sql(`SELECT spent, leased FROM budgets WHERE id = %d`, old.Budget), fmt.Sprintf("%d|0", 60*cent))
	equal(e, "and not in the new one", e.budget(a), fmt.Sprintf("0|0|%d|0", 60*cent))
}

// Many holders meet two budgets whose periods are over: each gets one successor,
// and nobody is refused for it.
func grantNextPeriodContention(e *env) {
	limit := usd
	var entities []string
	for _, name := range []string{"a", "b"} {
		e.ok(e.CreateKey(e.ctx, store.Key{ID: keyID(name), MaxBudget: &limit, BudgetDuration: "24h"}))
		entities = append(entities, store.KeyEntity(keyID(name)))
	}
	e.sql(`UPDATE budgets SET until_ts = from_ts`)
	var wg sync.WaitGroup
	for w := range 8 {
		h := store.HolderID(fmt.Sprintf("pod/%d/dd", w))
		e.beatFor(h, time.Hour)
		wants := []store.Want{{Entities: []string{entities[w%2], entities[1-w%2]}, Amount: cent}}
		if w%3 == 0 {
			wants[0].Entities = wants[0].Entities[:1]
		}
		wg.Go(func() {
			res, err := e.Grant(e.ctx, store.Grant{Holder: h, Seq: 1, Wants: wants})
			if err != nil || res.Results[0].Outcome != store.Granted {
				e.Errorf("holder %s: %+v, %v; want a lease", h, res, err)
			}
		})
	}
	wg.Wait()
	e.lawful()
	equal(e, "rows, current ones", e.sql(`SELECT count(*), (SELECT count(*) FROM budgets WHERE current) FROM budgets`), "4|2")
	equal(e, "leased", e.sql(`SELECT sum(leased) FROM budgets WHERE current`), fmt.Sprint(13*cent))
}
