package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

// verified is a report that must come.
func (e *env) verified(o store.VerifyOptions) store.Report {
	e.Helper()
	r, err := e.Verify(e.ctx, o)
	e.ok(err)
	return r
}

// explained fails when the ledger has a difference.
func (e *env) explained(when string) store.Report {
	e.Helper()
	r := e.verified(store.VerifyOptions{})
	if !r.Explained() {
		e.Fatalf("%s: %d differences: %+v", when, r.Differences.Count, r.Differences.First)
	}
	return r
}

// eventful makes a ledger in which everything has happened that a ledger explains.
func (e *env) eventful() {
	e.Helper()
	e.beat()
	id, a := e.key("a", usd)
	l := e.lease(1, 50*cent, a)
	e.commit(record(1, id, 10*cent, 0, l), record(2, id, 8*cent, 3*cent, l)) // within and beyond a hold
	poisoned := make([]store.Record, 4)
	for i := range poisoned {
		poisoned[i] = record(uint64(i+3), id, cent, 0, l)
	}
	poisoned[0].Start = time.Date(292_278_994, 1, 1, 0, 0, 0, 0, time.UTC) // no JSON says this
	poisoned[1].Cost, poisoned[1].Charges[0].Cost = math.MaxInt64, -7
	poisoned[2].UserID, poisoned[2].TeamID = "nul\x00", strings.Repeat("☃", 200) // cut in the daily sums
	poisoned[3].Usage.Input, poisoned[3].EndUser, poisoned[3].Tags = -1, "end", []string{"a"}
	e.commit(poisoned...)
	e.settledLate(id, a)
	// A budget that begins with a spend, and one whose limit falls below it.
	spent, limit := 30*cent, 20*cent
	k, err := e.UpdateKey(e.ctx, id, store.KeyPatch{Spend: &spent, UpdatedBy: "admin"})
	e.ok(err)
	half := &limit
	_, err = e.UpdateKey(e.ctx, k.ID, store.KeyPatch{MaxBudget: &half, UpdatedBy: "admin"})
	e.ok(err)
	e.dead(id)
}

// settledLate has records that come when their leases are closed or lost, and leaves
// one lease lost and one open.
func (e *env) settledLate(id, entity string) {
	e.Helper()
	trimmed := e.lease(2, 5*cent, entity)
	e.ok(e.Trim(e.ctx, e.holder, []store.TrimLease{{LeaseRef: trimmed, To: 2 * cent}}))
	_, err := e.Return(e.ctx, e.holder, []store.ReturnLease{{LeaseRef: trimmed}})
	e.ok(err)
	late := record(7, id, 2*cent, cent, trimmed)
	late.Hold = cent
	e.commit(late)
	lost := e.lease(3, 10*cent, entity)
	e.beatFor(e.holder, -time.Minute)
	_, err = e.Reap(e.ctx, 0) // the first lease, and the third
	e.ok(err)
	e.commit(record(8, id, 4*cent, cent, lost), record(9, id, 9*cent, 0, lost)) // more than was charged
	_, err = e.Return(e.ctx, e.holder, []store.ReturnLease{{LeaseRef: lost, After: 9}})
	e.ok(err)
	e.beat()
	e.lease(4, cent, entity)
	tagged := record(10, keyID("unbudgeted"), cent, 0)
	tagged.EndUser = "end\x00 Ż"
	tagged.Tags = []string{"a", "", "b", "a", strings.Repeat("long", 100), strings.Repeat("long", 100) + "er"}
	for i := range 30 {
		tagged.Tags = append(tagged.Tags, fmt.Sprint(i))
	}
	e.commit(tagged)
}

// dead is a second worker that dies with a request under way.
func (e *env) dead(id string) {
	e.Helper()
	holder := store.HolderID("pod/1/bb")
	e.beatFor(holder, time.Hour)
	_, b := e.key("b", usd)
	res, err := e.Grant(e.ctx, store.Grant{Holder: holder, Seq: 1, Wants: []store.Want{{Entities: []string{b}, Amount: 9 * cent}}})
	e.ok(err)
	cut := record(1, id, 6*cent, 0, res.Leases[0].LeaseRef)
	cut.Status, cut.Estimated, cut.PriceVersion = store.StatusInterrupted, true, "v1"
	gone := record(2, "", 0, 0)
	gone.Status, gone.ErrorCode, gone.Attempts = store.StatusInterrupted, "record_lost", 0
	_, err = e.Commit(e.ctx, holder, []store.Record{cut, gone})
	e.ok(err)
	_, err = e.CloseHolder(e.ctx, holder, 2)
	e.ok(err)
}

// Everything that may happen is explained, and what is worth a look is named.
func verifyExplained(e *env) {
	equal(e, "an empty ledger", e.explained("empty").Totals, store.Totals{})
	e.eventful()
	r := e.explained("eventful")
	got := fmt.Sprintln(r.OpenLeases.Count, r.OpenLeases.Sum/cent, r.LostLeases.Count, r.LateLeases.Count, r.Interrupted.Count, r.Interrupted.Sum/cent,
		r.RecordsLost.Count, r.DeadLetters.Count, r.Overruns.Count, r.OverLimit.Count, r.Unchecked.Count)
	equal(e, "open, lost, late, interrupted, records lost, dead letters, overruns, over limit, unchecked", got, "1 1 1 1 1 6 1 3 1 1 0\n")
	equal(e, "records", r.Totals.Records, 9)
	equal(e, "unpriced", r.Totals.Unpriced, 7)
	equal(e, "estimated", r.Totals.Estimated, 1)
	open, cut := r.OpenLeases.First[0], r.Interrupted.First[0]
	equal(e, "the open lease", fmt.Sprintln(open.Holder, open.Seq, open.Amount == cent, open.Created.IsZero(), open.Expires.After(r.At)), "pod/0/aa 4 true false true\n")
	equal(e, "the interrupted request", fmt.Sprintln(cut.Holder, cut.Seq, cut.RequestID, cut.Cost == 6*cent), "pod/1/bb 1 req-0001 true\n")
	one := e.verified(store.VerifyOptions{Limit: 1})
	equal(e, "a list is bounded", fmt.Sprintln(len(one.DeadLetters.First), one.DeadLetters.Count), "1 3\n")
	e.ok(e.Maintain(e.ctx))
	e.explained("after maintenance")
}

// Each kind of damage is found, under its name and with its amount, and only it.
func verifyDamage(e *env) {
	e.eventful()
	for _, c := range []struct{ why, damage, repair, want string }{
		{"a sum that lost money", `UPDATE spend_daily SET cost = cost - 5 WHERE key_id = '` + keyID("unbudgeted") + `'`,
			`UPDATE spend_daily SET cost = cost + 5 WHERE key_id = '` + keyID("unbudgeted") + `'`, "spend_daily cost -5"},
		{"a tag's sum that gained money", `UPDATE spend_subjects SET cost = cost + 5 WHERE subject = 'tag:b'`,
			`UPDATE spend_subjects SET cost = cost - 5 WHERE subject = 'tag:b'`, "spend_subjects cost 5"},
		{"a customer's sum that is gone", `UPDATE spend_subjects SET subject = 'customer:x' WHERE subject = 'customer:end'`,
			`UPDATE spend_subjects SET subject = 'customer:end' WHERE subject = 'customer:x'`,
			"spend_subjects cost -10000000; spend_subjects cost 10000000; spend_subjects output -2; spend_subjects output 2; spend_subjects requests -1; spend_subjects requests 1"},
		{"a request counted twice", `UPDATE spend_daily SET requests = requests + 1 WHERE key_id = '` + keyID("unbudgeted") + `'`,
			`UPDATE spend_daily SET requests = requests - 1 WHERE key_id = '` + keyID("unbudgeted") + `'`, "spend_daily requests 1"},
		{"tokens of another day", `UPDATE spend_daily SET input = input + 3 WHERE key_id = '` + keyID("unbudgeted") + `'`,
			`UPDATE spend_daily SET input = input - 3 WHERE key_id = '` + keyID("unbudgeted") + `'`, "spend_daily input 3"},
		{"a record whose cost was edited", `UPDATE spend_records SET cost = cost + 7 WHERE request_id = 'req-0009'`,
			`UPDATE spend_records SET cost = cost - 7 WHERE request_id = 'req-0009'`, "spend_daily cost -7"},
		{"a record that is somebody else's", `UPDATE spend_records SET holder = 'x' WHERE request_id = 'req-0010'`,
			`UPDATE spend_records SET holder = 'pod/0/aa' WHERE request_id = 'req-0010'`, "cursor records -1; cursor records -9"},
		{"a cursor that is ahead", `UPDATE cursors SET last_seq = 3 WHERE holder = 'pod/1/bb'`,
			`UPDATE cursors SET last_seq = 2 WHERE holder = 'pod/1/bb'`, "cursor records -1"},
		{"a cursor that is behind: the next record would be booked twice", `UPDATE cursors SET last_seq = 1 WHERE holder = 'pod/1/bb'`,
			`UPDATE cursors SET last_seq = 2 WHERE holder = 'pod/1/bb'`, "cursor highest record 1; cursor records 1"},
		{"a lease that forgot a record", `UPDATE leases SET spent = spent - 2 WHERE holder = 'pod/1/bb'`,
			`UPDATE leases SET spent = spent + 2 WHERE holder = 'pod/1/bb'`, "lease spent -2"},
		{"an overrun that nobody had", `UPDATE leases SET overrun = overrun + 2 WHERE holder = 'pod/1/bb'`,
			`UPDATE leases SET overrun = overrun - 2 WHERE holder = 'pod/1/bb'`, "lease overrun 2"},
		{"a charge that no reaper made", `UPDATE leases SET lost = 4 WHERE holder = 'pod/1/bb'`,
			`UPDATE leases SET lost = 0 WHERE holder = 'pod/1/bb'`, "budget lost -4; budget spent -4; lease lost 4"},
		{"a lease that nobody answers for", `UPDATE leases SET holder = 'nobody' WHERE state = 'open'`,
			`UPDATE leases SET holder = 'pod/0/aa' WHERE holder = 'nobody'`, "lease holder -1"},
		{"a lease that is gone", `UPDATE leases SET seq = 99 WHERE holder = 'pod/1/bb'`,
			`UPDATE leases SET seq = 1 WHERE holder = 'pod/1/bb'`, "lease lease -60000000; lease spent 60000000"},
		{"a budget that lost spend", `UPDATE budgets SET spent = spent - 11 WHERE id = 2`, `UPDATE budgets SET spent = spent + 11 WHERE id = 2`, "budget spent -11"},
		{"an overrun that makes room", `UPDATE budgets SET overrun = overrun + 11 WHERE id = 1`, `UPDATE budgets SET overrun = overrun - 11 WHERE id = 1`, "budget overrun 11"},
		{"money that stays reserved", `UPDATE budgets SET leased = leased + 11 WHERE id = 1`, `UPDATE budgets SET leased = leased - 11 WHERE id = 1`, "budget leased 11"},
		{"a charge that no lease has", `UPDATE budgets SET lost = lost + 11 WHERE id = 1`, `UPDATE budgets SET lost = lost - 11 WHERE id = 1`, "budget lost 11"},
		{"a budget that is gone", `UPDATE leases SET budget = 77 WHERE state = 'open'`, `UPDATE leases SET budget = 1 WHERE budget = 77`,
			"budget budget -10000000; budget leased 10000000"},
		{"last, for it is not repaired: a dead letter that was thrown away", `UPDATE dead_letters SET booked = NULL WHERE seq = 3`, "",
			"budget spent 10000000; lease spent 10000000; spend_daily cost 10000000; spend_daily input 10; spend_daily output 2; spend_daily requests 1"},
	} {
		e.explained("before " + c.why)
		e.sql("%s", c.damage)
		r := e.verified(store.VerifyOptions{})
		var got []string
		for _, d := range r.Differences.First {
			got = append(got, fmt.Sprintf("%s %s %d", d.Kind, d.Field, d.Have-d.Want))
		}
		slices.Sort(got)
		equal(e, c.why, strings.Join(got, "; "), c.want)
		equal(e, c.why+": how many", r.Differences.Count, int64(len(got)))
		if c.repair != "" {
			e.sql("%s", c.repair)
		}
	}
}

// A budget above its limit is a difference, unless the limit was lowered.
func verifyLaw(e *env) {
	e.beat()
	id, a := e.key("a", usd)
	e.lease(1, 80*cent, a)
	limit := 30 * cent
	half := &limit
	_, err := e.UpdateKey(e.ctx, id, store.KeyPatch{MaxBudget: &half})
	e.ok(err)
	r := e.explained("a limit below what is leased")
	equal(e, "is named", fmt.Sprintln(r.OverLimit.Count, r.OverLimit.Sum/cent), "1 50\n")
	e.sql(`UPDATE leases SET granted = %d`, 2*usd)
	e.sql(`UPDATE budgets SET leased = %d`, 2*usd)
	r = e.verified(store.VerifyOptions{})
	equal(e, "more than it ever allowed", fmt.Sprintln(r.Differences.Count, r.Differences.First[0].Field, r.Differences.First[0].Want, r.Differences.First[0].Have), fmt.Sprintln(1, "law", usd, 2*usd))
}

// What began before a day is left out, with the records that it needs.
func verifySince(e *env) {
	e.eventful()
	e.sql(`UPDATE budgets SET spent = spent - 1 WHERE id = 2`)
	e.sql(`UPDATE leases SET spent = spent - 1 WHERE holder = 'pod/1/bb'`)
	equal(e, "all", e.verified(store.VerifyOptions{}).Differences.Count, 2)
	today := e.verified(store.VerifyOptions{Since: time.Now().Add(-2 * time.Hour)})
	equal(e, "records of another day", today.Totals.Records, 0)
	// They are of March, their leases of today: no real clock is that wrong, and a
	// record is never older than its lease by so much. What matters is what is read.
	later := e.verified(store.VerifyOptions{Since: time.Now().AddDate(0, 0, 2)})
	equal(e, "nothing began after the day", later.Differences.Count, 0)
	equal(e, "so budgets are unchecked", later.Unchecked.Count, 3)
	march := e.verified(store.VerifyOptions{Since: start.AddDate(0, 0, -1)})
	equal(e, "all of it began since", march.Differences.Count, 2)
}

// A check in the middle of the work sees one state of it.
func verifyLive(e *env) {
	e.beat()
	id, a := e.key("a", 1000*usd)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for h := range 3 {
		holder := store.HolderID(fmt.Sprintf("pod/%d/cc", h))
		e.beatFor(holder, time.Hour)
		wg.Go(func() { e.busy(holder, id, a, stop) })
	}
	for range 8 {
		r := e.verified(store.VerifyOptions{})
		if !r.Explained() {
			e.Errorf("%+v", r.Differences.First)
		}
	}
	close(stop)
	wg.Wait()
	r := e.explained("at the end")
	if r.Totals.Records == 0 {
		e.Error("nothing was booked meanwhile")
	}
}

// busy grants, commits and returns until stop.
func (e *env) busy(holder store.HolderID, id, entity string, stop <-chan struct{}) {
	for n := uint64(1); ; n++ {
		res, err := e.Grant(e.ctx, store.Grant{Holder: holder, Seq: n, Wants: []store.Want{{Entities: []string{entity}, Amount: cent}}})
		if err != nil || len(res.Leases) != 1 {
			e.Errorf("grant %d: %+v %v", n, res, err)
			return
		}
		ref := res.Leases[0].LeaseRef
		if _, err := e.Commit(e.ctx, holder, []store.Record{record(n, id, cent/2, 0, ref)}); err != nil {
			e.Error(err)
			return
		}
		if _, err := e.Return(e.ctx, holder, []store.ReturnLease{{LeaseRef: ref, After: n}}); err != nil {
			e.Error(err)
			return
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}
