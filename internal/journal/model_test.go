package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// model is a journal as a reader of its contract would write it.
type model struct {
	ids   []Entry
	open  map[Entry]string
	room  map[Entry]int
	taken []string // closed payloads, number i+1 at i
	acked uint64
}

// TestAgainstModel drives a small journal at random through fullness, reuse and
// copying forward, kills it at random moments, and compares with the model.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			j := create(t, Config{MaxSegments: 2 + int(seed%4)})
			m := &model{open: map[Entry]string{}, room: map[Entry]int{}}
			r := rand.New(rand.NewPCG(seed, 1))
			for step := range 4000 {
				m.step(t, j, r, step)
				if step%500 == 499 {
					m.compare(t, j)
				}
			}
			if s := j.Stats(); s.NextSeq < 100 {
				t.Errorf("only %d records: the walk tested nothing", s.NextSeq)
			}
		})
	}
}

func (m *model) step(t *testing.T, j *Journal, r *rand.Rand, step int) {
	text := fmt.Sprintf("%d-%s", step, strings.Repeat("x", r.IntN(j.MaxPayload()-10)>>r.IntN(6)))
	var e Entry
	if len(m.ids) > 0 {
		e = m.ids[r.IntN(len(m.ids))]
	}
	switch op := r.IntN(100); {
	case op < 40:
		e, err := j.Open([]byte(text))
		if errors.Is(err, ErrFull) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		m.ids, m.open[e], m.room[e] = append(m.ids, e), text, len(text)
	case op < 50 && len(m.ids) > 0:
		err := j.Attempt(e, []byte(text))
		if errors.Is(err, ErrFull) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		m.open[e], m.room[e] = text, max(m.room[e], len(text))
	case op < 85 && len(m.ids) > 0:
		// Old entries stay open for long: the random pick leaves some for ever.
		m.close(t, j, e, r)
	case op >= 85:
		m.acked += uint64(r.IntN(len(m.taken) - int(m.acked) + 1))
		j.Ack(m.acked)
	}
}

func (m *model) close(t *testing.T, j *Journal, e Entry, r *rand.Rand) {
	text := strings.Repeat("c", r.IntN(m.room[e]+CloseExtra+1))
	seq, err := j.Close(e, []byte(text))
	if err != nil || seq != uint64(len(m.taken)+1) {
		t.Fatalf("close within its room: number %d, %v; want %d", seq, err, len(m.taken)+1)
	}
	m.taken = append(m.taken, text)
	delete(m.open, e)
	for i, id := range m.ids {
		if id == e {
			m.ids = append(m.ids[:i], m.ids[i+1:]...)
			break
		}
	}
}

func (m *model) compare(t *testing.T, j *Journal) {
	t.Helper()
	a := crash(t, j)
	if a.Damaged != 0 || a.NextSeq != uint64(len(m.taken)+1) {
		t.Fatalf("adoption: %d damaged, next number %d; want 0, %d", a.Damaged, a.NextSeq, len(m.taken)+1)
	}
	var want []string
	for _, e := range m.ids {
		want = append(want, m.open[e])
	}
	if diff := cmp.Diff(want, openText(a.Open)); diff != "" {
		t.Fatalf("open entries in order of opening: %s", diff)
	}
	lowest := a.NextSeq
	for i, c := range a.Closed {
		if i == 0 {
			lowest = c.Seq
		}
		if c.Damaged || c.Seq != lowest+uint64(i) || string(c.Payload) != m.taken[c.Seq-1] {
			t.Fatalf("record %d is not what was closed", c.Seq)
		}
	}
	if lowest > m.acked+1 {
		t.Fatalf("records %d to %d are lost", m.acked+1, lowest-1)
	}
	for i, c := range j.Pending(0, len(m.taken)+1) {
		if c.Seq != m.acked+1+uint64(i) || string(c.Payload) != m.taken[c.Seq-1] {
			t.Fatalf("pending record %d is not what was closed", c.Seq)
		}
	}
	if s := j.Stats(); s.FreeBytes < 0 || s.Open != len(m.ids) || s.Unacked != len(m.taken)-int(m.acked) {
		t.Fatalf("stats %+v", s)
	}
}
