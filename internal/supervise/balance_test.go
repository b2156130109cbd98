package supervise

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// keep opens n connections that stay, and counts them by who serves them. Every
// one must be served.
func (b *bundle) keep(t *testing.T, n int) map[string]int {
	t.Helper()
	who := map[string]int{}
	for range n {
		answer, _ := b.ask(t, "keep")
		who[answer]++
	}
	return who
}

// keepTogether is keep with all connections at once.
func (b *bundle) keepTogether(t *testing.T, n int) map[string]int {
	t.Helper()
	var mu sync.Mutex
	var opening sync.WaitGroup
	who := map[string]int{}
	for range n {
		opening.Go(func() {
			c, err := net.Dial("tcp", b.addr)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { c.Close() })
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			fmt.Fprintln(c, "keep")
			line := make([]byte, 100)
			n, err := c.Read(line)
			if err != nil {
				t.Errorf("a connection was lost: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			who[strings.TrimSpace(string(line[:n]))]++
		})
	}
	opening.Wait()
	return who
}

// even fails unless n connections are spread over workers within a factor of 2.
func even(t *testing.T, who map[string]int, n, workers int) {
	t.Helper()
	least, most, sum := n, 0, 0
	for _, c := range who {
		least, most, sum = min(least, c), max(most, c), sum+c
	}
	if len(who) != workers || most > 2*least || sum != n {
		t.Errorf("%d connections are spread as %v over %d workers", n, who, workers)
	}
}

// Left alone, the kernel may give one worker nearly all connections.
func TestConnectionsAreShared(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{2, 3} {
		for order, open := range map[string]func(*bundle, *testing.T, int) map[string]int{
			"one after another": (*bundle).keep, "together": (*bundle).keepTogether,
		} {
			t.Run(fmt.Sprintf("%d workers, %s", workers, order), func(t *testing.T) {
				t.Parallel()
				b := setup(t, "plain", workers, 0)
				b.up(t, workers)
				even(t, open(b, t, 64), 64, workers)
			})
		}
	}
}

// A worker that hangs and is then killed costs its siblings nothing, and the one
// that follows it starts from zero and takes what evens them out.
func TestKilledWorkerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t, "plain", 2, 0)
	pids := b.up(t, 2)
	even(t, b.keep(t, 32), 32, 2)

	hung, living := fmt.Sprintf("0 %d", pids[0]), fmt.Sprintf("1 %d", pids[1])
	err := unix.Kill(pids[0], unix.SIGSTOP)
	if err == nil { // until it does not run any more
		err = unix.Waitid(unix.P_PID, pids[0], nil, unix.WSTOPPED|unix.WNOWAIT, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if who := b.keep(t, 64); who[living] != 64 {
		t.Errorf("%s hangs, and still: %v", hung, who)
	}
	// The limit only has to tell that nobody hangs.
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("64 connections took %s", d)
	}
	kill(t, pids[0])
	began = time.Now()
	b.ask(t, "who")
	if d := time.Since(began); d > time.Second {
		t.Errorf("after the kill a connection took %s", d)
	}
	next := fmt.Sprintf("0 %d", b.up(t, 1)[0])
	who := b.keep(t, 80+64) // the living one has about 80
	if who[next] < 100 || who[next]+who[living] != 144 {
		t.Errorf("after the restart: %v", who)
	}
}

// alone makes a worker's listener in this process, with slots of its own.
func alone(t *testing.T, workers int) *balanced {
	t.Helper()
	socket, err := Listener("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.FileListener(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	l, err := newBalanced(socket, ln.Addr(), make([]slot, workers), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// dialed gives the accepted end of a new connection.
func dialed(t *testing.T, l *balanced) net.Conn {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestOthersTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why          string
		mine, theirs int64
		serving      uint32
		doubt        doubt // their looks are 7
		want         bool
	}{
		{"the other has clearly fewer", 2, 0, 1, doubt{}, true},
		{"the other has one fewer: two would hold back in turn", 1, 0, 1, doubt{}, false},
		{"the other has as many", 5, 5, 1, doubt{}, false},
		{"the other has more", 1, 5, 1, doubt{}, false},
		{"the other is down", 9, 0, 0, doubt{}, false},
		{"the other was waited for in vain", 9, 0, 1, doubt{looks: 7, grant: 4, left: 1}, false},
		{"and is given another chance", 9, 0, 1, doubt{looks: 7, grant: 4}, true},
		{"and has come to itself since", 9, 0, 1, doubt{looks: 6, grant: 4, left: 4}, true},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			l := alone(t, 2)
			l.own.open.Store(c.mine)
			other := &l.slots[1]
			other.open.Store(c.theirs)
			other.serving.Store(c.serving)
			other.looks.Store(7)
			l.doubts[1] = c.doubt
			if got := l.othersTurn(); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// A stuck sibling costs ever fewer waits, until it looks again.
func TestStuckSiblingCostsFewWaits(t *testing.T) {
	t.Parallel()
	l := alone(t, 3)
	stuck := &l.slots[2]
	stuck.serving.Store(1)
	stuck.looks.Store(7)
	var waits []int // the connections that were waited with
	for i := range 17 {
		began := time.Now()
		dialed(t, l)
		if d := l.doubts[2]; d.left == d.grant-1 {
			waits = append(waits, i)
			if took := time.Since(began); took < patience {
				t.Errorf("connection %d was taken after %s", i, took)
			}
		}
	}
	// The first two connections are this worker's own turn.
	if want := []int{2, 3, 5, 8, 12}; !slices.Equal(waits, want) {
		t.Errorf("waited with connections %v, want %v", waits, want)
	}
	if n := l.own.open.Load(); n != 17 || !l.heldSince.IsZero() {
		t.Errorf("counted %d connections, held since %s", n, l.heldSince)
	}
	stuck.looks.Add(1)
	dialed(t, l)
	if d := l.doubts[2]; d.looks != 8 || d.grant != 1 {
		t.Errorf("after it has looked: %+v", d)
	}
}

// What a server needs of an accepted connection, and that it counts until it is
// closed, once.
func TestCountedConn(t *testing.T) {
	t.Parallel()
	l := alone(t, 1)
	a, b := dialed(t, l), dialed(t, l)
	if _, ok := a.(interface {
		syscall.Conn
		CloseWrite() error
		SetKeepAlive(bool) error
	}); !ok {
		t.Errorf("%T hides what a TCP connection can", a)
	}
	if a.RemoteAddr() == nil || a.LocalAddr().String() != l.Addr().String() {
		t.Errorf("addresses %v %v", a.RemoteAddr(), a.LocalAddr())
	}
	for range 2 {
		a.Close()
		if n := l.own.open.Load(); n != 1 {
			t.Errorf("counted %d connections", n)
		}
	}
	l.Close() // a connection outlives its listener
	b.Close()
	if n := l.own.open.Load(); n != 0 {
		t.Errorf("counted %d connections", n)
	}
}

// Close ends a waiting Accept as a server expects it, and nobody waits for a
// worker that drains.
func TestBalancedClose(t *testing.T) {
	t.Parallel()
	l := alone(t, 2)
	dialed(t, l)
	failed := make(chan error)
	go func() { _, err := l.Accept(); failed <- err }()
	l.Close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "use of closed network connection") {
		t.Errorf("got %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if l.own.serving.Load() != 0 {
		t.Error("it still asks to be waited for")
	}
}

// The processes see one another's slots; an end clears those of one worker only.
func TestTally(t *testing.T) {
	t.Parallel()
	if slotSize != 64 {
		t.Errorf("a slot has %d bytes, a cache line 64", slotSize)
	}
	tl, err := newTally(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer tl.close()
	child, err := mapSlots(int(tl.file.Fd()), 6)
	if err != nil {
		t.Fatal(err)
	}
	for i := range child {
		child[i].serving.Store(1)
		child[i].looks.Store(5)
	}
	tl.forget(1)
	for i := range tl.slots {
		want := uint32(1)
		if i == 1 || i == 4 {
			want = 0
		}
		if s := &tl.slots[i]; s.serving.Load() != want || s.looks.Load() != 5 {
			t.Errorf("slot %d: serving %d, looks %d", i, s.serving.Load(), s.looks.Load())
		}
	}
	none, err := newTally(0, 2) // a program without listeners
	if err != nil {
		t.Fatal(err)
	}
	none.close()
	if _, err := mapSlots(-1, 1); err == nil {
		t.Error("mapped no file")
	}
}
