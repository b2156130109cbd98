package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBoom = errors.New("boom")

// diary notes what happens in which order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// part is a well-behaved server that notes its steps.
func (d *diary) part(name string) Part {
	stop := make(chan struct{})
	return Part{
		Name:  name,
		Start: func(context.Context) error { d.note("start " + name); return nil },
		Run:   func() error { <-stop; d.note("end " + name); return nil },
		Stop:  func(context.Context) error { d.note("stop " + name); close(stop); return nil },
	}
}

func group(parts ...Part) *Group {
	g := New(Config{StopTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	for _, p := range parts {
		g.Add(p)
	}
	return g
}

// then cancels once the last part of a group is up.
func then(cancel context.CancelFunc) Part {
	return Part{Name: "last", Start: func(context.Context) error { cancel(); return nil }}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var d diary
	if err := group(d.part("a"), d.part("b"), then(cancel)).Run(ctx); err != nil {
		t.Error(err)
	}
	// b has ended before a is stopped: b may need a to the last.
	want := []string{"start a", "start b", "stop b", "end b", "stop a", "end a"}
	if diff := cmp.Diff(want, d.lines); diff != "" {
		t.Error(diff)
	}
}

func TestFirstErrorWins(t *testing.T) {
	t.Parallel()
	ended := Part{Name: "ended", Run: func() error { return nil }}
	failing := Part{Name: "failing", Run: func() error { return errBoom }}
	badStart := Part{Name: "bad", Start: func(context.Context) error { return errBoom }}
	badStop := Part{Name: "bad", Stop: func(context.Context) error { return errBoom }}
	for _, c := range []struct {
		why    string
		parts  func(*diary, context.CancelFunc) []Part
		want   string // in the error
		starts int    // parts of the diary that were started, and so stopped
	}{
		{"a start fails: what follows is not started", func(d *diary, _ context.CancelFunc) []Part {
			return []Part{d.part("a"), badStart, d.part("b")}
		}, "cannot start bad: boom", 1},
		{"a part fails by itself", func(d *diary, _ context.CancelFunc) []Part {
			return []Part{d.part("a"), failing, d.part("b")}
		}, "cannot go on without failing: boom", 2},
		{"a part that just ends is a failure", func(d *diary, _ context.CancelFunc) []Part {
			return []Part{d.part("a"), ended}
		}, "it returned before it was stopped", 1},
		{"a stop fails: the others are stopped all the same", func(d *diary, cancel context.CancelFunc) []Part {
			return []Part{d.part("a"), badStop, d.part("b"), then(cancel)}
		}, "cannot stop bad: boom", 2},
		{"a failed part does not hide behind a failed stop", func(d *diary, _ context.CancelFunc) []Part {
			return []Part{badStop, d.part("a"), failing}
		}, "cannot go on without failing", 1},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var d diary
			err := group(c.parts(&d, cancel)...).Run(ctx)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			starts := len(slices.DeleteFunc(slices.Clone(d.lines), func(l string) bool { return !strings.HasPrefix(l, "start ") }))
			if starts != c.starts || len(d.lines) != 3*starts {
				t.Errorf("got %q", d.lines)
			}
		})
	}
}

func TestCanceledBeforeStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var d diary
	if err := group(d.part("a")).Run(ctx); err != nil || d.lines != nil {
		t.Errorf("got %v %q", err, d.lines)
	}
}

// The stop has a context of its own: the caller's is over when it begins. One
// part that hangs uses the time up, and those before it are still stopped.
func TestStopDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var d diary
		release := make(chan struct{})
		hanging := Part{
			Name: "hanging",
			Run:  func() error { <-release; return nil },
			Stop: func(ctx context.Context) error {
				if ctx.Err() != nil {
					t.Error("the stop's context is over before it begins")
				}
				return nil
			},
		}
		began := time.Now()
		err := group(d.part("a"), hanging, then(cancel)).Run(ctx)
		if err == nil || !strings.Contains(err.Error(), "cannot stop hanging within StopTimeout 5s") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it took %s", took)
		}
		if !slices.Contains(d.lines, "stop a") {
			t.Errorf("got %q", d.lines)
		}
		close(release)
	})
}
