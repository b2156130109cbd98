package limit

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worker is a started Manager over a ledger.
func worker(tb testing.TB, l *ledgertest.Ledger, index uint32) *Manager {
	tb.Helper()
	m := New(Config{Client: l.Client(), Holder: &ledgerv1.Holder{PodUid: "pod", Index: index, Epoch: make([]byte, 16)}, CallTimeout: time.Second})
	if err := m.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = m.Stop(ctx)
	})
	return m
}

func ledgerOver(window time.Duration) *ledgertest.Ledger {
	l := ledgertest.New(ledgertest.Config{})
	l.Rates.Window = window
	return l
}

func admit(tb testing.TB, m *Manager, tokens int64, subjects ...Subject) *Pass {
	tb.Helper()
	p, err := m.Admit(tb.Context(), Want{Subjects: subjects, Tokens: tokens})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func refused(tb testing.TB, m *Manager, tokens int64, subjects ...Subject) *Refused {
	tb.Helper()
	_, err := m.Admit(tb.Context(), Want{Subjects: subjects, Tokens: tokens})
	var r *Refused
	if !errors.As(err, &r) {
		tb.Fatalf("admitted or %v, want a refusal", err)
	}
	return r
}

func stop(t *testing.T, m *Manager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	if err := m.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// A refusal tells which limit, whose, and when to come again; it consumes nothing of the
// other limits.
func TestRefusals(t *testing.T) {
	t.Parallel()
	l := ledgerOver(time.Minute)
	m := worker(t, l, 0)
	key := Subject{Name: "key:a", RPM: 2}
	team := Subject{Name: "team:b", RPM: 100, TPM: 1000}
	admit(t, m, 400, key, team).Release()
	admit(t, m, 400, key, team).Release()
	r := refused(t, m, 100, key, team)
	if r.Kind != RPM || r.Subject != "key:a" || r.Limit != 2 || r.Never || r.RetryAfter < 55*time.Second || r.RetryAfter > 65*time.Second {
		t.Errorf("%+v, want the key's rpm, for a minute", r)
	}
	if left := m.Remaining("team:b").Requests.Remaining; left != 98 {
		t.Errorf("%d requests left of the team, want 98", left)
	}
	if r := refused(t, m, 300, team); r.Kind != TPM || r.Remaining != 200 || r.RetryAfter < 55*time.Second {
		t.Errorf("%+v, want the team's tpm, with 200 left", r)
	}
	if r := refused(t, m, 1001, team); !r.Never || r.Kind != TPM {
		t.Errorf("%+v, want never: more than the limit", r)
	}
	if r := refused(t, m, 0, Subject{Name: "key:c", RPM: -1}); !r.Never || r.Limit != 0 {
		t.Errorf("%+v, want never: nothing is admitted", r)
	}
	admit(t, m, 0, Subject{Name: "key:free"}).Release()
	if l.Calls("Limits") > 8 {
		t.Errorf("%d calls", l.Calls("Limits"))
	}
	levels := m.Remaining("team:b").Tokens
	if levels.Limit != 1000 || levels.Remaining != 200 || levels.Reset < 55*time.Second || levels.Reset > 95*time.Second {
		t.Errorf("%+v", levels)
	}
	stop(t, m)
}

// A request that is refused elsewhere gives back all it took, and a cheap one makes room.
func TestCancelAndSettle(t *testing.T) {
	t.Parallel()
	l := ledgerOver(time.Minute)
	m, other := worker(t, l, 0), worker(t, l, 1)
	s := Subject{Name: "key:a", RPM: 1, TPM: 1000, Parallel: 1}
	admit(t, m, 1000, s).Cancel()
	admit(t, m, 1000, s).Cancel()
	stop(t, m)
	p := admit(t, other, 1000, s) // all of it is free again
	p.Settle(300)
	p.Settle(400)
	p.Release()
	stop(t, other)
	if n := l.Rates.Counted("key:a", ledgerv1.LimitKind_LIMIT_KIND_TOKENS); n != 400 {
		t.Errorf("%d tokens counted, want the 400 that were used", n)
	}
	if n := l.Rates.Counted("key:a", ledgerv1.LimitKind_LIMIT_KIND_PARALLEL); n != 0 {
		t.Errorf("%d slots are out", n)
	}
}

// What a request takes beyond its charge is missing afterwards.
func TestOvershoot(t *testing.T) {
	t.Parallel()
	l := ledgerOver(time.Minute)
	m := worker(t, l, 0)
	s := Subject{Name: "key:a", TPM: 1000}
	p, other := admit(t, m, 500, s), admit(t, m, 200, s)
	p.Settle(2500)
	p.Settle(0) // too late for the overshoot, and others' charges stay
	p.Settle(2000)
	p.Release()
	other.Release()
	stop(t, m)
	if n := l.Rates.Counted("key:a", ledgerv1.LimitKind_LIMIT_KIND_TOKENS); n != 4200 {
		t.Errorf("%d tokens counted, want 4200", n)
	}
}

// A slot goes from one worker to the next without a refusal, as a client that sends one
// request after the other through a balancer needs it.
func TestSlotMoves(t *testing.T) {
	t.Parallel()
	l := ledgerOver(time.Minute)
	a, b := worker(t, l, 0), worker(t, l, 1)
	s := Subject{Name: "key:a", Parallel: 1}
	for range 10 {
		admit(t, a, 0, s).Release()
		admit(t, b, 0, s).Release()
	}
	p := admit(t, a, 0, s)
	if r := refused(t, b, 0, s); r.Kind != Parallel || r.RetryAfter != time.Second {
		t.Errorf("%+v, want no slot", r)
	}
	if r := refused(t, a, 0, s); r.Kind != Parallel {
		t.Errorf("%+v, want no slot", r)
	}
	p.Release()
	l.Rates.Kill(&ledgerv1.Holder{PodUid: "pod", Epoch: make([]byte, 16)}) // not told: a's slot is free whatever a says
	admit(t, b, 0, s).Release()
}

// Whoever waits in the worker gets the slot that is released in it.
func TestSlotIsHandedOver(t *testing.T) {
	t.Parallel()
	l := ledgerOver(time.Minute)
	m := worker(t, l, 0)
	s := Subject{Name: "key:a", Parallel: 1}
	p := admit(t, m, 0, s)
	done := make(chan error, 1)
	go func() {
		next, err := m.Admit(t.Context(), Want{Subjects: []Subject{s}})
		if err == nil {
			next.Release()
		}
		done <- err
	}()
	for waiting := false; !waiting; {
		m.mu.Lock()
		waiting = m.book.waiters.Len() > 0
		m.mu.Unlock()
	}
	p.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// While the ledger is away, what is at hand is used, then requests get ErrUnavailable and
// never pass unlimited.
func TestLedgerAway(t *testing.T) {
	t.Parallel()
	l := ledgerOver(time.Minute)
	m := New(Config{Client: l.Client(), Holder: &ledgerv1.Holder{PodUid: "pod", Epoch: make([]byte, 16)}, MaxWait: 50 * time.Millisecond})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := Subject{Name: "key:a", RPM: 100}
	admit(t, m, 0, s).Release()
	l.GoAway()
	served := 0
	var err error
	for err == nil {
		var p *Pass
		if p, err = m.Admit(t.Context(), Want{Subjects: []Subject{s}}); err == nil {
			p.Release()
			served++
		}
	}
	if !errors.Is(err, ErrUnavailable) || served == 0 || served > 12 {
		t.Errorf("%d served, then %v; want some, then unavailable", served, err)
	}
	l.ComeBack()
	for err != nil { // until the next attempt
		var p *Pass
		if p, err = m.Admit(t.Context(), Want{Subjects: []Subject{s}}); err == nil {
			p.Release()
		} else if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	stop(t, m)
}

// A lowered limit counts at once.
func TestLoweredLimit(t *testing.T) {
	t.Parallel()
	l := ledgerOver(time.Minute)
	m := worker(t, l, 0)
	for range 3 {
		admit(t, m, 0, Subject{Name: "key:a", RPM: 800}).Release()
	}
	m.Recall("key:a")
	m.RecallAll()
	if r := refused(t, m, 0, Subject{Name: "key:a", RPM: 3}); r.Limit != 3 || r.Kind != RPM {
		t.Errorf("%+v, want the new limit", r)
	}
	admit(t, m, 0, Subject{Name: "key:a", RPM: 4}).Release()
}

// A waiter that leaves takes nothing with it.
func TestLeave(t *testing.T) {
	t.Parallel()
	l := ledgerOver(time.Minute)
	l.GoAway()
	m := worker(t, l, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Admit(ctx, Want{Subjects: []Subject{{Name: "key:a", Parallel: 1}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	l.ComeBack()
	p := admit(t, m, 0, Subject{Name: "key:a", Parallel: 1})
	p.Release()
	stop(t, m)
	if _, err := m.Admit(t.Context(), Want{Subjects: []Subject{{Name: "key:a", RPM: 1}}}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v, want unavailable after the stop", err)
	}
}

// Many goroutines on four workers over a bad wire: no limit is passed, and at the end
// nothing is out.
func TestFaults(t *testing.T) {
	t.Parallel()
	const window, rpm, parallel = 2 * time.Second, 100, 7
	l := ledgerOver(window)
	l.SetPlan(func(string) ledgertest.Fault {
		return ledgertest.Fault{
			Delay: time.Duration(rand.IntN(3)) * time.Millisecond, LoseRequest: rand.IntN(15) == 0,
			LoseReply: rand.IntN(15) == 0, Duplicate: rand.IntN(10) == 0,
		}
	})
	var running atomic.Int64
	var mu sync.Mutex
	var admitted []time.Time
	var wg sync.WaitGroup
	workers := make([]*Manager, 4)
	until := time.Now().Add(2 * window)
	for i := range workers {
		workers[i] = worker(t, l, uint32(i))
		for range 8 {
			wg.Go(func() {
				for time.Now().Before(until) {
					p, err := workers[i].Admit(t.Context(), Want{Subjects: []Subject{{Name: "key:a", RPM: rpm}, {Name: "team:b", Parallel: parallel, TPM: 1 << 40}}, Tokens: 10})
					if err != nil {
						continue
					}
					at := time.Now()
					if n := running.Add(1); n > parallel {
						t.Errorf("%d requests run, limit %d", n, parallel)
					}
					mu.Lock()
					admitted = append(admitted, at)
					mu.Unlock()
					p.Settle(rand.Int64N(20))
					running.Add(-1)
					p.Release()
				}
			})
		}
	}
	wg.Wait()
	for _, m := range workers {
		stop(t, m)
	}
	if err := errors.Join(l.Rates.Err(), l.Err()); err != nil {
		t.Error(err)
	}
	if n := l.Rates.Counted("team:b", ledgerv1.LimitKind_LIMIT_KIND_PARALLEL); n != 0 {
		t.Errorf("%d slots are out", n)
	}
	if n := most(admitted, window); n > rpm || n < rpm/2 {
		t.Errorf("%d admitted in a window, limit %d", n, rpm)
	}
}

// most is the greatest number of times in any window; a millisecond is left to those who
// looked at the clock after they had been admitted.
func most(at []time.Time, window time.Duration) int {
	best := 0
	for _, from := range at {
		n := 0
		for _, x := range at {
			if d := x.Sub(from); d >= 0 && d < window-time.Millisecond {
				n++
			}
		}
		best = max(best, n)
	}
	return best
}

// The p95 is never below the true one, and at most an eighth above it.
func TestOutputs(t *testing.T) {
	t.Parallel()
	var o Outputs
	if n := o.Expect("key:a", 500); n != 500 {
		t.Errorf("an unknown key is charged %d, want its cap", n)
	}
	for i := range int64(1000) {
		o.Observe("key:a", i+1)
	}
	if n := o.Expect("key:a", 10_000); n < 950 || n > 1090 {
		t.Errorf("p95 of 1 to 1000 is %d", n)
	}
	if n := o.Expect("key:a", 100); n != 100 {
		t.Errorf("%d is charged, want the cap", n)
	}
	for range 3000 { // what was fades
		o.Observe("key:a", 10)
	}
	if n := o.Expect("key:a", 10_000); n < 10 || n > 12 {
		t.Errorf("p95 of many tens is %d", n)
	}
	for i := range int64(1 << 20) {
		if b := bucket(i); upper(b) < i || b > 0 && upper(b-1) >= i {
			t.Fatalf("%d tokens are in bucket %d, which ends at %d", i, b, upper(b))
		}
	}
	o.Observe("key:b", -5)
	o.Observe("key:b", 1<<62)
}

// The quiet path allocates nothing.
func TestAdmitAllocates(t *testing.T) {
	m, want := quiet(t)
	if n := testing.AllocsPerRun(1000, func() {
		p, err := m.Admit(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		p.Settle(want.Tokens - 1)
		p.Release()
	}); n > 0 {
		t.Errorf("%v allocations per request, want none", n)
	}
}

// quiet is a Manager that has much at hand.
func quiet(tb testing.TB) (*Manager, Want) {
	l := ledgerOver(time.Hour)
	m := worker(tb, l, 0)
	want := Want{Tokens: 100, Subjects: []Subject{
		{Name: "key:0123456789012345678901234567890123456789012345678901234567890123", RPM: 1 << 40, TPM: 1 << 50, Parallel: 1 << 40},
		{Name: "team:b", RPM: 1 << 40, TPM: 1 << 50},
	}}
	admit(tb, m, want.Tokens, want.Subjects...).Release()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.book.subjects {
		for _, p := range []*permits{&s.requests, &s.tokens} {
			p.leases = append(p.leases, &lease{granted: 1 << 50, deadline: never / 2, lead: time.Hour})
		}
		s.slots.have, s.slots.told, s.slots.shelf = 1000, 1000, 1000
	}
	return m, want
}

func BenchmarkAdmitRelease(b *testing.B) {
	m, all := quiet(b)
	for name, want := range map[string]Want{
		"key":          {Tokens: all.Tokens, Subjects: all.Subjects[:1]},
		"key and team": all,
	} {
		b.Run(name, func(b *testing.B) {
			ctx := b.Context()
			b.SetParallelism(16)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p, err := m.Admit(ctx, want)
					if err != nil {
						b.Error(err)
						return
					}
					p.Release()
				}
			})
		})
	}
}
