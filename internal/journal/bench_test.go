package journal

import (
	"testing"
)

func BenchmarkOpenClose(b *testing.B) {
	j := create(b, Config{SegmentBytes: 4 << 20, MaxSegments: 4})
	open, closed := make([]byte, 500), make([]byte, 600)
	b.ReportAllocs()
	for b.Loop() {
		e, err := j.Open(open)
		if err != nil {
			b.Fatal(err)
		}
		seq, err := j.Close(e, closed)
		if err != nil {
			b.Fatal(err)
		}
		j.Ack(seq)
	}
}

func TestOpenCloseDoesNotAllocate(t *testing.T) {
	j := create(t, Config{SegmentBytes: 1 << 20})
	payload := make([]byte, 500)
	n := testing.AllocsPerRun(5000, func() {
		e, err := j.Open(payload)
		if err != nil {
			t.Fatal(err)
		}
		seq, err := j.Close(e, payload)
		if err != nil {
			t.Fatal(err)
		}
		j.Ack(seq)
	})
	if n != 0 {
		t.Errorf("%v allocations per record, want 0", n)
	}
}
