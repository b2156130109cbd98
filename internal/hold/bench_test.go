package hold

import (
	"sync/atomic"
	"testing"

	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

// quiet is a Manager with one big lease at hand.
func quiet(tb testing.TB) *Manager {
	l := ledgertest.New(ledgertest.Config{Spare: func(_, _, free int64, _ int) int64 { return free }})
	l.AddBudget("key:a", 1<<60)
	epoch := [16]byte{1}
	w := New(Config{Client: l.Client(), Holder: holderOf(epoch[:])})
	if err := w.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	h, err := w.Hold(tb.Context(), oneCent)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		h.Release()
		_ = w.Stop(tb.Context()) // ends at once: the test's context is over
	})
	return w
}

// The quiet path allocates the Hold and nothing else.
func TestHoldAllocates(t *testing.T) {
	m := quiet(t)
	n := testing.AllocsPerRun(1000, func() {
		h, err := m.Hold(t.Context(), oneCent)
		if err != nil {
			t.Fatal(err)
		}
		h.Settle(cents/2, 1)
	})
	if n > 1 {
		t.Errorf("%v allocations per hold, want 1", n)
	}
}

func BenchmarkHoldSettle(b *testing.B) {
	m := quiet(b)
	ctx := b.Context()
	var seq atomic.Uint64
	b.SetParallelism(8) // 16 goroutines on two cores
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			h, err := m.Hold(ctx, oneCent)
			if err != nil {
				b.Error(err)
				return
			}
			h.Settle(1, seq.Add(1))
		}
	})
}
