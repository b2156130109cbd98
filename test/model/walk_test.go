package model

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/penstock-gateway/penstock/internal/hold"
	"github.com/penstock-gateway/penstock/internal/journal"
	"github.com/penstock-gateway/penstock/internal/store"
)

// op is one kind of step. weight says how often it is taken.
type op struct {
	name   string
	weight int
	do     func(*world)
}

func ops() []op {
	return []op{
		{"ask", 18, (*world).opAsk}, {"open", 14, (*world).opOpen}, {"attempt", 3, (*world).opAttempt}, {"attempt often", 0, (*world).opAttemptOften}, {"settle", 10, (*world).opSettle}, {"settle beyond", 2, (*world).opSettleBeyond},
		{"overrun beside", 1, (*world).opOverrunBeside},
		{"release", 1, (*world).opRelease}, {"give up", 1, (*world).opGiveUp}, {"burst", 1, (*world).opBurst},
		{"deliver", 22, (*world).opDeliver}, {"deliver late", 2, (*world).opDeliverLate}, {"deliver all", 5, (*world).opDeliverAll}, {"slow grant", 1, (*world).opSlowGrant}, {"reply", 4, (*world).opReply},
		{"stale reply", 2, (*world).opStaleReply}, {"pair", 3, (*world).opPair}, {"once more", 4, (*world).opOnceMore},
		{"send", 14, (*world).opSend}, {"pass", 10, (*world).opPass}, {"pass long", 1, (*world).opPassLong},
		{"recall", 2, (*world).opRecall}, {"kill", 2, (*world).opKill}, {"start", 6, (*world).opStart}, {"leave", 1, (*world).opLeave},
		{"leave on", 5, (*world).opLeaveOn}, {"adopt", 4, (*world).opAdopt}, {"adopt on", 6, (*world).opAdoptOn}, {"adopter dies", 1, (*world).opAdopterDies},
		{"lose node", 1, (*world).opLoseNode}, {"away", 1, (*world).opAway}, {"back", 4, (*world).opBack}, {"reap", 4, (*world).opReap}, {"cut off", 1, (*world).opCutOff},
		{"limit", 1, (*world).opLimit}, {"reset", 1, (*world).opReset}, {"correct", 1, (*world).opCorrect},
	}
}

// profile changes weights, so that what a mutation needs comes soon.
type profile map[string]int

// walk takes steps until a law breaks, then lets everything come to rest. The laws
// are checked after each step.
func (w *world) walk(steps int, p profile) error {
	all := ops()
	total := 0
	for i := range all {
		if weight, ok := p[all[i].name]; ok {
			all[i].weight = weight
		}
		total += all[i].weight
	}
	for w.steps = 1; w.steps <= steps; w.steps++ {
		at := w.rng.IntN(total)
		i := 0
		for ; at >= all[i].weight; i++ {
			at -= all[i].weight
		}
		all[i].do(w)
		if w.off.heldWhenReturning {
			w.returnUnmarked()
		}
		if _, err := w.check(); err != nil {
			w.fail(err)
		}
		if w.err != nil {
			return w.err
		}
	}
	return w.rest()
}

func (w *world) one(s state) *request {
	var of []*request
	for _, r := range w.requests {
		if r.state == s {
			of = append(of, r)
		}
	}
	return pick(w.rng, of)
}

func (w *world) opAsk() {
	var able []*worker
	for _, k := range w.liveWorkers() {
		if !k.leaving && k.openRequests() < 8 {
			able = append(able, k)
		}
	}
	k := pick(w.rng, able)
	if k == nil {
		return
	}
	a, b, team := w.entities[0], w.entities[1], w.entities[2]
	want := hold.Want{
		Entities: pick(w.rng, [][]string{{a}, {b}, {a, team}, {b, team}, {team}, {a, team}, {}}),
		Amount:   1 + w.rng.Int64N(20),
	}
	if w.rng.IntN(3) == 0 {
		want.Min = 1 + want.Amount/4
	}
	r := w.ask(k, want)
	r.poison = w.rng.IntN(15) == 0
}

func (w *world) opOpen() {
	if r := w.one(held); r != nil {
		r.open()
	}
}

func (w *world) opAttempt() {
	if r := w.one(sent); r != nil {
		r.attempt(1 + w.rng.Int64N(20))
	}
}

// opAttemptOften writes a request that is in flight into the journal again and again,
// which moves the journal on without a close.
func (w *world) opAttemptOften() {
	if r := w.one(sent); r != nil {
		for range 120 {
			r.attempt(0)
		}
	}
}

func (w *world) opSettle() {
	if r := w.one(sent); r != nil {
		r.settle(w.rng.Int64N(r.promised + 1))
	}
}

// opSettleBeyond has the upstream bill more than its cap.
func (w *world) opSettleBeyond() {
	if r := w.one(sent); r != nil {
		r.settle(r.promised + w.rng.Int64N(15))
	}
}

// opOverrunBeside has one of two requests on the same lease cost more than was held,
// so that the other's hold is more than is left of it.
func (w *world) opOverrunBeside() {
	k := pick(w.rng, w.liveWorkers())
	if k == nil || k.leaving || k.openRequests() > 0 {
		return
	}
	// The first one's grant is under way, so the other two share the next one.
	want := hold.Want{Entities: w.entities[:1], Amount: 10}
	rs := []*request{w.ask(k, want), w.ask(k, want), w.ask(k, want)}
	for range rs {
		w.opDeliverAll()
	}
	for _, r := range rs {
		if r.state == held {
			r.open()
		}
	}
	if rs[1].state == sent && rs[2].state == sent {
		rs[1].settle(rs[1].promised + 9)
	}
}

func (w *world) opRelease() {
	if r := w.one(held); r != nil {
		r.release("it may not")
	}
}

func (w *world) opGiveUp() {
	if r := w.one(asking); r != nil {
		w.note("%s: %s gives up", r.k, r.id())
		r.cancel()
		w.settleDown()
	}
}

// opBurst sends many requests that need no money, which moves the journal on.
func (w *world) opBurst() {
	k := pick(w.rng, w.liveWorkers())
	if k == nil || k.leaving {
		return
	}
	for range 5 + w.rng.IntN(20) {
		r := w.ask(k, hold.Want{})
		if r.state == held {
			r.open()
		}
		if r.state != sent {
			return
		}
		r.settle(0)
	}
}

// waited are the messages that somebody waits for.
func (w *world) waited() []*message {
	var out []*message
	for _, m := range w.flight {
		if m.waited() {
			out = append(out, m)
		}
	}
	return out
}

func (w *world) drop(m *message) {
	if i := slices.Index(w.flight, m); i >= 0 {
		w.flight = slices.Delete(w.flight, i, i+1)
	}
}

func (w *world) opDeliver() {
	m := pick(w.rng, w.flight)
	if m == nil {
		return
	}
	w.drop(m)
	switch w.rng.IntN(18) {
	case 0, 1:
		w.note("%s: lost on its way", m.text())
		w.answerTo(m, answer{err: errLost})
	case 2, 3:
		w.handle(m)
		w.note("the answer is lost")
		w.answerTo(m, answer{err: errLost})
	case 4:
		w.flight = append(w.flight, m.again())
		fallthrough
	default:
		w.answerTo(m, w.handle(m))
	}
}

// opDeliverLate has the answer come later, maybe too late.
func (w *world) opDeliverLate() {
	if m := pick(w.rng, w.flight); m != nil {
		w.drop(m)
		w.replies = append(w.replies, &reply{m, w.handle(m)})
	}
}

func (w *world) opDeliverAll() {
	for _, m := range w.waited() {
		if m.waited() {
			w.drop(m)
			w.answerTo(m, w.handle(m))
		}
	}
}

// opSlowGrant has a grant answered seconds after it was decided, in a period that may
// be over by then.
func (w *world) opSlowGrant() {
	if k := pick(w.rng, w.liveWorkers()); k != nil && !k.leaving && k.openRequests() < 8 {
		w.ask(k, hold.Want{Entities: []string{w.entities[1]}, Amount: 1 + w.rng.Int64N(5)})
	}
	var grants []*message
	for _, m := range w.waited() {
		if m.kind() == 2 {
			grants = append(grants, m)
		}
	}
	if m := pick(w.rng, grants); m != nil {
		w.drop(m)
		a := w.handle(m)
		w.pass(time.Duration(1000+w.rng.IntN(3500)) * time.Millisecond)
		w.answerTo(m, a)
	}
}

func (w *world) opReply() {
	w.replies = slices.DeleteFunc(w.replies, func(r *reply) bool { return !r.to.waited() })
	if r := pick(w.rng, w.replies); r != nil {
		w.note("a late answer to %s of %s", r.to.text(), r.to.from)
		w.replies = slices.Delete(w.replies, slices.Index(w.replies, r), slices.Index(w.replies, r)+1)
		w.answerTo(r.to, r.answer)
	}
}

// opStaleReply answers a grant with the answer to an older one.
func (w *world) opStaleReply() {
	var grants []*message
	for _, m := range w.waited() {
		if m.kind() == 2 && len(m.from.grants) > 0 {
			grants = append(grants, m)
		}
	}
	m := pick(w.rng, grants)
	if m == nil {
		return
	}
	old := pick(w.rng, m.from.grants)
	w.note("%s gets the answer to grant %d again", m.from, old.GetSeq())
	w.drop(m)
	w.answerTo(m, answer{resp: old})
}

// opPair handles two messages at once, as two connections do.
func (w *world) opPair() {
	if len(w.flight) < 2 || w.away {
		return
	}
	a := pick(w.rng, w.flight)
	w.drop(a)
	b := pick(w.rng, w.flight)
	w.drop(b)
	ms := []*message{a, b}
	answers := make([]answer, 2)
	w.note("at once: %s of %s, and %s of %s", a.text(), a.from, b.text(), b.from)
	before := w.cursor(a.from.holder)
	w.do(func() {
		var both sync.WaitGroup
		for i, m := range ms {
			if !w.races {
				answers[i] = w.serve(m)
				if w.off.cursorUnlocked && i == 0 && before == 0 {
					// Two transactions that find no row lock none: the second has read 0 too.
					w.fail(w.db.exec(`UPDATE cursors SET last_seq = 0 WHERE holder = $1`, string(a.from.holder)))
				}
				continue
			}
			both.Go(func() { answers[i] = w.serve(m) })
		}
		both.Wait()
	})
	for i, m := range ms {
		w.served(m, answers[i])
		w.answerTo(m, answers[i])
	}
}

// opOnceMore has a message arrive again that was handled before.
func (w *world) opOnceMore() {
	if m := pick(w.rng, w.past); m != nil {
		w.note("once more, late:")
		w.handle(m.again())
	}
}

func (w *world) opSend() {
	k := pick(w.rng, w.liveWorkers())
	if k == nil {
		return
	}
	from := k.sent
	if acked := k.acked.Load(); w.rng.IntN(3) == 0 && k.sent > acked {
		from = acked + w.rng.Uint64N(k.sent-acked+1)
	}
	rows := 1 + w.rng.IntN(6)
	if w.rng.IntN(4) == 0 {
		rows = 60
	}
	k.send(from, rows)
}

func (w *world) opPass() { w.pass(time.Duration(1+w.rng.IntN(1500)) * time.Millisecond) }

func (w *world) opPassLong() { w.pass(time.Duration(2+w.rng.IntN(40)) * time.Second) }

func (w *world) opRecall() {
	if k := pick(w.rng, w.liveWorkers()); k != nil {
		entity := pick(w.rng, w.entities)
		w.note("%s recalls %s", k, entity)
		k.holds.Recall(entity)
		w.settleDown()
	}
}

func (w *world) opKill() {
	if k := pick(w.rng, w.liveWorkers()); k != nil {
		w.note("%s is killed", k)
		w.fail(k.kill())
		w.settleDown()
	}
}

func (w *world) opStart() {
	p := pick(w.rng, w.pods)
	if i := slices.Index(p.live, nil); i >= 0 {
		w.start(p, i)
		w.settleDown()
	}
}

func (w *world) opLeave() {
	if k := pick(w.rng, w.liveWorkers()); k != nil && !k.leaving {
		k.leave()
	}
}

func (w *world) opLeaveOn() {
	for _, k := range w.liveWorkers() {
		if k.leaving {
			k.leaveOn()
		}
	}
}

func (w *world) opAdopt() { w.adopt(pick(w.rng, w.pods)) }

func (w *world) opAdoptOn() {
	if a := pick(w.rng, w.adopters); a != nil {
		w.adoptOn(a, 1+w.rng.IntN(8), w.rng.IntN(5) == 0)
	}
}

// opAdopterDies kills a collector in the middle of an adoption. The statement that it
// was at may reach the database later.
func (w *world) opAdopterDies() {
	a := pick(w.rng, w.adopters)
	if a == nil {
		return
	}
	w.note("the adopter of %s dies", a.holder)
	a.dead.Release()
	w.forget(a)
	if len(a.rows) > 0 {
		for _, k := range w.workers {
			if k.holder == a.holder {
				w.flight = append(w.flight, &message{from: k, rows: a.rows, at: time.Now()})
				return
			}
		}
	}
}

// opLoseNode takes a pod away with its memory; another one comes.
func (w *world) opLoseNode() {
	i := w.rng.IntN(len(w.pods))
	p := w.pods[i]
	w.note("the node of %s is lost", p)
	w.lostPods[p.uid] = true
	for _, a := range slices.Clone(w.adopters) {
		if a.pod == p {
			a.dead.Release()
			w.forget(a)
		}
	}
	for _, k := range p.live {
		if k != nil {
			k.halt()
		}
	}
	w.fail(os.RemoveAll(p.root))
	w.pods[i] = w.newPod()
	w.settleDown()
}

func (w *world) opAway() {
	w.note("the database is away")
	w.away = true
}

func (w *world) opBack() { w.away = false }

func (w *world) opReap() {
	if w.away {
		return
	}
	var n int
	var err error
	w.do(func() { n, err = w.ledger.Reap(context.Background(), reapMargin) })
	w.note("%d holders are reaped: %v", n, err)
	w.fail(err)
}

// opCutOff lets a worker's records through and then nothing until its holder is reaped.
func (w *world) opCutOff() {
	var busy []*worker
	for _, k := range w.liveWorkers() {
		if k.openRequests() > 0 {
			busy = append(busy, k)
		}
	}
	k := pick(w.rng, busy)
	if k == nil || w.away {
		return
	}
	w.note("%s is cut off", k)
	if k.send(k.acked.Load(), 100) {
		m := w.flight[len(w.flight)-1]
		w.drop(m)
		w.answerTo(m, w.handle(m))
	}
	w.pass(ttl + reapMargin + time.Second)
	w.opReap()
}

func (w *world) opLimit() {
	if w.away {
		return
	}
	limit := pick(w.rng, []int64{0, 20, 60, 300, 2000})
	i := w.rng.IntN(3)
	w.note("limit of %s: %d", w.entities[i], limit)
	w.do(func() {
		if i == 2 {
			w.fail(w.db.exec(`UPDATE budgets SET limit_n = $1 WHERE entity = 'team:t' AND current`, limit))
			return
		}
		value := &limit
		_, err := w.db.store.UpdateKey(context.Background(), w.keys[i], store.KeyPatch{MaxBudget: &value})
		w.fail(err)
	})
}

func (w *world) opReset() {
	if w.away {
		return
	}
	i := w.rng.IntN(3)
	w.note("%s is reset", w.entities[i])
	w.do(func() {
		if i == 2 {
			w.fail(w.db.exec(`WITH old AS (UPDATE budgets SET current = false, until_ts = clock_timestamp() WHERE entity = 'team:t' AND current RETURNING *)
				INSERT INTO budgets (entity, duration, anchor_ts, from_ts, until_ts, limit_n)
				SELECT entity, duration, clock_timestamp(), clock_timestamp(), clock_timestamp() + interval '60 s', limit_n FROM old`))
			return
		}
		zero := int64(0)
		_, err := w.db.store.UpdateKey(context.Background(), w.keys[i], store.KeyPatch{Spend: &zero})
		w.fail(err)
	})
}

// opCorrect is the administrator's correction of what a holder has lost.
func (w *world) opCorrect() {
	if w.away {
		return
	}
	var id leaseID
	w.do(func() {
		err := w.db.conn.QueryRow(context.Background(), `SELECT holder, seq, budget FROM leases WHERE state = 'lost' AND lost > 0
			ORDER BY holder, seq, budget LIMIT 1`).Scan(&id.holder, &id.ref.Seq, &id.ref.Budget)
		if err != nil {
			return
		}
		rest := "0"
		if w.off.correctionKeepsLost {
			rest = "lost"
		}
		w.fail(w.db.exec(`WITH l AS (SELECT * FROM leases WHERE holder = $1 AND seq = $2 AND budget = $3),
			b AS (UPDATE budgets SET spent = budgets.spent - l.lost, lost = budgets.lost - l.lost FROM l WHERE budgets.id = l.budget)
			UPDATE leases SET lost = `+rest+` WHERE holder = $1 AND seq = $2 AND budget = $3`, string(id.holder), int64(id.ref.Seq), id.ref.Budget))
	})
	if id.holder != "" {
		w.note("what %s lost on %v is corrected", id.holder, id.ref)
		w.corrected[id] = true
	}
}

// returnUnmarked returns a lease that no request stands on at the moment and that its
// worker goes on to hold from: that is what a lease not marked returning is.
func (w *world) returnUnmarked() {
	k := pick(w.rng, w.liveWorkers())
	if k == nil || len(k.grants) == 0 || w.away {
		return
	}
	l := pick(w.rng, pick(w.rng, k.grants[max(0, len(k.grants)-5):]).GetLeases())
	if l == nil {
		return
	}
	ref, after := store.LeaseRef{Seq: l.GetSeq(), Budget: l.GetBudgetId()}, uint64(0)
	for _, r := range w.requests {
		if r.k != k || !slices.Contains(r.leases, ref) {
			continue
		}
		if r.state == held || r.state == sent {
			return
		}
		after = max(after, r.seq)
	}
	w.do(func() {
		_, err := w.ledger.Return(context.Background(), k.holder, []store.ReturnLease{{LeaseRef: ref, After: after}})
		w.fail(err)
	})
	w.note("%s returns %v and keeps it", k, ref)
}

// rest lets everything that is under way end and checks what is left.
func (w *world) rest() error {
	w.away = false
	w.note("--- to rest")
	for round := 0; ; round++ {
		w.restStep()
		if _, err := w.check(); err != nil {
			w.fail(err)
		}
		if w.err != nil {
			return w.err
		}
		if w.atRest() {
			break
		}
		if round == 120 {
			return broken{3, "the world does not come to rest"}
		}
	}
	// What was under way for long comes now, and what was handled comes once more.
	for range 2 {
		late := w.past[max(0, len(w.past)-60):]
		w.past = nil
		for _, m := range append(w.flight, late...) {
			w.handle(m.again())
			if w.err != nil {
				return w.err
			}
		}
		w.flight = nil
		for range 2 {
			w.pass(ttl + reapMargin + time.Second)
			w.opReap()
		}
		if err := w.checkRest(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) restStep() {
	w.opDeliverAll()
	for _, r := range w.requests {
		switch r.state {
		case held:
			r.release("the end")
		case sent:
			r.settle(w.rng.Int64N(r.promised + 1))
		case asking:
			r.cancel()
		}
	}
	w.settleDown()
	for _, k := range w.liveWorkers() {
		if !k.leaving {
			k.leave()
		}
		k.send(k.acked.Load(), 100)
		k.leaveOn()
	}
	for _, p := range w.pods {
		if folders, _ := journal.Dead(p.root); len(folders) > 0 {
			w.adopt(p)
		}
	}
	for _, a := range slices.Clone(w.adopters) {
		w.adoptOn(a, 100, false)
	}
	w.pass(503 * time.Millisecond)
}

func (w *world) atRest() bool {
	if len(w.liveWorkers()) > 0 || len(w.adopters) > 0 {
		return false
	}
	for _, p := range w.pods {
		if folders, _ := journal.Dead(p.root); len(folders) > 0 {
			return false
		}
	}
	return true
}
