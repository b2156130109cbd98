package collector

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

func TestSteadyWatch(t *testing.T) {
	t.Parallel()
	start := time.Now()
	bad := errors.New("away")
	type call struct {
		at   int // seconds
		err  error
		want bool
	}
	for _, c := range []struct {
		why   string
		calls []call
	}{
		{"a ttl of good answers", []call{{0, nil, false}, {20, nil, false}, {40, nil, false}, {60, nil, true}, {65, nil, true}}},
		{"a start counts from its first answer", []call{{100, nil, false}, {120, nil, false}}},
		{"one failure starts anew", []call{{0, nil, false}, {30, nil, false}, {55, bad, false}, {60, nil, false}, {90, nil, false}, {119, nil, false}, {120, nil, true}}},
		{"a process that slept saw nothing", []call{{0, nil, false}, {300, nil, false}, {330, nil, false}, {360, nil, true}}},
	} {
		w := newSteadyWatch(time.Minute)
		for _, call := range c.calls {
			if got := w.observe(start.Add(time.Duration(call.at)*time.Second), call.err); got != call.want {
				t.Errorf("%s: at %d s steady is %v", c.why, call.at, got)
			}
		}
	}
}

// rows is an item with the numbers first to last.
func rows(first, last uint64) *item {
	it := &item{}
	for seq := first; seq <= last; seq++ {
		it.rows = append(it.rows, store.Record{Seq: seq})
	}
	return it
}

func TestFollowAndMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why   string
		items []*item
		limit int
		n     int
		first uint64
		last  uint64
	}{
		{"one after the other", []*item{rows(1, 3), rows(4, 4), rows(5, 9)}, 100, 3, 1, 9},
		{"a full batch", []*item{rows(1, 3), rows(4, 6), rows(7, 9)}, 6, 2, 1, 6},
		{"one that is larger than a batch", []*item{rows(1, 9), rows(10, 10)}, 3, 1, 1, 9},
		{"a gap", []*item{rows(1, 3), rows(5, 6)}, 100, 1, 1, 3},
		{"a resumed stream", []*item{rows(3, 6), rows(3, 9)}, 100, 2, 3, 9},
		{"a resumed stream within", []*item{rows(3, 6), rows(4, 5), rows(7, 7)}, 100, 3, 3, 7},
		{"one that fills a gap before", []*item{rows(5, 6), rows(3, 9)}, 100, 1, 5, 6},
	} {
		n := follow(c.items, c.limit)
		if n != c.n {
			t.Errorf("%s: %d items, want %d", c.why, n, c.n)
			continue
		}
		got := merge(c.items[:n])
		if got[0].Seq != c.first || got[len(got)-1].Seq != c.last || len(got) != int(c.last-c.first)+1 {
			t.Errorf("%s: %d to %d in %d rows", c.why, got[0].Seq, got[len(got)-1].Seq, len(got))
		}
		for i := 1; i < len(got); i++ {
			if got[i].Seq != got[i-1].Seq+1 {
				t.Errorf("%s: %d follows %d", c.why, got[i].Seq, got[i-1].Seq)
			}
		}
	}
}

func TestMailbox(t *testing.T) {
	t.Parallel()
	h := newChangeHub(&Collector{})
	now := time.Now()
	h.publish(stale{}, 10, now)
	sub := h.subscribe(10)
	want := func(why string, position int64, all bool, ids string) {
		t.Helper()
		select {
		case <-sub.wake:
		default:
			t.Errorf("%s: no message", why)
		}
		if m := h.take(sub); m.GetAll() != all || fmt.Sprint(m.GetKeyIds()) != ids || m.GetPosition() != position {
			t.Errorf("%s: got all=%v, %d ids at %d", why, m.GetAll(), len(m.GetKeyIds()), m.GetPosition())
		}
	}
	want("a stream that missed nothing", 10, false, "[]")
	h.publish(stale{keys: []string{"a"}}, 11, now)
	h.publish(stale{keys: []string{"b"}}, 12, now)
	want("two polls in one message", 12, false, "[a b]")
	for i := range 3 {
		h.publish(stale{keys: make([]string, maxPending/2)}, 13+int64(i), now)
	}
	want("a stream that is behind forgets all", 15, true, "[]")
	h.publish(stale{keys: []string{"c"}}, 16, now)
	want("after that it goes on as before", 16, false, "[c]")

	h.publish(stale{}, 16, now.Add(sayEvery-1))
	if len(sub.wake) != 0 {
		t.Error("a message about nothing, too early")
	}
	h.publish(stale{}, 16, now.Add(sayEvery))
	want("a sign that all is still right", 16, false, "[]")
	h.publish(stale{keys: []string{"d"}}, 3, now)
	want("a database that was replaced", 3, true, "[]")

	h.unsubscribe(sub)
	h.publish(stale{keys: []string{"e"}}, 17, now)
	if len(sub.keys) != 0 {
		t.Error("a stream that has gone still collects")
	}
}
