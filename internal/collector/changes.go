package collector

import (
	"context"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// maxPending bounds what waits for a slow stream. Beyond it the worker is told to
// forget every key, which is shorter and just as right.
const maxPending = 1000

// sayEvery is how often streams are told the position although nothing has changed:
// a worker takes it as proof that what it has cached was right at that moment.
const sayEvery = 5 * time.Second

// pageSize is what the store returns at most; a full page means that there is more.
const pageSize = 1000

// changeHub polls the database's key changes once for the whole process and hands
// them to every stream.
type changeHub struct {
	c *Collector

	mu       sync.Mutex
	position int64         // last change seen; -1: none yet
	said     time.Time     // when streams were last told anything
	ready    chan struct{} // closed once position is known
	subs     map[*subscriber]struct{}
}

func newChangeHub(c *Collector) *changeHub {
	return &changeHub{c: c, position: -1, ready: make(chan struct{}), subs: map[*subscriber]struct{}{}}
}

// subscriber is the mailbox of one stream. Its fields are guarded by the hub.
type subscriber struct {
	wake     chan struct{} // capacity 1
	position int64
	stale
}

// stale is what workers must forget.
type stale struct {
	keys     []string // by the SHA-256 of a secret
	subjects []string
	all      bool
}

func (s *stale) size() int { return len(s.keys) + len(s.subjects) }

// run polls until ctx ends.
func (h *changeHub) run(ctx context.Context) {
	var failing backoff
	for {
		began := h.position >= 0 // the first poll reads no table, and proves little
		full, err := h.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			h.c.failed("cannot read key changes", err, &failing)
			if !failing.wait(ctx) {
				return
			}
		case full:
		default:
			failing.reset()
			if began {
				h.c.outage.over()
			}
			if !sleep(ctx, jitter(h.c.cfg.PollEvery)) {
				return
			}
		}
	}
}

// poll reads one page and says whether there may be more.
func (h *changeHub) poll(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ids, position, err := h.c.cfg.Store.Changes(ctx, h.position)
	if err != nil {
		return false, err
	}
	what, err := h.staleBy(ctx, ids)
	if err != nil {
		return false, err // the page is read again
	}
	h.publish(what, position, time.Now())
	return len(ids) >= pageSize, nil
}

// staleBy finds what workers have cached because of what changed: a team's change is
// one of all its keys. It is read after the change, so that it knows the team's latest
// key; a key that has left the team since has a change of its own.
func (h *changeHub) staleBy(ctx context.Context, names []string) (stale, error) {
	if len(names) == 0 {
		return stale{}, nil
	}
	found, err := h.c.cfg.Store.Dependents(ctx, names, maxPending)
	if err != nil || found.TooMany {
		return stale{all: true}, err
	}
	subjects := found.Subjects
	for _, name := range names {
		if strings.Contains(name, ":") {
			subjects = append(subjects, name)
		}
	}
	// A key's budgets by model are known by its id, and only the worker knows which models.
	return stale{keys: found.Secrets, subjects: subjects}, nil
}

// publish hands one page to all streams.
func (h *changeHub) publish(what stale, position int64, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.position < 0 {
		close(h.ready)
	}
	replaced := position < h.position // another database, or one that was restored
	h.position = position
	if what.size() == 0 && !what.all && !replaced && now.Sub(h.said) < sayEvery {
		return
	}
	h.said = now
	for sub := range h.subs {
		sub.add(what, position)
		if replaced {
			sub.stale = stale{all: true}
		}
	}
}

// serve sends one stream what changes from now on.
func (h *changeHub) serve(req *ledgerv1.ChangesRequest, stream grpc.ServerStreamingServer[ledgerv1.ChangesResponse]) error {
	ctx := stream.Context()
	if _, err := holderID(req.GetHolder()); err != nil {
		return h.c.rpcError("Changes", err)
	}
	select {
	case <-h.ready:
	case <-h.c.stopping.Done():
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
	sub := h.subscribe(req.GetAfter())
	defer h.unsubscribe(sub)
	for {
		select {
		case <-sub.wake:
		case <-h.c.stopping.Done():
			return errStopping
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := stream.Send(h.take(sub)); err != nil {
			return err
		}
	}
}

// subscribe opens a mailbox whose first message tells the position, and to forget
// every key when the worker has missed any change before it.
func (h *changeHub) subscribe(after int64) *subscriber {
	h.mu.Lock()
	defer h.mu.Unlock()
	sub := &subscriber{wake: make(chan struct{}, 1), position: h.position}
	sub.all = after != h.position
	sub.wake <- struct{}{}
	h.subs[sub] = struct{}{}
	return sub
}

func (h *changeHub) unsubscribe(sub *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, sub)
}

// take empties the mailbox.
func (h *changeHub) take(sub *subscriber) *ledgerv1.ChangesResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	msg := &ledgerv1.ChangesResponse{Position: sub.position, KeyIds: sub.keys, Subjects: sub.subjects, All: sub.all}
	sub.stale = stale{}
	return msg
}

// add puts changes into the mailbox; the hub's lock is held.
func (s *subscriber) add(what stale, position int64) {
	s.position = position
	switch {
	case s.all:
	case what.all || s.size()+what.size() > maxPending:
		s.stale = stale{all: true}
	default:
		s.keys = append(s.keys, what.keys...)
		s.subjects = append(s.subjects, what.subjects...)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
