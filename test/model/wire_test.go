package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/store"
)

var (
	errLost = errors.New("connection lost")
	errGone = errors.New("process is gone")
)

// message is a call of a worker on its way to the database. It may arrive later than
// its caller waits, and more than once.
type message struct {
	from  *worker
	req   proto.Message
	rows  []store.Record // instead of req: a batch of records
	at    time.Time      // when it left
	reply chan answer    // nil: a copy, nobody waits
	deaf  *atomic.Bool   // the caller has given up
}

type answer struct {
	resp any
	err  error
}

// reply is an answer that is late.
type reply struct {
	to *message
	answer
}

func (m *message) waited() bool { return m.reply != nil && !m.deaf.Load() }

// again is a copy of m that nobody waits for.
func (m *message) again() *message {
	c := *m
	c.reply = nil
	return &c
}

func (m *message) kind() int {
	switch m.req.(type) {
	case *ledgerv1.HeartbeatRequest:
		return 1
	case *ledgerv1.GrantRequest:
		return 2
	case *ledgerv1.ReturnRequest:
		return 3
	case *ledgerv1.TrimRequest:
		return 4
	}
	return 5
}

func (m *message) text() string {
	switch req := m.req.(type) {
	case *ledgerv1.HeartbeatRequest:
		return "heartbeat"
	case *ledgerv1.GrantRequest:
		s := fmt.Sprintf("grant %d", req.GetSeq())
		for _, want := range req.GetWants() {
			s += fmt.Sprintf(" [%d-%d+%d of %v]", want.GetMinAmountNano(), want.GetAmountNano(), want.GetDesiredNano(), want.GetEntities())
		}
		return s
	case *ledgerv1.ReturnRequest:
		s := "return"
		for _, l := range req.GetLeases() {
			s += fmt.Sprintf(" %d/%d after %d", l.GetLease().GetSeq(), l.GetLease().GetBudgetId(), l.GetAfterSeq())
		}
		return s
	case *ledgerv1.TrimRequest:
		s := "trim"
		for _, l := range req.GetLeases() {
			s += fmt.Sprintf(" %d/%d to %d", l.GetLease().GetSeq(), l.GetLease().GetBudgetId(), l.GetToNano())
		}
		return s
	}
	return fmt.Sprintf("records %d to %d", m.rows[0].Seq, m.rows[len(m.rows)-1].Seq)
}

// sortMessages gives those of one moment an order that does not hang on goroutines.
func sortMessages(ms []*message) {
	slices.SortStableFunc(ms, func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.from.number, b.from.number), a.at.Compare(b.at), cmp.Compare(a.kind(), b.kind()))
	})
}

// client is a worker's connection to its collector: what is asked waits until the
// walk has it handled.
type client struct {
	ledgerv1.LedgerClient // what is not asked for here is not called

	k *worker
}

func (c client) Heartbeat(ctx context.Context, req *ledgerv1.HeartbeatRequest, _ ...grpc.CallOption) (*ledgerv1.HeartbeatResponse, error) {
	return ask[*ledgerv1.HeartbeatResponse](ctx, c.k, req)
}

func (c client) Grant(ctx context.Context, req *ledgerv1.GrantRequest, _ ...grpc.CallOption) (*ledgerv1.GrantResponse, error) {
	return ask[*ledgerv1.GrantResponse](ctx, c.k, req)
}

func (c client) Return(ctx context.Context, req *ledgerv1.ReturnRequest, _ ...grpc.CallOption) (*ledgerv1.ReturnResponse, error) {
	return ask[*ledgerv1.ReturnResponse](ctx, c.k, req)
}

func (c client) Trim(ctx context.Context, req *ledgerv1.TrimRequest, _ ...grpc.CallOption) (*ledgerv1.TrimResponse, error) {
	return ask[*ledgerv1.TrimResponse](ctx, c.k, req)
}

func ask[T any](ctx context.Context, k *worker, req proto.Message) (none T, err error) {
	if k.dead.Load() {
		return none, errGone
	}
	m := &message{from: k, req: proto.Clone(req), at: time.Now(), reply: make(chan answer, 1), deaf: new(atomic.Bool)}
	k.w.mu.Lock()
	k.w.posted = append(k.w.posted, m)
	k.w.mu.Unlock()
	select {
	case a := <-m.reply:
		if a.err != nil {
			return none, a.err
		}
		return a.resp.(T), nil
	case <-ctx.Done():
		m.deaf.Store(true)
		return none, ctx.Err()
	}
}

// answerTo hands an answer to the caller, if it still waits.
func (w *world) answerTo(m *message, a answer) {
	switch {
	case m.rows != nil:
		if a.err == nil && m.reply != nil && !m.from.dead.Load() {
			m.from.ack(a.resp.(uint64))
		}
	case m.waited():
		if g, ok := a.resp.(*ledgerv1.GrantResponse); ok {
			a.resp = w.received(m, g)
		}
		m.reply <- a
	}
	w.settleDown()
}

// received is a grant's answer as it arrives. Mutations of the worker's part of the
// rules change it here, since the manager itself has no switch for them.
func (w *world) received(m *message, g *ledgerv1.GrantResponse) *ledgerv1.GrantResponse {
	g = proto.Clone(g).(*ledgerv1.GrantResponse)
	m.from.grants = append(m.from.grants, g)
	seq := m.req.(*ledgerv1.GrantRequest).GetSeq()
	if w.off.anyReply {
		g.Seq = seq
	}
	if w.off.deadlineFromReply {
		for _, l := range g.Leases {
			if l.UntilInMs > 0 {
				l.UntilInMs += time.Since(m.from.firstSent[seq]).Milliseconds()
			}
		}
	}
	if w.off.lostLeaseForgotten {
		g.Leases = slices.DeleteFunc(g.Leases, func(l *ledgerv1.Lease) bool { return l.GetState() == ledgerv1.Lease_STATE_LOST })
	}
	return g
}

// handle does what m asks for and returns the answer.
func (w *world) handle(m *message) answer {
	if g, ok := m.req.(*ledgerv1.GrantRequest); ok && m.from.firstSent[g.GetSeq()].IsZero() {
		m.from.firstSent[g.GetSeq()] = m.at
	}
	if w.away {
		return answer{err: errLost}
	}
	var a answer
	w.do(func() { a = w.serve(m) })
	w.served(m, a)
	return a
}

// served keeps a message that was handled and notes what became of it.
func (w *world) served(m *message, a answer) {
	w.past = append(w.past, m.again())
	if a.err != nil {
		w.note("%s %s: %v", m.from, m.text(), a.err)
		w.fail(a.err)
		return
	}
	switch resp := a.resp.(type) {
	case *ledgerv1.GrantResponse:
		s := resp.GetStatus().String()
		for _, l := range resp.GetLeases() {
			s += fmt.Sprintf(" %d/%d %d %s", l.GetSeq(), l.GetBudgetId(), l.GetGrantedNano(), l.GetState())
		}
		w.note("%s %s: %s", m.from, m.text(), s)
	case *ledgerv1.ReturnResponse:
		w.note("%s %s: %d pending", m.from, m.text(), len(resp.GetPending()))
	case uint64:
		w.note("%s %s: cursor %d", m.from, m.text(), resp)
	default:
		w.note("%s %s: done", m.from, m.text())
	}
}
