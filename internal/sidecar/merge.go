package sidecar

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// merger holds what all workers have told. Values are cumulative by worker and epoch,
// so the sum over all epochs, dead ones included, never goes down.
type merger struct {
	mu       sync.Mutex
	families map[string]*family
	workers  map[workerKey]*worker
	summed   *worker // what workers that left long ago have counted
	retired  []workerKey
	series   int    // over all workers
	events   uint64 // orders attaching and leaving
	goneSeen uint64 // changes whenever the state worth keeping does
	flow     flow
	frames   uint64
	dropped  map[drop]uint64
}

// workerKey is one process life.
type workerKey struct {
	pod   string
	role  string
	index uint32
	epoch [16]byte
}

// worker is what one process life has told.
type worker struct {
	key      workerKey
	series   map[*family]map[string]*series // by joined label values
	count    int
	attached uint64 // the event that attached it; 0: it left
	left     uint64 // the event it left with
	sentMs   int64  // time of its last frame; 0: none yet in this process
}

// series is one set of label values; counts are per bucket, the last is +Inf.
type series struct {
	values []string
	value  amount // a histogram's sum
	counts []uint64
}

func newMerger() *merger {
	return &merger{families: map[string]*family{}, workers: map[workerKey]*worker{},
		summed: newWorker(workerKey{}), dropped: map[drop]uint64{}}
}

func newWorker(key workerKey) *worker {
	return &worker{key: key, series: map[*family]map[string]*series{}}
}

// link is one report: a worker's stream with its own ids.
type link struct {
	worker   *worker
	event    uint64
	baseline bool // what is told next happened before it could be watched
	families map[uint32]*family
	series   map[uint32]target
}

type target struct {
	family *family
	series *series
}

// attach begins a report; a drop tells why it must not. A second report of a worker
// replaces the first.
func (m *merger) attach(w *telemetryv1.Worker) (*link, drop) {
	key, ok := readWorker(w)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !ok || slices.Contains(m.retired, key) {
		m.dropped[dropIdentity]++
		return nil, dropIdentity
	}
	known := m.workers[key]
	if known == nil || known.attached == 0 {
		if m.attached() >= maxWorkers {
			m.dropped[dropWorkers]++
			return nil, dropWorkers
		}
	}
	l := &link{worker: known, families: map[uint32]*family{}, series: map[uint32]target{}}
	if known == nil {
		l.worker = newWorker(key)
		m.workers[key] = l.worker
	}
	// Only what a worker tells after its first frame is known to have happened now.
	l.baseline = known == nil || known.sentMs == 0
	m.events++
	l.event, l.worker.attached = m.events, m.events
	return l, ""
}

func readWorker(w *telemetryv1.Worker) (workerKey, bool) {
	key := workerKey{pod: w.GetPodUid(), role: w.GetRole(), index: w.GetIndex()}
	copied := copy(key.epoch[:], w.GetEpoch())
	ok := w != nil && copied == 16 && len(w.GetEpoch()) == 16 &&
		len(key.pod) <= maxIdentityBytes && len(key.role) <= maxIdentityBytes
	return key, ok
}

func (m *merger) attached() int {
	n := 0
	for _, w := range m.workers {
		if w.attached != 0 {
			n++
		}
	}
	return n
}

// detach ends a report: the worker's gauges go, its counts stay.
func (m *merger) detach(l *link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := l.worker
	if w.attached != l.event { // replaced by a later report
		return
	}
	m.events++
	w.attached, w.left = 0, m.events
	m.goneSeen++
	m.dropGauges(w)
	m.foldGone()
}

func (m *merger) dropGauges(w *worker) {
	for f, all := range w.series {
		if f.kind == telemetryv1.Family_TYPE_GAUGE {
			w.count -= len(all)
			m.series -= len(all)
			delete(w.series, f)
		}
	}
}

// foldGone sums up the workers that left longest ago. Until then they are kept apart,
// because a worker that only lost its connection comes back with the same epoch.
func (m *merger) foldGone() {
	var gone []*worker
	for _, w := range m.workers {
		if w.attached == 0 {
			gone = append(gone, w)
		}
	}
	if len(gone) <= maxGone {
		return
	}
	slices.SortFunc(gone, func(a, b *worker) int { return cmp.Compare(a.left, b.left) })
	for _, w := range gone[:len(gone)-maxGone] {
		m.fold(w)
	}
}

// maxRetired bounds the epochs that are remembered so as not to be counted twice.
const maxRetired = 1024

func (m *merger) fold(w *worker) {
	for f, all := range w.series {
		for joined, s := range all {
			m.series--
			sum := m.summed.series[f][joined]
			if sum == nil {
				sum = m.put(m.summed, f, s.values)
			}
			sum.add(s)
		}
	}
	delete(m.workers, w.key)
	m.retired = append(m.retired, w.key)
	if len(m.retired) > maxRetired {
		m.retired = slices.Delete(m.retired, 0, len(m.retired)-maxRetired)
	}
}

// put makes a series. A full metric of the summed-up gets one series for the rest, so
// that no count is lost.
func (m *merger) put(w *worker, f *family, values []string) *series {
	all := w.series[f]
	if all == nil {
		all = map[string]*series{}
		w.series[f] = all
	}
	if w == m.summed && len(all) >= maxSummedSeries {
		values = slices.Repeat([]string{"other"}, len(values))
		if s := all[join(values)]; s != nil {
			return s
		}
	}
	s := &series{values: slices.Clone(values)}
	if f.kind == telemetryv1.Family_TYPE_HISTOGRAM {
		s.counts = make([]uint64, len(f.buckets)+1)
	}
	all[join(values)] = s
	w.count++
	m.series++
	return s
}

// maxSummedSeries bounds each metric of the summed-up.
const maxSummedSeries = 2000

// join makes a map key; 0xff is in no valid UTF-8.
func join(values []string) string { return strings.Join(values, "\xff") }

func (s *series) add(o *series) {
	s.value = s.value.plus(o.value)
	for i, n := range o.counts {
		s.counts[i] += n
	}
}

// late is the age, and the distance from the frame before, from which a frame's growth
// is not taken as happening now: after a stall of either side it would look like a peak.
const late = 2 * time.Second

// apply takes a frame; what is wrong in it is counted and left out. False: the report
// was replaced by a later one and must end.
func (m *merger) apply(l *link, frame *telemetryv1.Frame, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.worker.attached != l.event {
		return false
	}
	m.frames++
	if frame.GetFull() {
		clear(l.families)
		clear(l.series)
		m.dropGauges(l.worker)
	}
	live := l.worker.onTime(frame.GetSentUnixMs(), now) && !l.baseline
	l.baseline = false
	for _, f := range frame.GetFamilies() {
		m.count(m.define(l, f))
	}
	for _, s := range frame.GetSeries() {
		m.count(m.introduce(l, s))
	}
	for _, p := range frame.GetPoints() {
		m.count(m.set(l, p, live))
	}
	return true
}

// onTime also notes when the frame was sent. A frame without a time counts as on time.
func (w *worker) onTime(sentMs int64, now time.Time) bool {
	before := w.sentMs
	w.sentMs = sentMs
	if sentMs == 0 {
		return true
	}
	if now.UnixMilli()-sentMs > late.Milliseconds() {
		return false
	}
	return before == 0 || sentMs-before <= late.Milliseconds()
}

// note counts a drop from outside a frame.
func (m *merger) note(d drop) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count(d)
}

func (m *merger) count(d drop) {
	if d != "" {
		m.dropped[d]++
	}
}
