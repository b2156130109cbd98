package sse

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// got is an event with its bytes copied.
type got struct {
	Raw, Data, Name   string
	HasData, Complete bool
}

// scan feeds the stream in chunks of the given sizes, over and over, and
// overwrites each chunk after use, as a reader that reuses its buffer does.
func scan(stream string, limit int, sizes ...int) (events []got, err error) {
	s := NewScanner(Config{MaxEvent: limit})
	keep := func(ev Event) {
		events = append(events, got{string(ev.Raw), string(ev.Data), string(ev.Name), ev.HasData, ev.Complete})
	}
	rest := []byte(stream)
	for i := 0; len(rest) > 0; i++ {
		n := min(len(rest), max(1, sizes[i%len(sizes)]))
		chunk := bytes.Clone(rest[:n])
		rest = rest[n:]
		s.Feed(chunk)
		for ev, ok := s.Next(); ok; ev, ok = s.Next() {
			keep(ev)
		}
		for i := range chunk {
			chunk[i] = '#'
		}
	}
	if ev, ok := s.Flush(); ok {
		keep(ev)
	}
	return events, s.Err()
}

func data(events []got) []string {
	var all []string
	for _, ev := range events {
		if ev.HasData {
			all = append(all, ev.Data)
		}
	}
	return all
}

func raw(events []got) string {
	var b strings.Builder
	for _, ev := range events {
		b.WriteString(ev.Raw)
	}
	return b.String()
}

func TestEvents(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why    string
		stream string
		want   []string
	}{
		{"two plain events", "data: a\n\ndata: b\n\n", []string{"a", "b"}},
		{"no space behind the colon", "data:a\n\n", []string{"a"}},
		{"only one space is taken away", "data:  a\n\n", []string{" a"}},
		{"several data lines are one event", "data: {\"a\":\ndata: 1}\n\n", []string{"{\"a\":\n1}"}},
		{"three data lines, one empty", "data: a\ndata\ndata: b\n\n", []string{"a\n\nb"}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		{"lone CR", "data: a\r\rdata: b\r\r", []string{"a", "b"}},
		{"line ends mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", []string{"a", "b", "c"}},
		{"a comment is no data", ": keep-alive\n\ndata: a\n\n", []string{"a"}},
		{"a comment inside an event", "data: a\n: x\n\n", []string{"a"}},
		{"a blank line alone", "\n\ndata: a\n\n\n", []string{"a"}},
		{"other fields", "event: message\nid: 7\nretry: 3000\ndata: a\n\n", []string{"a"}},
		{"a field that only begins like data", "database: x\n\ndata: a\n\n", []string{"a"}},
		{"empty data is data", "data:\n\n", []string{""}},
		{"byte order mark", "\ufeffdata: a\n\n", []string{"a"}},
		{"a mark later is part of a field name", "data: a\n\n\ufeffdata: b\n\n", []string{"a"}},
		{"no blank line at the end", "data: a\n\ndata: [DONE]", []string{"a", "[DONE]"}},
		{"a line end, but no blank line", "data: [DONE]\n", []string{"[DONE]"}},
		{"half a CRLF at the end", "data: a\r\n\r\ndata: b\r", []string{"a", "b"}},
		{"multi-byte text", "data: Größe 你好 \n\ndata: 👩‍👩‍👧‍👦\n\n", []string{"Größe 你好 ", "👩‍👩‍👧‍👦"}},
		{"nothing at all", "", nil},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 2, 3, 7, 1460} {
				events, err := scan(tc.stream, 0, size)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, data(events)); diff != "" {
					t.Errorf("chunks of %d: %s", size, diff)
				}
				if r := raw(events); r != tc.stream {
					t.Errorf("chunks of %d: raw bytes %q, want %q", size, r, tc.stream)
				}
			}
		})
	}
}

func TestNameAndCompleteness(t *testing.T) {
	t.Parallel()
	events, err := scan("event: ping\ndata: a\n\n: c\n\ndata: b", 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	want := []got{
		{Raw: "event: ping\ndata: a\n\n", Data: "a", Name: "ping", HasData: true, Complete: true},
		{Raw: ": c\n\n", Complete: true},
		{Raw: "data: b", Data: "b", HasData: true},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
}

// An event must not wait for bytes of the next one, whatever the line ends.
func TestEventsComeInTime(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r\n", "\r"} {
		s := NewScanner(Config{})
		for i := range 3 {
			s.Feed([]byte("data: x" + end + end))
			if _, ok := s.Next(); !ok {
				t.Errorf("line end %q: event %d is held back", end, i)
			}
			if _, ok := s.Next(); ok {
				t.Errorf("line end %q: an event too many", end)
			}
		}
	}
}

// A stream whose events were left out one by one stays well formed.
func TestLeavingOutAnEvent(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r\n", "\r"} {
		stream := strings.ReplaceAll("data: a;;data: usage;;data: [DONE];;", ";", end)
		events, err := scan(stream, 0, 5)
		if err != nil {
			t.Fatal(err)
		}
		left, err := scan(events[0].Raw+events[2].Raw, 0, 3)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a", "[DONE]"}, data(left)); diff != "" {
			t.Errorf("line end %q: %s", end, diff)
		}
	}
}

func TestLongEvents(t *testing.T) {
	t.Parallel()
	for _, n := range []int{65_500, 65_537, 1_048_577, 8_388_608} {
		text := strings.Repeat("x", n)
		events, err := scan("data: a\n\ndata: "+text+"\n\ndata: b\n\n", 0, 32<<10)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) != 3 || events[1].Data != text || events[2].Data != "b" {
			t.Errorf("%d bytes: lost", n)
		}
	}
}

func TestEventOverTheLimit(t *testing.T) {
	t.Parallel()
	stream := "data: a\n\ndata: " + strings.Repeat("x", 100) + "\n\ndata: b\n\n"
	for _, size := range []int{1, 50, 1000} {
		events, err := scan(stream, 64, size)
		if !errors.Is(err, ErrEventTooLarge) || len(events) != 1 {
			t.Errorf("chunks of %d: %d events and error %v, want one and too large", size, len(events), err)
		}
	}
	// Exactly the limit is allowed.
	if _, err := scan("data: "+strings.Repeat("x", 56)+"\n\n", 64, 7); err != nil {
		t.Errorf("64 bytes with a limit of 64: %v", err)
	}
}

// A long event must not keep its buffer for the rest of the stream.
func TestMemoryComesBack(t *testing.T) {
	t.Parallel()
	s := NewScanner(Config{})
	long := append(append([]byte("data: "), make([]byte, 4<<20)...), "\n\n"...)
	for len(long) > 0 {
		n := min(len(long), 32<<10)
		s.Feed(long[:n])
		long = long[n:]
		for _, ok := s.Next(); ok; _, ok = s.Next() {
		}
	}
	s.Feed([]byte("data: a\n\n"))
	if cap(s.own) > 0 {
		t.Errorf("%d bytes kept", cap(s.own))
	}
}

// Whole events in one chunk are handed out without a copy.
func TestNoAllocationForWholeEvents(t *testing.T) {
	s := NewScanner(Config{})
	chunk := []byte("data: {\"a\":1}\n\ndata: {\"b\":2}\n\n")
	n := testing.AllocsPerRun(100, func() {
		s.Feed(chunk)
		for _, ok := s.Next(); ok; _, ok = s.Next() {
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func FuzzChunking(f *testing.F) {
	for _, s := range []string{
		"data: a\n\n", "data: a\r\n\r\nevent: x\r\ndata: b\r\n\r\n", "data: a\r\r\n\rdata: b\r\r", "\ufeffdata\n\n",
		": x\n\n\n\r\n\rdata: a\ndata: b\n\n", "data: a\ndata: b", "data: a\r",
	} {
		f.Add(s, uint8(1), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream string, a, b uint8) {
		const limit = 200
		whole, wholeErr := scan(stream, limit, len(stream)+1)
		parts, partsErr := scan(stream, limit, int(a), int(b))
		if (wholeErr == nil) != (partsErr == nil) {
			t.Fatalf("errors %v and %v", wholeErr, partsErr)
		}
		if diff := cmp.Diff(whole, parts); diff != "" {
			t.Fatal(diff)
		}
		if r := raw(whole); wholeErr == nil && r != stream {
			t.Fatalf("raw bytes %q, want %q", r, stream)
		}
		if diff := cmp.Diff(simple(stream), data(whole)); wholeErr == nil && diff != "" {
			t.Fatal(diff)
		}
	})
}

// simple is the grammar again, written for reading and not for speed.
func simple(stream string) []string {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	var all []string
	var lines []string
	for _, line := range append(strings.Split(stream, "\n"), "") {
		if line == "" {
			if lines != nil {
				all = append(all, strings.Join(lines, "\n"))
			}
			lines = nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		if field == "data" {
			lines = append(lines, strings.TrimPrefix(value, " "))
		}
	}
	return all
}

func BenchmarkScan(b *testing.B) {
	chunk := bytes.Repeat([]byte("data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n"), 50)
	s := NewScanner(Config{})
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		s.Feed(chunk)
		for _, ok := s.Next(); ok; _, ok = s.Next() {
		}
	}
}
