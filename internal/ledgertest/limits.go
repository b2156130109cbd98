package ledgertest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/ledger"
)

// Limits keeps rate limits in memory, by the rules of internal/ledger. The zero value is
// useful. It remembers every limit that it passed; see [Limits.Err].
type Limits struct {
	// Window is what limits are counted over; default one minute.
	Window time.Duration
	// Now is the database's clock; default time.Now.
	Now func() time.Time

	mu     sync.Mutex
	meters map[meterKey]ledger.Meter
	seqs   map[string]uint64
	dead   map[string]bool
	errs   []error
}

type meterKey struct {
	subject string
	kind    ledgerv1.LimitKind
}

// Kill tells that a holder's process has ended.
func (l *Limits) Kill(h *ledgerv1.Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead == nil {
		l.dead = map[string]bool{}
	}
	l.dead[holderID(h)] = true
}

// Counted is what counts against one limit now.
func (l *Limits) Counted(subject string, kind ledgerv1.LimitKind) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counted(l.meters[meterKey{subject, kind}])
}

func (l *Limits) counted(m ledger.Meter) int64 {
	sum, now := int64(0), l.now().UnixMicro()
	for _, c := range m.Cells {
		if c.Until > now {
			sum += c.Amount
		}
	}
	for _, s := range m.Slots {
		if s.Ends > now && !l.dead[s.Holder] {
			sum += s.Count
		}
	}
	return sum
}

// Err returns the first limit that was passed by a grant.
func (l *Limits) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) == 0 {
		return nil
	}
	return l.errs[0]
}

func (l *Limits) now() time.Time {
	if l.Now == nil {
		return time.Now()
	}
	return l.Now()
}

// Sync answers one call.
func (l *Limits) Sync(in *ledgerv1.LimitsRequest) *ledgerv1.LimitsResponse {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.meters == nil {
		l.meters, l.seqs = map[meterKey]ledger.Meter{}, map[string]uint64{}
	}
	w := ledger.Window{Length: l.Window}
	if w.Length == 0 {
		w.Length = time.Minute
	}
	out := &ledgerv1.LimitsResponse{
		Seq: in.GetSeq(), WindowMs: w.Length.Milliseconds(), ShortMs: w.Short().Milliseconds(),
		CalmMs: w.Calm().Milliseconds(), CellMs: w.Cell().Milliseconds(),
	}
	holder := holderID(in.GetHolder())
	if in.GetSeq() <= l.seqs[holder] {
		out.Replayed = true
		return out
	}
	l.seqs[holder] = in.GetSeq()
	st := ledger.LimitState{Now: l.now().UnixMicro(), Holders: len(l.seqs) - len(l.dead), Dead: l.dead, Window: w}
	for _, m := range in.GetMeters() {
		st.Meters = append(st.Meters, l.meters[meterKey{m.GetSubject(), m.GetKind()}])
	}
	sync := syncOf(holder, in)
	plan := ledger.DecideLimits(sync, st)
	for i, m := range in.GetMeters() {
		l.meters[meterKey{m.GetSubject(), m.GetKind()}] = plan.Meters[i]
		if n := l.counted(plan.Meters[i]); plan.Grants[i].Amount > 0 && n > m.GetLimit() {
			l.errs = append(l.errs, fmt.Errorf("%s %v: %d counted, limit %d", m.GetSubject(), m.GetKind(), n, m.GetLimit()))
		}
	}
	answer(out, plan)
	return out
}

func syncOf(holder string, in *ledgerv1.LimitsRequest) ledger.LimitSync {
	s := ledger.LimitSync{
		Holder: holder, Use: time.Duration(in.GetUseMs()) * time.Millisecond, Longest: time.Duration(in.GetLongestMs()) * time.Millisecond,
	}
	for _, m := range in.GetMeters() {
		a := ledger.LimitAsk{
			Subject: m.GetSubject(), Kind: ledger.LimitKind(m.GetKind()), Limit: m.GetLimit(), Charge: m.GetCharge(),
			Have: m.GetHave(), Short: m.GetDesiredShort(), Calm: m.GetDesiredCalm(),
		}
		for _, r := range m.GetReturns() {
			a.Returns = append(a.Returns, ledger.PermitReturn{Cell: r.GetCell(), Granted: r.GetGranted(), Used: r.GetUsed()})
		}
		s.Asks = append(s.Asks, a)
	}
	for _, w := range in.GetWants() {
		want := ledger.LimitWant{}
		for _, n := range w.GetNeeds() {
			want = append(want, ledger.LimitNeed{Ask: int(n.GetMeter()), Amount: n.GetAmount()})
		}
		s.Wants = append(s.Wants, want)
	}
	return s
}

func answer(out *ledgerv1.LimitsResponse, plan ledger.LimitPlan) {
	for _, g := range plan.Grants {
		out.Grants = append(out.Grants, &ledgerv1.LimitGrant{
			Amount: g.Amount, Cell: g.Cell, Settled: g.Settled, UseMs: g.Use.Milliseconds(), KeepMs: g.Keep.Milliseconds(),
			Free: g.Free, ResetMs: g.Reset.Milliseconds(), Calm: g.Calm, Rest: g.Rest,
		})
	}
	for _, v := range plan.Verdicts {
		retry := v.Retry.Milliseconds() + 1 // up: a retry must not come too early
		if v.Retry <= 0 {
			retry = int64(v.Retry)
		}
		out.Verdicts = append(out.Verdicts, &ledgerv1.LimitVerdict{Granted: v.Granted, Meter: uint32(v.Ask), RetryMs: retry})
	}
}

// Limits implements ledgerv1.LedgerServer.
func (l *Ledger) Limits(_ context.Context, in *ledgerv1.LimitsRequest) (*ledgerv1.LimitsResponse, error) {
	l.mu.Lock()
	err := l.arrive("Limits")
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return l.Rates.Sync(in), nil
}

func (c *client) Limits(ctx context.Context, in *ledgerv1.LimitsRequest, _ ...grpc.CallOption) (*ledgerv1.LimitsResponse, error) {
	return call(ctx, c.l, "Limits", in, c.l.Limits)
}
