package limit

import (
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

// sim is eight workers, a ledger and the wire between them in simulated time. Workers'
// clocks have their own zero and rate; messages are late, lost and doubled; processes die.
type sim struct {
	t      *testing.T
	rng    *rand.Rand
	now    time.Duration // true time
	queue  events
	n      int
	ledger ledgertest.Limits
	set    setup

	workers []*simWorker
	window  []admission // admitted in the last window
	all     []admission
	tokens  int64 // in window
	running int64
	refused int
	calls   int
	broken  string
}

// setup is what a run is like.
type setup struct {
	window   time.Duration
	subject  Subject
	keys     int       // so many subjects of this kind; 0: one, and the laws are checked
	share    []float64 // of the load, per worker
	rate     float64   // requests per second over all
	burst    int       // at most so many at once
	tokens   func(*rand.Rand) int64
	actual   func(*rand.Rand, int64) int64 // nil: as charged
	length   func(*rand.Rand) time.Duration
	delay    func(*rand.Rand) time.Duration
	loss     float64 // of each message
	double   float64 // of each call
	kills    float64 // per second
	cuts     float64 // per second: a worker is cut off for up to three windows
	answered func(w *simWorker, sent time.Duration)
	arriving func(*sim, *ledgerv1.LimitsRequest)
}

type admission struct {
	at     time.Duration
	tokens int64
}

type simWorker struct {
	s       *sim
	book    *book
	manager *Manager // only what a pass points to
	offset  time.Duration
	drift   float64
	epoch   int
	dead    bool
	cut     time.Duration // no message passes before
	waiters []*simWait
	flight  *ledgerv1.LimitsRequest
	sends   int
	index   int
}

type simWait struct {
	w     *waiter
	until time.Duration
}

const simStep = 5 * time.Millisecond

func newSim(t *testing.T, seed uint64, set setup) *sim {
	s := &sim{t: t, rng: rand.New(rand.NewPCG(seed, 1)), set: set}
	s.ledger.Window = set.window
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	rate := 1 + (s.rng.Float64()-0.5)*4e-4
	s.ledger.Now = func() time.Time { return start.Add(time.Duration(float64(s.now) * rate)) }
	for i := range set.share {
		s.workers = append(s.workers, s.newWorker(i, 0))
		s.arrive(i)
	}
	s.after(0, s.tick)
	if set.kills > 0 {
		s.again(set.kills, func() { s.kill(s.rng.IntN(len(s.workers)), s.rng.IntN(2) == 0) })
	}
	if set.cuts > 0 {
		s.again(set.cuts, func() {
			w := s.workers[s.rng.IntN(len(s.workers))]
			w.cut = s.now + time.Duration(s.rng.Float64()*3*float64(set.window))
		})
	}
	return s
}

func (s *sim) newWorker(index, epoch int) *simWorker {
	id := binary.BigEndian.AppendUint64(make([]byte, 8), uint64(epoch))
	cfg := Config{Holder: &ledgerv1.Holder{PodUid: "pod", Index: uint32(index), Epoch: id}, LongestRequest: s.set.window}
	m := New(cfg)
	w := &simWorker{s: s, book: m.book, manager: m, index: index, epoch: epoch, offset: time.Duration(s.rng.Int64N(int64(time.Hour))), drift: 1 + (s.rng.Float64()-0.5)*4e-4}
	w.book.times = timesOf(s.set.window, s.set.window/40, s.set.window/2, s.set.window/120)
	return w
}

func (w *simWorker) clock() time.Duration { return w.offset + time.Duration(float64(w.s.now)*w.drift) }

// arrive brings requests to one worker at its share of the rate.
func (s *sim) arrive(i int) {
	set := &s.set
	s.again(set.rate*set.share[i]*2/float64(1+max(set.burst, 1)), func() {
		tokens := int64(0)
		if s.set.tokens != nil {
			tokens = s.set.tokens(s.rng)
		}
		subject := s.set.subject
		if s.set.keys > 0 {
			subject.Name = fmt.Sprint("key:", s.rng.IntN(s.set.keys))
		}
		for range 1 + s.rng.IntN(max(set.burst, 1)) {
			s.workers[i].request(Want{Subjects: []Subject{subject}, Tokens: tokens})
		}
	})
}

// again runs do at random times, so often per second.
func (s *sim) again(rate float64, do func()) {
	s.after(time.Duration(s.rng.ExpFloat64()/rate*1e9), func() {
		do()
		s.again(rate, do)
	})
}

// tick lets every worker's loop look around.
func (s *sim) tick() {
	for _, w := range s.workers {
		w.step()
	}
	s.after(simStep, s.tick)
}

func (w *simWorker) request(want Want) {
	p, err := w.book.admit(w.manager, want, w.clock())
	switch {
	case err != nil:
		w.s.refuse(err)
	case p != nil:
		w.s.admitted(w, p)
	default:
		w.waiters = append(w.waiters, &simWait{w: w.book.join(w.manager, want, w.clock()), until: w.s.now + 5*time.Second})
		w.step()
	}
}

func (s *sim) refuse(err error) {
	var r *Refused
	if !errors.As(err, &r) && !errors.Is(err, ErrUnavailable) {
		s.t.Errorf("refused with %v", err)
	}
	s.refused++
}

// admitted checks the laws at an admission.
func (s *sim) admitted(w *simWorker, p *Pass) {
	for len(s.window) > 0 && s.window[0].at <= s.now-s.set.window {
		s.tokens -= s.window[0].tokens
		s.window = s.window[1:]
	}
	a := admission{s.now, p.tokens}
	s.window, s.all = append(s.window, a), append(s.all, a)
	s.tokens += a.tokens
	s.running++
	sub := s.set.subject
	switch {
	case s.broken != "" || s.set.keys > 0:
	case sub.RPM > 0 && int64(len(s.window)) > sub.RPM:
		s.broken = "requests of a window pass the limit"
	case sub.TPM > 0 && s.set.actual == nil && s.tokens > sub.TPM:
		s.broken = "tokens of a window pass the limit"
	case sub.Parallel > 0 && s.running > sub.Parallel:
		s.broken = "parallel requests pass the limit"
	}
	length := time.Duration(0)
	if s.set.length != nil {
		length = min(s.set.length(s.rng), s.set.window)
	}
	s.after(length, func() {
		if w.dead {
			return // ended with its process
		}
		s.running--
		if s.set.actual != nil {
			w.book.settle(p, s.set.actual(s.rng, p.tokens), w.clock())
		}
		w.book.release(p, w.clock())
	})
}

// step does what a worker's loop does.
func (w *simWorker) step() {
	w.collect()
	now := w.clock()
	if w.dead || w.flight != nil || w.book.next(now) > now {
		return
	}
	if w.flight = w.book.ask(now); w.flight != nil {
		w.send(w.flight)
	}
	w.collect()
}

// collect looks after those who wait.
func (w *simWorker) collect() {
	var left []*simWait
	for _, x := range w.waiters {
		if w.s.now > x.until {
			w.book.leave(x.w, errNoAnswer)
		}
		switch {
		case !x.w.over:
			left = append(left, x)
		case x.w.err != nil:
			w.s.refuse(x.w.err)
		default:
			w.s.admitted(w, x.w.pass)
		}
	}
	w.waiters = left
}

// send puts a call on the wire, and again when no answer comes.
func (w *simWorker) send(req *ledgerv1.LimitsRequest) {
	s := w.s
	w.sends++
	mine := w.sends
	s.after(s.set.window/12, func() {
		if w.flight == req && w.sends == mine {
			w.send(req)
		}
	})
	copies := 1
	if s.rng.Float64() < s.set.double {
		copies++
	}
	for range copies {
		if s.rng.Float64() < s.set.loss {
			continue
		}
		s.after(s.set.delay(s.rng), func() {
			if s.now >= w.cut {
				s.reply(w, proto.CloneOf(req))
			}
		})
	}
}

func (s *sim) reply(w *simWorker, req *ledgerv1.LimitsRequest) {
	s.calls++
	seq := req.GetSeq()
	if s.set.arriving != nil {
		s.set.arriving(s, req)
	}
	resp := s.ledger.Sync(req)
	resp.Seq = seq
	if s.rng.Float64() < s.set.loss {
		return
	}
	s.after(s.set.delay(s.rng), func() {
		if w.dead || w.flight == nil || w.flight.GetSeq() != resp.GetSeq() || s.now < w.cut {
			return
		}
		sent := w.book.flight.sent
		w.flight = nil
		w.book.answer(resp, w.clock())
		if s.set.answered != nil {
			s.set.answered(w, sent)
		}
		w.step()
	})
}

// kill ends a worker's process. Where that is not known, its slots count until nothing
// of it can run any more.
func (s *sim) kill(i int, known bool) {
	old := s.workers[i]
	old.dead = true
	for _, x := range old.book.subjects {
		s.running -= x.slots.inUse
	}
	if known {
		s.ledger.Kill(old.book.cfg.Holder)
	}
	s.workers[i] = s.newWorker(i, old.epoch+1)
}

func (s *sim) after(d time.Duration, do func()) {
	s.n++
	heap.Push(&s.queue, event{s.now + d, s.n, do})
}

// run lets time pass until a law is broken, and fails where there is no mutation to blame.
func (s *sim) run(until time.Duration) {
	for s.queue[0].at < until && s.broken == "" {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		e.do()
	}
}

type event struct {
	at time.Duration
	n  int
	do func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	e := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return e
}
