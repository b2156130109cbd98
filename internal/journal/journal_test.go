package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNumbersAreGivenAtClose(t *testing.T) {
	t.Parallel()
	j := create(t, Config{})
	slow := mustOpen(t, j, "slow")
	quick := mustOpen(t, j, "quick")
	if seq := mustClose(t, j, quick, "quick done"); seq != 1 {
		t.Errorf("the first close has number %d, want 1 although its entry was opened second", seq)
	}
	if seq := mustClose(t, j, slow, "slow done"); seq != 2 {
		t.Errorf("the second close has number %d, want 2", seq)
	}
	got := closedText(j.Pending(0, 10))
	if diff := cmp.Diff([]string{"1:quick done", "2:slow done"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPending(t *testing.T) {
	t.Parallel()
	j := create(t, Config{})
	for _, text := range []string{"a", "b", "c", "d"} {
		mustClose(t, j, mustOpen(t, j, text), text)
	}
	j.Ack(1)
	for _, c := range []struct {
		why   string
		after uint64
		max   int
		want  []string
	}{
		{"acked numbers are gone", 0, 10, []string{"2:b", "3:c", "4:d"}},
		{"the sender asks for what follows the last sent", 2, 10, []string{"3:c", "4:d"}},
		{"a batch is bounded", 1, 2, []string{"2:b", "3:c"}},
		{"nothing beyond the last", 4, 10, nil},
		{"a cursor that is ahead finds nothing", 99, 10, nil},
	} {
		if diff := cmp.Diff(c.want, closedText(j.Pending(c.after, c.max))); diff != "" {
			t.Errorf("%s: %s", c.why, diff)
		}
	}
	j.Ack(99)
	if s := j.Stats(); s.Acked != 4 || s.Unacked != 0 {
		t.Errorf("an ack beyond the last number gives acked %d, unacked %d; want 4, 0", s.Acked, s.Unacked)
	}
	j.Ack(2)
	if s := j.Stats(); s.Acked != 4 {
		t.Errorf("a late ack moved acked back to %d", s.Acked)
	}
}

func TestNotifyTellsOfACloseThatHappenedBefore(t *testing.T) {
	t.Parallel()
	j := create(t, Config{})
	mustClose(t, j, mustOpen(t, j, "a"), "a")
	mustClose(t, j, mustOpen(t, j, "b"), "b")
	<-j.Notify()
	select {
	case <-j.Notify():
		t.Error("two closes before a look at Pending are one notice")
	default:
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	j := create(t, Config{})
	e := mustOpen(t, j, "x")
	long := make([]byte, j.MaxPayload()+1)
	if _, err := j.Open(long); !errors.Is(err, ErrTooLarge) {
		t.Errorf("open beyond MaxPayload: %v", err)
	}
	if err := j.Attempt(e, long); !errors.Is(err, ErrTooLarge) {
		t.Errorf("attempt beyond MaxPayload: %v", err)
	}
	if room := j.CloseRoom(e); room != 1+CloseExtra {
		t.Errorf("close room is %d", room)
	}
	if _, err := j.Close(e, make([]byte, 2+CloseExtra)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("close beyond its room: %v", err)
	}
	if _, err := j.Close(e, make([]byte, 1+CloseExtra)); err != nil {
		t.Errorf("the entry stays open after a close that was too long: %v", err)
	}
	if _, err := j.Close(e, nil); !errors.Is(err, ErrNotOpen) {
		t.Errorf("second close: %v", err)
	}
	if err := j.Attempt(e, nil); !errors.Is(err, ErrNotOpen) {
		t.Errorf("attempt after close: %v", err)
	}
	if s := j.Stats(); s.NextSeq != 2 {
		t.Errorf("refused closes took numbers: next is %d", s.NextSeq)
	}
}

func TestEveryOpenEntryCanBeClosedWhenFull(t *testing.T) {
	t.Parallel()
	j := create(t, Config{})
	var open []Entry
	for {
		e, err := j.Open([]byte(strings.Repeat("o", 10+len(open)%300)))
		if errors.Is(err, ErrFull) {
			break
		}
		open = append(open, e)
	}
	if len(open) < 10 {
		t.Fatalf("only %d entries fit", len(open))
	}
	for i, e := range open {
		if _, err := j.Close(e, make([]byte, j.CloseRoom(e))); err != nil {
			t.Fatalf("cannot close entry %d of %d with all its room: %v", i, len(open), err)
		}
	}
	a := crash(t, j)
	if len(a.Closed) != len(open) || len(a.Open) != 0 || a.Damaged != 0 {
		t.Errorf("adoption has %d closed, %d open, %d damaged; want %d, 0, 0", len(a.Closed), len(a.Open), a.Damaged, len(open))
	}
	j.Ack(uint64(len(open)))
	if s := j.Stats(); s.Segments != 1 || s.FullTotal != 1 {
		t.Errorf("after all acks: %d segments in use, want 1; full %d times, want 1", s.Segments, s.FullTotal)
	}
}

func TestALongStreamDoesNotKeepTheRest(t *testing.T) {
	t.Parallel()
	j := create(t, Config{})
	stream := mustOpen(t, j, "stream")
	if err := j.Attempt(stream, []byte("stream, second attempt")); err != nil {
		t.Fatal(err)
	}
	payload := strings.Repeat("p", 400)
	for range 1000 { // several times all the room there is
		j.Ack(mustClose(t, j, mustOpen(t, j, payload), payload))
	}
	if s := j.Stats(); s.CopiedTotal == 0 {
		t.Error("the stream's entry was never copied forward")
	}
	a := crash(t, j)
	if diff := cmp.Diff([]string{"stream, second attempt"}, openText(a.Open)); diff != "" {
		t.Error(diff)
	}
	if a.NextSeq != 1001 {
		t.Errorf("next number is %d, want 1001 after reuse of every segment", a.NextSeq)
	}
	if seq := mustClose(t, j, stream, "end"); seq != 1001 {
		t.Errorf("close got number %d", seq)
	}
}

func TestUnackedRecordsAreNeverOverwritten(t *testing.T) {
	t.Parallel()
	j := create(t, Config{})
	payload := strings.Repeat("p", 400)
	closed := 0
	for {
		e, err := j.Open([]byte(payload))
		if err != nil {
			break
		}
		mustClose(t, j, e, payload)
		closed++
	}
	if got := len(j.Pending(0, closed+1)); got != closed {
		t.Errorf("%d records pending, want %d", got, closed)
	}
	j.Ack(uint64(closed))
	if _, err := j.Open([]byte(payload)); err != nil {
		t.Errorf("acks made no room: %v", err)
	}
}

func TestPolicyBlock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		then func(*Journal)
		want error
	}{
		{"acks make room", func(j *Journal) { j.Ack(j.Stats().NextSeq - 1) }, nil},
		{"the bound passes", func(*Journal) { time.Sleep(time.Minute) }, ErrFull},
		{"the journal stops", func(j *Journal) { _ = j.Stop() }, ErrStopped},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // the minute passes in no time
				j := create(t, Config{Full: Block, BlockFor: time.Minute})
				fill(t, j)
				opened := make(chan error, 1)
				go func() {
					_, err := j.Open([]byte("waits"))
					opened <- err
				}()
				synctest.Wait()
				if len(opened) > 0 {
					t.Fatal("the open did not wait")
				}
				c.then(j)
				if err := <-opened; !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		})
	}
}

func TestPolicyDrop(t *testing.T) {
	t.Parallel()
	j := create(t, Config{Full: Drop})
	first := mustOpen(t, j, "held until the end")
	fill(t, j)
	lost, kept := mustOpen(t, j, "lost"), mustOpen(t, j, "kept")
	if err := j.Attempt(lost, []byte("again")); err != nil {
		t.Errorf("attempt of a dropped entry: %v", err)
	}
	if _, err := j.Close(lost, make([]byte, j.CloseRoom(lost))); !errors.Is(err, ErrDropped) {
		t.Errorf("close of a dropped entry without room: %v", err)
	}
	if s := j.Stats(); s.DroppedTotal != 1 {
		t.Errorf("%d drops counted, want 1", s.DroppedTotal)
	}
	mustClose(t, j, first, "was journaled, so it has its room")
	j.Ack(j.Stats().NextSeq - 1)
	if seq := mustClose(t, j, kept, "kept"); seq != j.Stats().NextSeq-1 {
		t.Errorf("a dropped entry that finds room at its close is a record like any other; got number %d", seq)
	}
}

// fill closes records until the journal has no room for one more.
func fill(t *testing.T, j *Journal) {
	t.Helper()
	full := j.cfg.Full
	j.cfg.Full = Reject
	payload := make([]byte, 400)
	for size := len(payload); size > 0; {
		e, err := j.Open(payload[:size])
		if err != nil {
			size /= 2
			continue
		}
		mustClose(t, j, e, string(payload[:size]))
	}
	j.cfg.Full = full
}

func TestStop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		do   func(*testing.T, *Journal)
		gone bool
	}{
		{"an unused journal leaves nothing", func(*testing.T, *Journal) {}, true},
		{"all is acked", func(t *testing.T, j *Journal) { j.Ack(mustClose(t, j, mustOpen(t, j, "a"), "a")) }, true},
		{"a record waits for its ack", func(t *testing.T, j *Journal) { mustClose(t, j, mustOpen(t, j, "a"), "a") }, false},
		{"a request is open", func(t *testing.T, j *Journal) { mustOpen(t, j, "a") }, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			j := create(t, Config{})
			c.do(t, j)
			if err := j.Stop(); err != nil {
				t.Fatal(err)
			}
			dead, err := Dead(j.cfg.Root)
			if err != nil || (len(dead) == 0) != c.gone {
				t.Errorf("left for adoption: %v, %v", dead, err)
			}
			if _, err := j.Open(nil); !errors.Is(err, ErrStopped) {
				t.Errorf("open after stop: %v", err)
			}
			if j.Pending(0, 1) != nil {
				t.Error("pending after stop")
			}
			j.Ack(1)
			if err := j.Stop(); !errors.Is(err, ErrStopped) {
				t.Errorf("second stop: %v", err)
			}
		})
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	ok := Config{Root: t.TempDir(), Identity: newIdentity(), SegmentBytes: minSegment, MaxSegments: 2}
	for _, c := range []struct {
		why    string
		change func(*Config)
		names  string
	}{
		{"no root", func(c *Config) { c.Root = "" }, "Root"},
		{"a segment too small for a record", func(c *Config) { c.SegmentBytes = 4096 }, "SegmentBytes"},
		{"a size that is no multiple of a page", func(c *Config) { c.SegmentBytes++ }, "SegmentBytes"},
		{"one segment cannot be reused in order", func(c *Config) { c.MaxSegments = 1 }, "MaxSegments"},
		{"a pod UID that leaves the root", func(c *Config) { c.Identity.PodUID = "../x" }, "POD_UID"},
		{"a pod UID that hides the folder", func(c *Config) { c.Identity.PodUID = ".x" }, "POD_UID"},
		{"no pod UID", func(c *Config) { c.Identity.PodUID = "" }, "POD_UID"},
	} {
		cfg := ok
		c.change(&cfg)
		if _, err := Create(cfg); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v, want an error that names %s", c.why, err, c.names)
		}
	}
}

func TestCreateRefusesAnIdentityThatWasUsed(t *testing.T) {
	t.Parallel()
	j := create(t, Config{})
	if _, err := Create(j.cfg); err == nil {
		t.Fatal("two journals of one process life")
	}
	left, err := filepath.Glob(filepath.Join(j.cfg.Root, ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("a failed create leaves %v", left)
	}
}

func TestCreateSweepsLeftovers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{newPrefix + "x-0-00", gonePrefix + "y-0-00"} {
		if err := os.MkdirAll(filepath.Join(root, name, "inside"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	create(t, Config{Root: root})
	if left, _ := filepath.Glob(filepath.Join(root, ".*")); len(left) != 0 {
		t.Errorf("what killed processes left behind still takes memory: %v", left)
	}
}

// Records that do not get through are told by their age.
func TestOldest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := create(t, Config{})
		for _, c := range []struct {
			why  string
			do   func()
			want time.Duration
		}{
			{"nothing waits", func() {}, 0},
			{"an open request is none", func() { mustOpen(t, j, "a") }, 0},
			{"the first that waits", func() { mustClose(t, j, mustOpen(t, j, "b"), "b"); time.Sleep(time.Second) }, time.Second},
			{"not the last", func() { mustClose(t, j, mustOpen(t, j, "c"), "c"); time.Sleep(time.Second) }, 2 * time.Second},
			{"acked ones wait no more", func() { j.Ack(1) }, time.Second},
			{"all are in", func() { j.Ack(2) }, 0},
		} {
			if c.do(); j.Stats().Oldest != c.want {
				t.Errorf("%s: %s, want %s", c.why, j.Stats().Oldest, c.want)
			}
		}
	})
}
