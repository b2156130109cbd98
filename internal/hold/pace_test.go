package hold

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

// A busy key's lease lasts for paceWindow, whatever the size of its requests: a grant
// every few requests would make each of those wait for the database.
func TestBusyKeyAsksSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		l.AddBudget("key:a", 1_000_000*cents)
		w := newWorker(t, l, 0, nil)
		const perSecond, seconds = 1000, 20
		for range perSecond * seconds {
			w.settle(w.must(Want{Entities: []string{"key:a"}, Amount: cents}), cents)
			time.Sleep(time.Second / perSecond)
		}
		// It doubles from few holds on until it has the whole window.
		if n := l.Calls("Grant"); n > 12+seconds {
			t.Errorf("%d grants for %d holds", n, perSecond*seconds)
		}
		w.stop()
		settled(t, l, "key:a", perSecond*seconds*cents)
	})
}

func TestPace(t *testing.T) {
	t.Parallel()
	const half = paceWindow / 2
	for _, c := range []struct {
		why  string
		adds []time.Duration // when 100 were spent
		at   time.Duration
		want int64
	}{
		{"nothing was spent", nil, half, 0},
		{"the current window counts in full", []time.Duration{0, half}, half, 200},
		{"of the one before, what is not too old", []time.Duration{0}, paceWindow + half, 50},
		{"both", []time.Duration{0, paceWindow}, paceWindow + half, 150},
		{"what is older than two windows is forgotten", []time.Duration{0}, 2 * paceWindow, 0},
		{"after a long pause too", []time.Duration{0, 10*paceWindow + half}, 10*paceWindow + half, 100},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			var p pace
			for _, at := range c.adds {
				p.add(100, at)
			}
			if got := p.recent(c.at); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// A key that was busy and is slow now does not keep what it needed: others wait for it.
func TestOversizedLeaseIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		l.AddBudget("key:a", 1_000_000*cents)
		w := newWorker(t, l, 0, nil)
		want := Want{Entities: []string{"key:a"}, Amount: cents}
		for range 4000 {
			w.settle(w.must(want), cents)
			time.Sleep(time.Millisecond)
		}
		for _, c := range []struct {
			why  string
			hold func() // keeps the lease in use
		}{
			{"a request each second", func() {}},
			{"and a long stream on it", func() { w.must(want) }},
		} {
			c.hold()
			for range 10 {
				w.settle(w.must(want), cents)
				time.Sleep(time.Second)
			}
			if b := l.Budget("key:a"); b.Leased > 20*cents {
				t.Errorf("%s: %d holds are leased", c.why, b.Leased/cents)
			}
		}
	})
}

// A lowered limit counts from the next request on, whatever is leased.
func TestRecall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why    string
		open   bool // a hold stands on the lease
		recall func(*worker)
	}{
		{"an idle lease is returned", false, func(w *worker) { w.Recall("key:a") }},
		{"one in use is trimmed to what is held", true, func(w *worker) { w.Recall("key:a") }},
		{"all of them", true, func(w *worker) { w.RecallAll() }},
		{"an entity without leases has nothing", false, func(w *worker) { w.Recall("key:a"); w.Recall("key:other") }},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := ledgertest.New(ledgertest.Config{})
				l.AddBudget("key:a", 1000*cents)
				w := newWorker(t, l, 0, nil)
				h, held := w.must(Want{Entities: []string{"key:a"}, Amount: cents}), int64(cents)
				if !c.open {
					w.settle(h, cents)
					held = 0
				}
				c.recall(w)
				time.Sleep(time.Second)
				if b := l.Budget("key:a"); b.Leased != held {
					t.Errorf("%+v, want %d leased", b, held)
				}
				if c.open {
					w.settle(h, cents)
				}
				w.stop()
				settled(t, l, "key:a", cents)
			})
		})
	}
}
