package model

import (
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/hold"
)

// What random walks have found, as short as it goes.

// The answer to a grant is lost and comes with a replay when the budget's period is
// over: nothing may be held from that lease. (A time left of less than a millisecond,
// or none, must not reach the worker as 0, which says that the period has no end.)
func TestReplayBeyondThePeriod(t *testing.T) {
	t.Parallel()
	w := walked(t, 2, func(w *world) error {
		if _, err := w.check(); err != nil { // sees the period's end, at 7 s
			return err
		}
		w.pass(6100 * time.Millisecond)
		w.opDeliverAll() // heartbeats
		r := w.ask(w.workers[0], hold.Want{Entities: []string{w.entities[1]}, Amount: 5})
		for _, m := range w.waited() {
			if m.kind() == 2 {
				w.drop(m)
				w.handle(m)
				w.answerTo(m, answer{err: errLost})
			}
		}
		w.pass(time.Second)
		for range 3 { // the replay, and then a grant of the next period
			w.opDeliverAll()
			w.pass(100 * time.Millisecond)
		}
		if r.state != held {
			t.Errorf("the request got no money: %v", r.err)
		}
		if w.err != nil {
			return w.err
		}
		return w.rest()
	}, nil)
	if w.err != nil {
		t.Errorf("%v\n%s", w.err, w.story())
	}
}
