package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/hold"
	"github.com/penstock-gateway/penstock/internal/journal"
	"github.com/penstock-gateway/penstock/internal/record"
	"github.com/penstock-gateway/penstock/internal/store"
)

type state int

const (
	asking  state = iota // waits for money
	refused              // got none, or gave it back
	held                 // has money, is not in the journal
	sent                 // in the journal, dispatched at least once
	settled              // closed in the journal: its client has the whole answer
	cut                  // its process died after the journal had it
)

// request is what the walk knows of a request by itself, apart from all books.
type request struct {
	w      *world
	n      int
	k      *worker
	want   hold.Want
	cancel context.CancelFunc
	state  state

	h        *hold.Hold
	err      error
	heldAt   time.Time
	leases   []store.LeaseRef
	promised int64 // what its dispatches may cost together, within their caps
	journal  int64 // hold in the journal
	ticket   record.Ticket
	cost     int64
	over     int64  // the part of cost beyond the caps
	seq      uint64 // of its record
	number   uint64 // given at open, by a mutation
	poison   bool
}

// leaseID names a lease in the whole database.
type leaseID struct {
	holder store.HolderID
	ref    store.LeaseRef
}

func (r *request) id() string { return fmt.Sprintf("r%d", r.n) }

func (w *world) request(id string) *request {
	var n int
	if _, err := fmt.Sscanf(id, "r%d", &n); err != nil || n >= len(w.requests) {
		return nil
	}
	return w.requests[n]
}

func sortRequests(rs []*request) {
	slices.SortFunc(rs, func(a, b *request) int { return cmp.Compare(a.n, b.n) })
}

// ask lets a request ask for money. It may get it at once.
func (w *world) ask(k *worker, want hold.Want) *request {
	ctx, cancel := context.WithCancel(context.Background())
	r := &request{w: w, n: len(w.requests), k: k, want: want, cancel: cancel}
	w.requests = append(w.requests, r)
	w.note("%s: %s wants %d (at least %d) of %v", k, r.id(), want.Amount, want.Min, want.Entities)
	go func() {
		r.h, r.err = k.holds.Hold(ctx, want)
		r.heldAt = time.Now()
		w.mu.Lock()
		w.answered = append(w.answered, r)
		w.mu.Unlock()
	}()
	w.settleDown()
	return r
}

// taken notes what a request that asked for money was told.
func (w *world) taken(r *request) {
	if r.state != asking { // its process died meanwhile
		return
	}
	if r.err != nil {
		w.note("%s: %s got none: %v", r.k, r.id(), r.err)
		r.state = refused
		return
	}
	r.state, r.promised = held, r.h.Amount()
	if len(r.want.Entities) == 0 {
		r.promised = 0
	}
	for _, l := range r.h.Leases() {
		r.leases = append(r.leases, refOf(l))
	}
	w.note("%s: %s holds %d on %v", r.k, r.id(), r.h.Amount(), r.leases)
	if end := w.ended(r); end != "" && w.err == nil {
		w.err = broken{2, fmt.Sprintf("%s was given money of %s", r.id(), end)}
	}
}

// ended names a lease of r whose period was over when r got it.
func (w *world) ended(r *request) string {
	for _, ref := range r.leases {
		if end := w.ends[ref.Budget]; !end.IsZero() && !r.heldAt.Before(end) {
			return fmt.Sprintf("budget %d, %s after its period's end", ref.Budget, r.heldAt.Sub(end))
		}
	}
	return ""
}

// padding makes records as long as a journal of the smallest segments takes.
var padding = []string{strings.Repeat("x", 120), strings.Repeat("y", 120), strings.Repeat("z", 120), strings.Repeat("t", 120)}

// record is the request's record at this cost.
func (r *request) record(cost, held int64) *ledgerv1.SpendRecord {
	rec := &ledgerv1.SpendRecord{
		RequestId: r.id(), StartMs: time.Now().UnixMilli(), EndMs: time.Now().UnixMilli(), Status: ledgerv1.SpendRecord_STATUS_SUCCESS,
		CostNano: cost, HoldNano: held, Charges: r.h.Charges(cost), Tags: padding, HttpStatus: 200,
	}
	if r.poison {
		rec.HttpStatus = 5000 // what no database takes for a status
	}
	return rec
}

// open journals the request and dispatches it.
func (r *request) open() {
	ticket, err := r.k.records.Open(r.record(r.promised, r.promised))
	if errors.Is(err, journal.ErrFull) {
		r.release("the journal is full")
		return
	}
	r.w.fail(err)
	r.k.opened++
	r.ticket, r.journal, r.state, r.number = ticket, r.promised, sent, r.k.opened
	r.w.note("%s: %s is sent", r.k, r.id())
}

// attempt dispatches once more, after one that may have been billed.
func (r *request) attempt(amount int64) {
	if len(r.leases) == 0 {
		amount = 0 // nothing is held, but the journal hears of it
	}
	total := r.promised + amount
	if !r.w.off.attemptUnheld {
		if err := r.h.Raise(context.Background(), total); err != nil {
			return
		}
		if err := r.k.records.Attempt(r.ticket, r.record(total, total)); err != nil {
			return
		}
		r.journal = total
	}
	r.promised = total
	r.w.note("%s: %s is sent again, %d in total", r.k, r.id(), total)
}

// settle ends the request: the upstream has billed cost.
func (r *request) settle(cost int64) {
	if len(r.leases) == 0 {
		cost = 0
	}
	r.cost, r.over = cost, max(0, cost-r.promised)
	seq, err := r.k.records.Close(r.ticket, r.record(cost, r.h.Amount()))
	if err != nil {
		r.w.fail(err)
		return
	}
	if r.w.off.numberAtOpen {
		seq = r.number
	}
	r.state, r.seq = settled, seq
	r.w.note("%s: %s costs %d, record %d", r.k, r.id(), cost, seq)
	if r.w.off.costAtAck {
		cost = 0
	}
	r.h.Settle(cost, seq)
	r.w.settleDown()
}

// release gives the money of a request back that was never sent.
func (r *request) release(why string) {
	r.w.note("%s: %s is not sent: %s", r.k, r.id(), why)
	r.state, r.promised = refused, 0
	r.h.Release()
	r.w.settleDown()
}

// died is what the end of its process makes of a request.
func (r *request) died() {
	switch r.state {
	case asking, held:
		r.state, r.promised = refused, 0
	case sent:
		r.state = cut
	}
	r.cancel()
}

// within is what of the request counts against its budgets' limits.
func (r *request) within() int64 {
	switch r.state {
	case settled:
		return r.cost - r.over
	case held, sent, cut:
		return r.promised
	}
	return 0
}

// booked is what the request's one record must say.
func (r *request) booked() (cost int64, status store.Status) {
	if r.state == cut {
		return r.journal, store.StatusInterrupted
	}
	return r.cost, store.StatusSuccess
}
