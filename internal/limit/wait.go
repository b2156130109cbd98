package limit

import (
	"errors"
	"time"
)

// join has w wait for the ledger's answer.
func (b *book) join(m *Manager, want Want, now time.Duration) *waiter {
	w := &waiter{want: want, pass: b.newPass(m), done: make(chan struct{}), joined: now, askAt: now}
	for i := range want.Subjects {
		b.subject(want.Subjects[i].Name).waiters++
	}
	w.place = b.waiters.PushBack(w)
	b.nextAsk = min(b.nextAsk, now)
	return w
}

// park has w asked for at a time.
func (b *book) park(w *waiter, at time.Duration) {
	w.askAt = at
	b.nextAsk = min(b.nextAsk, at)
}

// serve admits w from what is at hand.
func (b *book) serve(w *waiter, now time.Duration) bool {
	if w.over || !b.take(w.pass, &w.want, now) {
		return false
	}
	b.finish(w, nil)
	return true
}

// serveWaiters admits those that can be, in order.
func (b *book) serveWaiters(now time.Duration) {
	for el := b.waiters.Front(); el != nil; {
		w := el.Value.(*waiter)
		el = el.Next()
		b.serve(w, now)
	}
}

// finish ends a wait; err nil means that w.pass stands.
func (b *book) finish(w *waiter, err error) {
	if w.over {
		return
	}
	b.waiters.Remove(w.place)
	for i := range w.want.Subjects {
		b.subjects[w.want.Subjects[i].Name].waiters--
	}
	w.over, w.err = true, err
	if err != nil {
		b.passes = append(b.passes, w.pass)
	}
	close(w.done)
}

func (b *book) leave(w *waiter, err error) {
	if w.refused != nil && errors.Is(err, errNoAnswer) {
		err = w.refused
	}
	b.finish(w, err)
}

// stop ends all waits and has everything given back.
func (b *book) stop(now time.Duration) {
	b.stopping = true
	for b.waiters.Len() > 0 {
		b.finish(b.waiters.Front().Value.(*waiter), errStopping)
	}
	for _, s := range b.subjects {
		b.recall(s, now)
	}
}

// isEmpty says that nothing is left to give back.
func (b *book) isEmpty() bool {
	if b.flight != nil {
		return false
	}
	for _, s := range b.subjects {
		if s.passes > 0 || !s.isEmpty() {
			return false
		}
	}
	return true
}
