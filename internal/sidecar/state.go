package sidecar

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// stateFile keeps the counts of workers that left: living workers tell theirs again to
// the next sidecar, dead ones cannot. It holds frames as the workers would have sent
// them, so that reading it is the same checked path.
type stateFile struct {
	path string

	mu   sync.Mutex
	seen uint64 // merger.goneSeen when it was written
}

// load reads the file, if there is one. Call it before any worker can report.
func (f *stateFile) load(m *merger) error {
	if f.path == "" {
		return nil
	}
	file, err := os.Open(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the state: %w", err)
	}
	defer file.Close()
	in := bufio.NewReader(file)
	options := protodelim.UnmarshalOptions{MaxSize: maxFrameBytes}
	for {
		frame := &telemetryv1.Frame{}
		if err := options.UnmarshalFrom(in, frame); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot read the state in %s: %w", f.path, err)
		}
		m.restore(frame)
	}
}

func (f *stateFile) saveIfChanged(m *merger) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.mu.Lock()
	changed := m.goneSeen != f.seen
	m.mu.Unlock()
	if !changed {
		return nil
	}
	return f.write(m)
}

func (f *stateFile) save(m *merger) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.write(m)
}

// write replaces the file in one step; a kill leaves the old one.
func (f *stateFile) write(m *merger) error {
	if f.path == "" {
		return nil
	}
	frames, seen := m.gone()
	file, err := os.Create(f.path + ".new")
	if err != nil {
		return fmt.Errorf("cannot write the state: %w", err)
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	for _, frame := range frames {
		if _, err := protodelim.MarshalTo(out, frame); err != nil {
			return fmt.Errorf("cannot write the state: %w", err)
		}
	}
	if err := errors.Join(out.Flush(), file.Close(), os.Rename(f.path+".new", f.path)); err != nil {
		return fmt.Errorf("cannot write the state: %w", err)
	}
	f.seen = seen
	return nil
}

// gone makes a frame of every worker that left, and one without a worker of the summed-up.
func (m *merger) gone() ([]*telemetryv1.Frame, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	frames := []*telemetryv1.Frame{m.summed.frame()}
	for _, w := range m.workers {
		if w.attached == 0 {
			frame := w.frame()
			frame.Worker = &telemetryv1.Worker{PodUid: w.key.pod, Index: w.key.index, Epoch: w.key.epoch[:], Role: w.key.role}
			frames = append(frames, frame)
		}
	}
	return frames, m.goneSeen
}

func (w *worker) frame() *telemetryv1.Frame {
	frame := &telemetryv1.Frame{Full: true}
	for f, all := range w.series {
		id := uint32(len(frame.Families))
		frame.Families = append(frame.Families, &telemetryv1.Family{Id: id, Name: f.name, Help: f.help,
			Type: f.kind, Labels: f.labels, Buckets: f.buckets})
		for _, s := range all {
			n := uint32(len(frame.Series))
			frame.Series = append(frame.Series, &telemetryv1.Series{Id: n, Family: id, Values: s.values})
			frame.Points = append(frame.Points, &telemetryv1.Point{Series: n, Value: s.value.atLeast(), Counts: append([]uint64(nil), s.counts...)})
		}
	}
	return frame
}

// restore takes a frame of a former life's state.
func (m *merger) restore(frame *telemetryv1.Frame) {
	who := frame.GetWorker()
	if who == nil {
		who = &telemetryv1.Worker{Role: "summed", Epoch: make([]byte, 16)}
	}
	l, refused := m.attach(who)
	if refused != "" {
		return
	}
	m.apply(l, frame, time.Now())
	m.detach(l)
	if frame.GetWorker() == nil {
		m.mu.Lock()
		m.fold(l.worker)
		m.mu.Unlock()
	}
}
