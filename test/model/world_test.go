package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

const (
	ttl        = 20 * time.Second
	reapMargin = ttl / 6
	pods       = 2
	perPod     = 2
	// maxFlight bounds the messages under way; beyond it the oldest that nobody waits
	// for is lost.
	maxFlight = 40
)

// world is everything that a walk moves: pods with workers and journals, what is
// under way between them and the database, and an account of what was promised to
// the upstream that no part of the product can see.
type world struct {
	rng    *rand.Rand
	db     *database
	ledger store.Ledger // the store, or one that breaks a rule
	off    off
	dir    string
	steps  int
	trail  []string

	keys     []string // ids
	entities []string
	pods     []*pod
	podsMade int
	workers  []*worker // all there ever were
	requests []*request
	adopters []*adopter
	away     bool // the database does not answer
	races    bool // a pair of messages is handled by two goroutines at once

	mu       sync.Mutex
	posted   []*message // since the last look
	answered []*request // since the last look
	flight   []*message
	replies  []*reply
	past     []*message // handled; a copy may come again

	limits    map[int64]int64     // the books' last sums, by budget
	ends      map[int64]time.Time // natural ends of periods
	lostPods  map[string]bool
	corrected map[leaseID]bool
	orphaned  map[store.HolderID]bool // ended in time, its leases not returned, its journal empty
	mutated   bool                    // only laws count then: a broken rule may well end in errors
	err       error
}

// pod is a place for workers and their journals.
type pod struct {
	uid  string
	root string
	live []*worker // by index; nil: none
}

func (p *pod) String() string { return p.uid }

// newWorld makes budgets and workers. It is called in a bubble.
func newWorld(db *database, dir string, seed uint64, m *mutation) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 77)), db: db, ledger: db.store, dir: dir, races: seed%2 == 1,
		limits: map[int64]int64{}, ends: map[int64]time.Time{}, lostPods: map[string]bool{},
		corrected: map[leaseID]bool{}, orphaned: map[store.HolderID]bool{},
	}
	if m != nil {
		w.off, w.races, w.mutated = m.off, false, true
		if m.store != nil {
			w.ledger = m.store(db)
		}
	}
	w.makeBudgets()
	for range pods {
		w.pods = append(w.pods, w.newPod())
	}
	for _, p := range w.pods {
		for i := range perPod {
			w.start(p, i)
		}
	}
	w.settleDown()
	w.opDeliverAll() // their first heartbeats
	return w
}

// makeBudgets gives two keys and the team that both are in a budget each.
func (w *world) makeBudgets() {
	ctx := context.Background()
	limits := []int64{60, 300, 2000}
	for i, duration := range []string{"", "7s"} {
		sum := sha256.Sum256([]byte{byte(i)})
		id := hex.EncodeToString(sum[:])
		limit := limits[w.rng.IntN(3)]
		w.note("key %d: limit %d per %q", i, limit, duration)
		w.do(func() {
			w.fail(w.db.store.CreateKey(ctx, store.Key{ID: id, MaxBudget: &limit, BudgetDuration: duration}))
		})
		w.keys = append(w.keys, id)
		w.entities = append(w.entities, store.KeyEntity(id))
	}
	limit := limits[w.rng.IntN(3)]
	w.note("team: limit %d per minute", limit)
	w.do(func() {
		w.fail(w.db.exec(`INSERT INTO budgets (entity, duration, anchor_ts, from_ts, until_ts, limit_n)
			VALUES ('team:t', '60s', clock_timestamp(), clock_timestamp(), clock_timestamp() + interval '60 s', $1)`, limit))
	})
	w.entities = append(w.entities, "team:t")
}

func (w *world) newPod() *pod {
	w.podsMade++
	uid := fmt.Sprintf("pod%d", w.podsMade)
	return &pod{uid: uid, root: filepath.Join(w.dir, uid), live: make([]*worker, perPod)}
}

// do works on the database at the bubble's time.
func (w *world) do(f func()) { w.db.do(time.Now(), f) }

// note adds a line to what is printed when a law breaks.
func (w *world) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if len(w.entities) > 0 {
		line = strings.ReplaceAll(line, w.entities[0], "A")
	}
	if len(w.entities) > 1 {
		line = strings.ReplaceAll(line, w.entities[1], "B")
	}
	w.trail = append(w.trail, fmt.Sprintf("%4d %8s  %s", w.steps, time.Since(epoch2000).Truncate(time.Millisecond), line))
}

// story is what has happened, and the setting of the budgets.
func (w *world) story() string { return strings.Join(w.trail, "\n") }

// epoch2000 is when a bubble's time begins.
var epoch2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// fail keeps the first error.
func (w *world) fail(err error) {
	if err == nil || w.err != nil || errors.Is(err, store.ErrUnavailable) {
		return
	}
	if law := (broken{}); !w.mutated || errors.As(err, &law) {
		w.err = err
	}
}

// settleDown waits until the workers have done what they do by themselves, and takes
// up what they asked for and what requests were told.
func (w *world) settleDown() {
	synctest.Wait()
	w.mu.Lock()
	posted, answered := w.posted, w.answered
	w.posted, w.answered = nil, nil
	w.mu.Unlock()
	sortMessages(posted)
	for _, m := range posted {
		w.note("%s asks: %s", m.from, m.text())
	}
	w.flight = append(w.flight, posted...)
	for len(w.flight) > maxFlight {
		i := 0
		for i < len(w.flight)-1 && w.flight[i].waited() {
			i++
		}
		w.flight = append(w.flight[:i:i], w.flight[i+1:]...)
	}
	sortRequests(answered)
	for _, r := range answered {
		w.taken(r)
	}
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	w.note("%s pass", d)
	time.Sleep(d)
	w.settleDown()
}

// end stops what runs, whatever became of the walk.
func (w *world) end() {
	for _, a := range w.adopters {
		a.dead.Release()
	}
	for _, p := range w.pods {
		for _, k := range p.live {
			if k != nil {
				w.fail(k.kill())
			}
		}
	}
	for _, r := range w.requests {
		r.cancel()
	}
	synctest.Wait()
	w.fail(os.RemoveAll(w.dir))
}

// liveWorkers are those that run.
func (w *world) liveWorkers() []*worker {
	var out []*worker
	for _, p := range w.pods {
		for _, k := range p.live {
			if k != nil {
				out = append(out, k)
			}
		}
	}
	return out
}

// pick returns one of several at random, or the zero value of none.
func pick[T any](r *rand.Rand, from []T) (one T) {
	if len(from) == 0 {
		return one
	}
	return from[r.IntN(len(from))]
}
