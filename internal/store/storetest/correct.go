package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// An administrator frees a lost charge once; what turns up later is overrun.
func correctLost(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	e.beatFor(e.holder, -time.Minute)
	_, err := e.Reap(e.ctx, 0)
	e.ok(err)
	e.commit(record(1, id, 10*cent, 0, l))
	take := store.TakeBack{Holder: e.holder, LeaseRef: l, By: "admin\x00", Reason: "the provider billed nothing else"}
	_, err = e.TakeBack(e.ctx, store.TakeBack{Holder: e.holder, LeaseRef: store.LeaseRef{Seq: 9, Budget: l.Budget}})
	equal(e, "no such lease", errors.Is(err, store.ErrNotFound), true)
	done, err := e.TakeBack(e.ctx, take)
	e.ok(err)
	equal(e, "what was freed", fmt.Sprintln(done.Subject, done.Before/cent, done.After), fmt.Sprintf("lease:pod/0/aa/1/%d 40 0\n", l.Budget))
	equal(e, "is spent no more", e.budget(a), fmt.Sprintf("%d|0|0|0", 10*cent))
	_, err = e.TakeBack(e.ctx, take)
	equal(e, "once", errors.Is(err, store.ErrCorrected), true)
	e.explained("taken back")
	e.commit(record(2, id, 7*cent, 0, l))
	equal(e, "a record that turns up is overrun", e.budget(a), fmt.Sprintf("%d|%d|0|0", 17*cent, 7*cent))
	e.explained("with a record after it")
	equal(e, "audited", e.sql(`SELECT actor, action, subject FROM audit WHERE action = 'correct'`), "admin|correct|"+done.Subject)
	open := e.renewedLease(a)
	_, err = e.TakeBack(e.ctx, store.TakeBack{Holder: e.holder, LeaseRef: open})
	equal(e, "an open lease has no charge", errors.Is(err, store.ErrCorrected), true)
}

// interrupted books a request that was cut, at all that was held.
func (e *env) interrupted(seq uint64, id string, held int64, refs ...store.LeaseRef) {
	e.Helper()
	r := record(seq, id, held, 0, refs...)
	r.Status, r.Estimated, r.EndUser, r.Tags = store.StatusInterrupted, true, "end", []string{"a", "b", "a"}
	e.commit(r)
}

// A record's correction moves all that its cost stands in, whatever became of its lease.
func correctRecord(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	closed, lost, open := e.lease(1, 10*cent, a), e.lease(2, 10*cent, a), e.lease(3, 10*cent, a)
	e.interrupted(1, id, 8*cent, closed)
	e.interrupted(2, id, 8*cent, lost)
	e.interrupted(3, id, 8*cent, open)
	e.interrupted(4, "free", 0)
	e.commit(record(5, id, cent, 0, open))
	_, err := e.Return(e.ctx, e.holder, []store.ReturnLease{{LeaseRef: closed, After: 1}})
	e.ok(err)
	e.sql(`UPDATE leases SET state = 'closed' WHERE seq = 3`) // the reaper must not see it
	e.beatFor(e.holder, -time.Minute)
	_, err = e.Reap(e.ctx, 0)
	e.ok(err)
	e.sql(`UPDATE leases SET state = 'open' WHERE seq = 3`)
	e.explained("before")
	equal(e, "before", e.budget(a), fmt.Sprintf("%d|0|%d|%d", 18*cent, 10*cent, 2*cent))
	for i, c := range []struct {
		why, id string
		cost    int64
		want    string
	}{
		{"a closed lease gives money back", "req-0001", 3 * cent, fmt.Sprintf("%d|0|%d|%d", 13*cent, 10*cent, 2*cent)},
		{"a lost one too, and keeps its charge", "req-0002", 0, fmt.Sprintf("%d|0|%d|%d", 5*cent, 10*cent, 2*cent)},
		{"an open one does when it closes; beyond the hold is overrun", "req-0003", 11 * cent, fmt.Sprintf("%d|0|%d|%d", 5*cent, 10*cent, 2*cent)},
		{"without a lease", "req-0004", 2 * cent, fmt.Sprintf("%d|0|%d|%d", 5*cent, 10*cent, 2*cent)},
	} {
		done, err := e.CorrectRecord(e.ctx, store.CorrectRecord{RequestID: c.id, Cost: c.cost, By: "admin", Reason: c.why})
		e.ok(err)
		equal(e, c.why+": subject", done.Subject, fmt.Sprintf("record:pod/0/aa/%d", i+1))
		equal(e, c.why, e.budget(a), c.want)
		e.lawful()
		e.explained(c.why)
		got, err := e.Records(e.ctx, store.RecordFilter{RequestID: c.id})
		e.ok(err)
		equal(e, c.why+": flagged", fmt.Sprintln(got[0].Cost, *got[0].CorrectedFrom), fmt.Sprintln(c.cost, done.Before))
		_, err = e.CorrectRecord(e.ctx, store.CorrectRecord{RequestID: c.id, Cost: c.cost})
		equal(e, c.why+": once", errors.Is(err, store.ErrCorrected), true)
	}
	_, err = e.Return(e.ctx, e.holder, []store.ReturnLease{{LeaseRef: open, After: 5}, {LeaseRef: lost, After: 5}})
	e.ok(err)
	equal(e, "all leases closed", e.budget(a), fmt.Sprintf("%d|%d|0|0", 15*cent, 3*cent))
	r := e.explained("closed")
	equal(e, "nothing is left to correct", fmt.Sprintln(r.Interrupted.Count, r.Totals.Corrected), "0 4\n")
	equal(e, "audited", e.sql(`SELECT count(*) FROM audit WHERE action = 'correct' AND actor = 'admin'`), "4")
}

// What came too late for its hold is taken back first.
func correctLate(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 10*cent, a)
	_, err := e.Return(e.ctx, e.holder, []store.ReturnLease{{LeaseRef: l}})
	e.ok(err)
	e.interrupted(1, id, 8*cent, l)
	equal(e, "late", e.budget(a), fmt.Sprintf("%d|%d|0|0", 8*cent, 8*cent))
	_, err = e.CorrectRecord(e.ctx, store.CorrectRecord{RequestID: "req-0001", Cost: cent})
	e.ok(err)
	equal(e, "no overrun stays behind", e.budget(a), fmt.Sprintf("%d|%d|0|0", cent, cent))
	e.explained("corrected")
	e.interrupted(2, id, 0, l) // its lease's row may be gone by then
	e.sql(`DELETE FROM leases`)
	e.sql(`DELETE FROM cursors`)
	e.sql(`DELETE FROM holders`)
	_, err = e.CorrectRecord(e.ctx, store.CorrectRecord{RequestID: "req-0002", Cost: 2 * cent})
	e.ok(err)
	equal(e, "in the budget", e.budget(a), fmt.Sprintf("%d|%d|0|0", 3*cent, 3*cent))
	e.explained("without a lease's row")
}

// A correction of anything else is refused and changes nothing.
func correctRefuses(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	e.commit(record(1, id, cent, 0, l))
	e.interrupted(2, id, cent, l)
	gone := record(3, "", 0, 0)
	gone.Status, gone.ErrorCode = store.StatusInterrupted, "record_lost"
	e.commit(gone)
	twin := record(4, id, cent, 0, l)
	twin.Status, twin.RequestID = store.StatusInterrupted, "req-0002"
	e.commit(twin)
	for _, c := range []struct {
		why  string
		c    store.CorrectRecord
		want error
	}{
		{"an exact cost", store.CorrectRecord{RequestID: "req-0001"}, store.ErrInvalid},
		{"one that stands for a lost one", store.CorrectRecord{RequestID: "req-0003"}, store.ErrInvalid},
		{"two of one id", store.CorrectRecord{RequestID: "req-0002"}, store.ErrInvalid},
		{"nobody's", store.CorrectRecord{RequestID: "req-0009"}, store.ErrNotFound},
		{"another holder's", store.CorrectRecord{RequestID: "req-0002", Holder: "x", Seq: 2}, store.ErrNotFound},
		{"no id", store.CorrectRecord{}, store.ErrInvalid},
		{"an id that cannot be", store.CorrectRecord{RequestID: "a\x00"}, store.ErrInvalid},
		{"half a number", store.CorrectRecord{RequestID: "req-0002", Seq: 2}, store.ErrInvalid},
		{"less than nothing", store.CorrectRecord{RequestID: "req-0002", Cost: -1}, store.ErrInvalid},
		{"more than the ledger takes", store.CorrectRecord{RequestID: "req-0002", Cost: 1e15 + 1}, store.ErrInvalid},
	} {
		_, err := e.CorrectRecord(e.ctx, c.c)
		equal(e, c.why, errors.Is(err, c.want), true)
	}
	equal(e, "nothing was audited", e.sql(`SELECT count(*) FROM audit WHERE action = 'correct'`), "0")
	_, err := e.CorrectRecord(e.ctx, store.CorrectRecord{RequestID: "req-0002", Holder: e.holder, Seq: 4, Cost: 0})
	e.ok(err)
	e.explained("the twin that was named")
}

// Of several who correct one thing at once, one does.
func correctTogether(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	e.interrupted(1, id, 20*cent, l)
	e.beatFor(e.holder, -time.Minute)
	_, err := e.Reap(e.ctx, 0)
	e.ok(err)
	const callers = 6
	outcome := make(chan error, 2*callers)
	for range callers {
		go func() {
			_, err := e.CorrectRecord(e.ctx, store.CorrectRecord{RequestID: "req-0001", Cost: cent})
			outcome <- err
		}()
		go func() {
			_, err := e.TakeBack(e.ctx, store.TakeBack{Holder: e.holder, LeaseRef: l})
			outcome <- err
		}()
	}
	done := 0
	for range 2 * callers {
		if err := <-outcome; err == nil {
			done++
		} else if !errors.Is(err, store.ErrCorrected) {
			e.Error(err)
		}
	}
	equal(e, "corrections that were made", done, 2)
	equal(e, "what is left", e.budget(a), fmt.Sprintf("%d|0|0|0", cent))
	e.explained("together")
}
