package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// A fenced holder gets nothing any more, keeps what it has, and is settled as others.
func stuckFence(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	for range 2 {
		e.ok(e.Fence(e.ctx, e.holder))
	}
	e.ok(e.Fence(e.ctx, "pod/9/never-seen"))
	equal(e, "heartbeat", e.beat().Fenced, true)
	equal(e, "heartbeat of one that the database never saw", e.beatFor("pod/9/never-seen", time.Hour).Fenced, true)
	equal(e, "grant", e.grant(2, cent, a).Status, store.GrantRenewFirst)
	equal(e, "its lease stays", e.budget(a), fmt.Sprintf("0|0|%d|0", 50*cent))
	e.commit(record(1, id, 10*cent, 0, l)) // its journal is adopted
	e.sql(`UPDATE holders SET expires = %s WHERE id = 'pod/0/aa'`, e.past())
	e.ok(e.Maintain(e.ctx))
	n, err := e.Reap(e.ctx, 0)
	e.ok(err)
	equal(e, "a reaper charges it", fmt.Sprintln(n, e.budget(a)), fmt.Sprintf("1 %d|0|0|%d\n", 50*cent, 40*cent))
	done, err := e.CloseHolder(e.ctx, e.holder, 1)
	e.ok(err)
	equal(e, "and its adoption settles it", fmt.Sprintln(done, e.budget(a)), fmt.Sprintf("true %d|0|0|0\n", 10*cent))
	e.explained("fenced and adopted")
}

// past is a time a minute ago in the database's own form.
func (e *env) past() string {
	e.Helper()
	e.beatFor("pod/8/past", -time.Minute)
	return `(SELECT expires FROM holders WHERE id = 'pod/8/past')`
}

// A record whose lease is not there is booked all the same, once and in its order.
func stuckBury(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	_, b := e.key("b", usd)
	l := e.lease(1, 50*cent, a)
	var budget int64
	_, err := fmt.Sscan(e.sql(`SELECT id FROM budgets WHERE entity = '%s'`, b), &budget)
	e.ok(err)
	r := record(2, id, 9*cent, cent, l, store.LeaseRef{Seq: 7, Budget: budget}, store.LeaseRef{Seq: 7, Budget: 999})
	r.EndUser = "end"
	_, err = e.Bury(e.ctx, e.holder, r)
	equal(e, "never before its turn", errors.Is(err, store.ErrGap), true)
	e.commit(record(1, id, cent, 0, l))
	_, err = e.Commit(e.ctx, e.holder, []store.Record{r})
	equal(e, "a commit says what is missing", errors.Is(err, store.ErrNoLease), true)
	for range 2 {
		last, err := e.Bury(e.ctx, e.holder, r)
		e.ok(err)
		equal(e, "cursor", last, 2)
		e.lawful()
	}
	equal(e, "the caller's record is left alone", len(r.Charges), 3)
	equal(e, "the lease that is there is charged", e.sql(`SELECT spent, overrun FROM leases`), fmt.Sprintf("%d|%d", 10*cent, cent))
	equal(e, "the budget of the other takes it as overrun", e.budget(b), fmt.Sprintf("%d|%d|0|0", 9*cent, 9*cent))
	equal(e, "it says why", e.sql(`SELECT seq, reason FROM dead_letters`), fmt.Sprintf(
		"2|lease 7 of budget %d is not there, the budget takes the cost as overrun; lease 7 and budget 999 are not there, its cost stands in the daily sums only", budget))
	equal(e, "the original is kept", e.sql(`SELECT count(*) FROM dead_letters WHERE payload LIKE '%%"Budget":999%%'`), "1")
	e.commit(record(3, id, cent, 0, l))
	report := e.explained("buried")
	equal(e, "named", fmt.Sprintln(report.DeadLetters.Count, report.DeadLetters.Sum/cent), "1 9\n")
}
