package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// rate is an ask for a limit of requests.
func rate(subject string, limit int64) ledger.LimitAsk {
	return ledger.LimitAsk{Subject: subject, Kind: ledger.LimitRequests, Limit: limit}
}

func slots(subject string, limit, have int64) ledger.LimitAsk {
	return ledger.LimitAsk{Subject: subject, Kind: ledger.LimitParallel, Limit: limit, Have: have}
}

// need is a want of the same amount of every ask.
func need(amount int64, asks ...int) ledger.LimitWant {
	var w ledger.LimitWant
	for _, a := range asks {
		w = append(w, ledger.LimitNeed{Ask: a, Amount: amount})
	}
	return w
}

func limitSync(h store.HolderID, seq uint64, asks []ledger.LimitAsk, wants ...ledger.LimitWant) store.LimitSync {
	return store.LimitSync{
		LimitSync: ledger.LimitSync{Holder: string(h), Asks: asks, Wants: wants, Longest: time.Hour},
		Seq:       seq, Window: ledger.Window{Length: time.Minute},
	}
}

// limits is a call of the test's holder that must be answered.
func (e *env) limits(seq uint64, asks []ledger.LimitAsk, wants ...ledger.LimitWant) store.LimitResult {
	e.Helper()
	return e.limitsOf(e.holder, seq, asks, wants...)
}

func (e *env) limitsOf(h store.HolderID, seq uint64, asks []ledger.LimitAsk, wants ...ledger.LimitWant) store.LimitResult {
	e.Helper()
	res, err := e.SyncLimits(e.ctx, limitSync(h, seq, asks, wants...))
	e.ok(err)
	return res
}

// A call counts once: its number is answered once, and a hole in the numbers is an error.
func limitsNumbers(e *env) {
	asks := []ledger.LimitAsk{rate("key:a", 10)}
	first := e.limits(1, asks, need(4, 0))
	equal(e, "granted", first.Verdicts[0].Granted, true)
	equal(e, "amount", first.Grants[0].Amount, 4)
	equal(e, "free", first.Grants[0].Free, 6)
	again := e.limits(1, asks, need(4, 0))
	equal(e, "the same number again", again.Replayed, true)
	equal(e, "grants nothing", len(again.Grants), 0)
	equal(e, "the next number sees it counted once", e.limits(2, asks).Grants[0].Free, 6)
	for _, seq := range []uint64{0, 4} {
		if _, err := e.SyncLimits(e.ctx, limitSync(e.holder, seq, asks)); err == nil {
			e.Fatalf("call %d was answered after call 2", seq)
		}
	}
	equal(e, "another holder has numbers of its own", e.limitsOf("pod/1/bb", 1, asks, need(6, 0)).Verdicts[0].Granted, true)
}

// A refused request consumes nothing, whichever of its limits refused.
func limitsAllOrNothing(e *env) {
	asks := []ledger.LimitAsk{rate("team:t", 10), rate("key:a", 2), slots("key:a", 1, 0)}
	res := e.limits(1, asks, need(1, 0, 1, 2), need(1, 0, 1, 2), need(3, 0, 1), need(9, 0), need(11, 0))
	equal(e, "first", res.Verdicts[0], ledger.LimitVerdict{Granted: true})
	equal(e, "no second slot", res.Verdicts[1], ledger.LimitVerdict{Ask: 2, Retry: ledger.RetryUnknown})
	equal(e, "more than the key's whole limit", res.Verdicts[2], ledger.LimitVerdict{Ask: 1, Retry: ledger.RetryNever})
	equal(e, "the team has lost one", res.Verdicts[3], ledger.LimitVerdict{Granted: true})
	equal(e, "more than the team's limit", res.Verdicts[4].Retry, ledger.RetryNever)
	equal(e, "team", res.Grants[0].Free, 0)
	equal(e, "key", res.Grants[1].Free, 1)
	refused := e.limits(2, asks[:1], need(1, 0)).Verdicts[0]
	if refused.Granted || refused.Retry < time.Minute || refused.Retry > 63*time.Second {
		e.Fatalf("beyond the limit: %+v, want a refusal for a window", refused)
	}
}

// What was not used is free at once; what was used counts for a window.
func limitsReturns(e *env) {
	ask := rate("key:a", 10)
	g := e.limits(1, []ledger.LimitAsk{ask}, need(10, 0)).Grants[0]
	ask.Returns = []ledger.PermitReturn{{Cell: g.Cell, Granted: 10, Used: 3}}
	g = e.limits(2, []ledger.LimitAsk{ask}).Grants[0]
	equal(e, "free", g.Free, 7)
	ask.Returns = []ledger.PermitReturn{{Cell: 12345, Granted: 10}}
	equal(e, "a cell that is over holds nothing", e.limits(3, []ledger.LimitAsk{ask}).Grants[0].Free, 7)
	ask.Returns = []ledger.PermitReturn{{Cell: g.Settled, Granted: 1}}
	equal(e, "a correction of what was used", e.limits(4, []ledger.LimitAsk{ask}).Grants[0].Free, 8)
	tokens := ledger.LimitAsk{Subject: "key:a", Kind: ledger.LimitTokens, Limit: 100, Charge: 150}
	res := e.limits(5, []ledger.LimitAsk{tokens}, need(1, 0))
	equal(e, "an overshoot is counted", res.Grants[0].Free, 0)
	equal(e, "and nothing more granted", res.Verdicts[0].Granted, false)
}

// However many holders ask at once, also for limits that nobody asked for before: what
// is granted is the limit, no more and no less.
func limitsContention(e *env) {
	const limit = 60
	asks := []ledger.LimitAsk{rate("key:a", limit), rate("team:b", 2*limit), slots("user:c", limit, 0)}
	var got [3]atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		h := store.HolderID(fmt.Sprintf("pod/%d/cc", w))
		wg.Go(func() {
			order := []ledger.LimitAsk{asks[w%3], asks[(w+1)%3], asks[(w+2)%3]}
			held := int64(0)
			for seq := uint64(1); seq <= 20; seq++ {
				order[(5-w%3)%3].Have = held
				res, err := e.SyncLimits(e.ctx, limitSync(h, seq, order, need(1, 0), need(1, 1), need(1, 2)))
				if err != nil {
					e.Error(err)
					return
				}
				for i, v := range res.Verdicts {
					if at := (w + i) % 3; v.Granted {
						got[at].Add(1)
						if at == 2 {
							held++
						}
					}
				}
			}
		})
	}
	wg.Wait()
	for i, want := range []int64{limit, 2 * limit, limit} {
		equal(e, asks[i].Subject, got[i].Load(), want)
	}
}

// Slots of a holder whose process has ended are free; those of one that was only not
// heard of are not, since its requests may run on.
func limitsDeadHolder(e *env) {
	e.beatFor(e.holder, -time.Hour)
	asks := []ledger.LimitAsk{slots("key:a", 3, 0)}
	equal(e, "slots", e.limits(1, asks, need(1, 0), need(1, 0), need(1, 0)).Grants[0].Amount, 3)
	other := store.HolderID("pod/1/bb")
	equal(e, "an expired holder has its slots", e.limitsOf(other, 1, asks, need(1, 0)).Verdicts[0].Granted, false)
	asks[0].Have = 1
	equal(e, "what it gives back is free", e.limits(2, asks).Grants[0].Free, 2)
	asks[0].Have = 0
	res := e.limitsOf(other, 2, asks, need(1, 0), need(1, 0), need(1, 0))
	equal(e, "two are", res.Verdicts[1].Granted, true)
	equal(e, "the third is in use", res.Verdicts[2].Granted, false)
	done, err := e.CloseHolder(e.ctx, e.holder, 0)
	e.ok(err)
	equal(e, "closed", done, true)
	asks[0].Have = 2
	equal(e, "a dead holder has none", e.limitsOf(other, 3, asks, need(1, 0)).Verdicts[0].Granted, true)
}

// Odd names are stored as they can be; a state that cannot be read is an error, not a
// limit that starts anew.
func limitsOddRows(e *env) {
	odd := "key:\x00\xff'; DROP TABLE limit_meters; --"
	equal(e, "granted", e.limits(1, []ledger.LimitAsk{rate(odd, 5)}, need(5, 0)).Verdicts[0].Granted, true)
	equal(e, "found again", e.limits(2, []ledger.LimitAsk{rate(odd, 5)}, need(1, 0)).Verdicts[0].Granted, false)
	e.sql(`UPDATE limit_meters SET state = 'no JSON'`)
	_, err := e.SyncLimits(e.ctx, limitSync(e.holder, 3, []ledger.LimitAsk{rate(odd, 5)}))
	if err == nil || errors.Is(err, store.ErrUnavailable) {
		e.Fatalf("a broken state: %v, want a permanent error", err)
	}
}

// What nobody has touched for a week goes.
func limitsMaintain(e *env) {
	e.beatFor(e.holder, -8*24*time.Hour)
	e.limits(1, []ledger.LimitAsk{rate("key:a", 5)}, need(1, 0))
	e.ok(e.Maintain(e.ctx))
	equal(e, "fresh rows", e.sql(`SELECT (SELECT count(*) FROM limit_meters), (SELECT count(*) FROM limit_holders)`), "1|1")
	e.sql(`UPDATE limit_meters SET touched = (SELECT expires FROM holders)`)
	e.sql(`UPDATE limit_holders SET touched = (SELECT expires FROM holders)`)
	e.ok(e.Maintain(e.ctx))
	equal(e, "old rows", e.sql(`SELECT (SELECT count(*) FROM limit_meters), (SELECT count(*) FROM limit_holders)`), "0|0")
}
