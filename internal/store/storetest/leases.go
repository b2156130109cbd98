package storetest

import (
	"fmt"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// A lease is closed only when its last record is in, and only once.
func leaseReturn(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	back := func(after uint64) int {
		e.Helper()
		pending, err := e.Return(e.ctx, e.holder, []store.ReturnLease{{LeaseRef: l, After: after}})
		e.ok(err)
		e.lawful()
		return len(pending)
	}
	equal(e, "record 2 is not in", back(2), 1)
	e.commit(record(1, id, 10*cent, 0, l))
	equal(e, "still not", back(2), 1)
	equal(e, "nothing moved", e.budget(a), fmt.Sprintf("0|0|%d|0", 50*cent))
	e.commit(record(2, id, 45*cent, 5*cent, l)) // 55 of 50: 5 beyond the hold
	equal(e, "now it closes", back(2), 0)
	settled := fmt.Sprintf("%d|%d|0|0", 55*cent, 5*cent)
	equal(e, "settled", e.budget(a), settled)
	equal(e, "once more", back(2), 0)
	equal(e, "changes nothing", e.budget(a), settled)
	e.commit(record(3, id, cent, 0, l))
	equal(e, "a record after the close is booked as overrun", e.budget(a), fmt.Sprintf("%d|%d|0|0", 56*cent, 6*cent))
	equal(e, "and counted", e.sql(`SELECT late FROM leases`), "1")
	equal(e, "a closed lease is not replayed", len(e.grant(1, cent, a).Leases), 0)
}

// A lease shrinks and never grows.
func leaseTrim(e *env) {
	e.beat()
	_, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	for _, c := range []struct{ to, leased int64 }{{20 * cent, 20 * cent}, {40 * cent, 20 * cent}, {20 * cent, 20 * cent}, {-1, 0}} {
		e.ok(e.Trim(e.ctx, e.holder, []store.TrimLease{{LeaseRef: l, To: c.to}}))
		e.lawful()
		equal(e, fmt.Sprintf("trimmed to %d", c.to), e.budget(a), fmt.Sprintf("0|0|%d|0", c.leased))
	}
}

// A reaper charges what was left and frees nothing.
func holderReap(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	e.commit(record(1, id, 10*cent, 0, l))
	n, err := e.Reap(e.ctx, 0)
	e.ok(err)
	equal(e, "a live holder is left alone", n, 0)
	e.beatFor(e.holder, -time.Minute)
	n, err = e.Reap(e.ctx, time.Hour)
	e.ok(err)
	equal(e, "within the margin too", n, 0)
	n, err = e.Reap(e.ctx, time.Second)
	e.ok(err)
	e.lawful()
	equal(e, "reaped", n, 1)
	equal(e, "all of the lease is charged", e.budget(a), fmt.Sprintf("%d|0|0|%d", 50*cent, 40*cent))
	n, err = e.Reap(e.ctx, time.Second)
	e.ok(err)
	equal(e, "nothing is left to reap", n, 0)
	equal(e, "reaps are told", e.beat().Reaps, 1)
	res := e.grant(1, cent, a)
	equal(e, "a replay tells that the lease is lost", res.Leases[0].State, store.LeaseLost)
	equal(e, "reaps in a grant", res.Reaps, 1)
	res = e.grant(2, 60*cent, a)
	equal(e, "lost money is spent", res.Results[0].Outcome, store.Exceeded)
}

// What an overrun took is not taken twice: the remainder is granted − (spent − overrun).
func holderReapOverrun(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	e.commit(record(1, id, 30*cent, 20*cent, l)) // 10 of the hold, 20 beyond it
	e.beatFor(e.holder, -time.Second)
	_, err := e.Reap(e.ctx, 0)
	e.ok(err)
	e.lawful()
	equal(e, "charged", e.budget(a), fmt.Sprintf("%d|%d|0|%d", 70*cent, 20*cent, 40*cent))
}

// Records that turn up for a lost lease replace the charge; the rest comes back.
func holderLateRecords(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	e.beatFor(e.holder, -time.Second)
	_, err := e.Reap(e.ctx, 0)
	e.ok(err)
	e.commit(record(1, id, 30*cent, 0, l))
	equal(e, "replaces the charge", e.budget(a), fmt.Sprintf("%d|0|0|%d", 50*cent, 20*cent))
	e.commit(record(2, id, 25*cent, 0, l))
	equal(e, "beyond the charge: spent and overrun", e.budget(a), fmt.Sprintf("%d|%d|0|0", 55*cent, 5*cent))
	l2 := e.renewedLease(a)
	_, err = e.Reap(e.ctx, 0)
	e.ok(err)
	e.commit(record(3, id, 4*cent, 0, l2))
	equal(e, "second lease is charged", e.budget(a), fmt.Sprintf("%d|%d|0|%d", 65*cent, 5*cent, 6*cent))
	_, err = e.Return(e.ctx, e.holder, []store.ReturnLease{{LeaseRef: l2, After: 3}})
	e.ok(err)
	e.lawful()
	equal(e, "its return gives the rest back", e.budget(a), fmt.Sprintf("%d|%d|0|0", 59*cent, 5*cent))
}

// renewedLease takes ten cents under grant 2 and lets the holder expire.
func (e *env) renewedLease(entity string) store.LeaseRef {
	e.Helper()
	e.beat()
	l := e.lease(2, 10*cent, entity)
	e.beatFor(e.holder, -time.Second)
	return l
}

// Adoption ends a holder once its records are in: all leases of the database
// close, also those that its journal does not name.
func holderClose(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 20*cent, a)
	e.lease(2, 30*cent, a)
	done, err := e.CloseHolder(e.ctx, e.holder, 1)
	e.ok(err)
	equal(e, "record 1 is not in", done, false)
	e.commit(record(1, id, 15*cent, 0, l))
	for range 2 { // an adopter may ask again after a lost answer
		done, err = e.CloseHolder(e.ctx, e.holder, 1)
		e.ok(err)
		e.lawful()
		equal(e, "closed", done, true)
		equal(e, "settled", e.budget(a), fmt.Sprintf("%d|0|0|0", 15*cent))
	}
	equal(e, "fenced", e.beat().Fenced, true)
	done, err = e.CloseHolder(e.ctx, "never/0/seen", 0)
	e.ok(err)
	equal(e, "a holder that was never seen can be closed", done, true)
	equal(e, "and stays closed", e.beatFor("never/0/seen", time.Hour).Fenced, true)
}

// Maintain may run at any time and keeps what is young.
func maintain(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 20*cent, a)
	e.commit(record(1, id, cent, 0, l))
	_, err := e.CloseHolder(e.ctx, e.holder, 1)
	e.ok(err)
	for range 2 {
		e.ok(e.Maintain(e.ctx))
	}
	equal(e, "kept", e.sql(`SELECT (SELECT count(*) FROM holders), (SELECT count(*) FROM leases), (SELECT count(*) FROM changes)`), "1|1|1")
	e.ok(e.Ping(e.ctx))
	e.lawful()
}
