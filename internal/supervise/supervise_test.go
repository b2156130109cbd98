package supervise

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// role makes the test binary play a child, or a supervisor to be killed.
const role = "SUPERVISE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		goleak.VerifyTestMain(m)
	case "parent":
		playParent()
	default:
		playChild(os.Getenv(role))
	}
}

// playChild serves lines on the inherited listener: "who" answers index and
// pid, "keep" does so and keeps the connection, "hold" answers after the stop
// signal has come. Its role says how it takes the signals.
func playChild(kind string) {
	switch kind {
	case "crash":
		note("ran")
		os.Exit(3)
	case "quit":
		note("ran")
		os.Exit(0)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	ln, err := InheritedListener(0)
	if err != nil {
		panic(err)
	}
	stopped := make(chan struct{})
	held := make(chan struct{}, 16)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go answer(c, stopped, held)
		}
	}()
	if b, ok := ln.(*balanced); ok {
		for b.own.looks.Load() == 0 { // up means that it takes connections
			runtime.Gosched()
		}
	}
	index, _ := WorkerIndex()
	note(fmt.Sprintf("up %d %d", index, os.Getpid()))
	for sig := range signals {
		note(fmt.Sprintf("%v %d", sig, index))
		if sig == syscall.SIGHUP || kind == "stubborn" {
			continue
		}
		ln.Close()
		close(stopped)
		if kind == "holder" {
			<-held // the answer in flight is drained
		}
		os.Exit(map[string]int{"rude": 7}[kind])
	}
}

func answer(c net.Conn, stopped <-chan struct{}, held chan<- struct{}) {
	defer c.Close()
	lines := bufio.NewReader(c)
	line, _ := lines.ReadString('\n')
	index, _ := WorkerIndex()
	switch strings.TrimSpace(line) {
	case "who":
		fmt.Fprintf(c, "%d %d\n", index, os.Getpid())
	case "keep":
		fmt.Fprintf(c, "%d %d\n", index, os.Getpid())
		_, _ = lines.ReadByte() // until the client closes
	case "hold":
		fmt.Fprintln(c, "holding")
		<-stopped
		fmt.Fprintln(c, "drained")
		held <- struct{}{}
	}
}

// note appends a line to the test's pipe.
func note(line string) {
	f, err := os.OpenFile(os.Getenv("SUPERVISE_TEST_NOTES"), os.O_WRONLY, 0)
	if err == nil {
		fmt.Fprintln(f, line)
		f.Close()
	}
}

// playParent supervises one child until it is killed.
func playParent() {
	file, err := Listener("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	err = Run(context.Background(), Config{
		Command: []string{os.Args[0]}, Files: []*os.File{file}, Env: []string{role + "=plain"},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		os.Exit(1)
	}
}

// bundle is one supervisor in this process with its children's notes.
type bundle struct {
	addr   string
	file   *os.File
	notes  *bufio.Reader
	cancel context.CancelFunc
	done   chan error
}

// pipe makes a named pipe whose reading end blocks until there is a line.
func pipe(t *testing.T) (path string, notes *bufio.Reader) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notes")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // never at its end
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	_ = f.SetReadDeadline(time.Now().Add(30 * time.Second))
	return path, bufio.NewReader(f)
}

func setup(t *testing.T, kind string, n int, grace time.Duration) *bundle {
	t.Helper()
	path, notes := pipe(t)
	file, err := Listener("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	ln, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	b := &bundle{addr: addr, file: file, notes: notes, cancel: cancel, done: make(chan error, 1)}
	go func() {
		b.done <- Run(ctx, Config{
			Command: []string{os.Args[0]}, N: n, Files: []*os.File{file}, Grace: grace,
			Env:    []string{role + "=" + kind, "SUPERVISE_TEST_NOTES=" + path},
			Logger: slog.New(slog.DiscardHandler),
		})
		close(b.done)
	}()
	t.Cleanup(func() {
		cancel()
		for range b.done { // until Run has returned; how is for the tests that ask
		}
	})
	return b
}

// read gives the next note.
func (b *bundle) read(t *testing.T) string {
	t.Helper()
	line, err := b.notes.ReadString('\n')
	if err != nil {
		t.Fatalf("no note came: %v", err)
	}
	return strings.TrimSpace(line)
}

// up waits for n workers to be up and gives their pids by index.
func (b *bundle) up(t *testing.T, n int) map[int]int {
	t.Helper()
	pids := map[int]int{}
	for len(pids) < n {
		var index, pid int
		if _, err := fmt.Sscanf(b.read(t), "up %d %d", &index, &pid); err != nil {
			t.Fatal(err)
		}
		pids[index] = pid
	}
	return pids
}

// ask sends one line and gives the first line of the answer.
func (b *bundle) ask(t *testing.T, what string) (string, net.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintln(c, what)
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatalf("no answer to %s: %v", what, err)
	}
	return strings.TrimSpace(line), c
}

// kill ends a child with SIGKILL and waits until it is gone from the system.
func kill(t *testing.T, pid int) {
	t.Helper()
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, pidfd)
}

func awaitExit(t *testing.T, pidfd int) {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 20_000)
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			t.Fatalf("the process does not end: %v", err)
		}
		return
	}
}

// A worker that is killed is there again in milliseconds, and every connection
// made meanwhile is served: the socket is never closed.
func TestKillRestarts(t *testing.T) {
	t.Parallel()
	b := setup(t, "plain", 1, 0)
	pid := b.up(t, 1)[0]
	for range 3 {
		kill(t, pid)
		began := time.Now()
		answer, _ := b.ask(t, "who") // queued while no worker lives
		if d := time.Since(began); d > 5*time.Second {
			t.Errorf("the restart took %s", d)
		}
		next := b.up(t, 1)[0]
		if next == pid || answer != "0 "+strconv.Itoa(next) {
			t.Errorf("answer %q, process %d after %d", answer, next, pid)
		}
		pid = next
	}
	// Starting a child must not make the shared socket blocking: its siblings
	// would hang in accept.
	raw, err := b.file.SyscallConn() // Fd itself would make it blocking
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
			t.Errorf("the socket is blocking now: %v", err)
		}
	})
	b.cancel()
	if err := <-b.done; err != nil {
		t.Error(err)
	}
}

func TestWorkersShareTheSocket(t *testing.T) {
	t.Parallel()
	b := setup(t, "plain", 3, 0)
	pids := b.up(t, 3)
	seen := map[string]bool{}
	for range 5000 {
		answer, c := b.ask(t, "who")
		c.Close()
		if seen[answer] = true; len(seen) == 3 {
			break
		}
	}
	for index, pid := range pids {
		if who := fmt.Sprintf("%d %d", index, pid); !seen[who] {
			t.Errorf("%s never answered", who)
		}
	}
	// One is killed: only that one is replaced, in its own place.
	kill(t, pids[1])
	if again := b.up(t, 1); again[1] == 0 || again[1] == pids[1] {
		t.Errorf("got %v", again)
	}
}

// The stop is passed on, the answer in flight is finished, and new connections
// meanwhile wait in the queue instead of being refused.
func TestStopDrains(t *testing.T) {
	t.Parallel()
	b := setup(t, "holder", 1, 0)
	b.up(t, 1)
	first, c := b.ask(t, "hold")
	if first != "holding" {
		t.Fatalf("got %q", first)
	}
	b.cancel()
	rest, err := io.ReadAll(c)
	if string(rest) != "drained\n" || err != nil {
		t.Errorf("got %q %v", rest, err)
	}
	if err := <-b.done; err != nil {
		t.Errorf("got %v", err)
	}
	if got := b.read(t); got != "terminated 0" {
		t.Errorf("got %q", got)
	}
	if queued, err := net.Dial("tcp", b.addr); err != nil {
		t.Errorf("the socket was closed: %v", err)
	} else {
		queued.Close()
	}
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, kind string
		grace     time.Duration
		want      string
	}{
		{"ends with 0 after the stop", "plain", time.Minute, ""},
		{"ends with another status after the stop", "rude", time.Minute, "cannot stop worker 0 cleanly: exit status 7"},
		{"does not end within Grace", "stubborn", 300 * time.Millisecond, "cannot stop worker 0 within Grace 300ms"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.kind, 1, c.grace)
			pid := b.up(t, 1)[0]
			b.cancel()
			err := <-b.done
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v", err)
			}
			if unix.Kill(pid, 0) != unix.ESRCH {
				t.Error("the child outlived Run")
			}
		})
	}
}

// A child that ends by itself is started again, whatever its status; in a
// crash loop ever more slowly, and a stop ends the wait at once.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"crash", "quit"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := setup(t, kind, 1, 0)
			for range freeRestarts + 5 {
				if got := b.read(t); got != "ran" {
					t.Fatalf("got %q", got)
				}
			}
			b.cancel()
			// The last child may have been running when the stop came.
			if err := <-b.done; err != nil && !strings.Contains(err.Error(), "exit status 3") {
				t.Error(err)
			}
		})
	}
}

func TestRestartDelay(t *testing.T) {
	t.Parallel()
	for ends, want := range map[int]time.Duration{
		0: 0, 1: 0, 3: 0, // a single crash costs nothing
		4: 10 * time.Millisecond, 5: 20 * time.Millisecond, 8: 160 * time.Millisecond,
		11: time.Second, 1000: time.Second, // never longer than this
	} {
		if got := restartDelay(ends); got != want {
			t.Errorf("after %d: got %s, want %s", ends, got, want)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	for why, cfg := range map[string]Config{
		"no command":       {},
		"negative N":       {Command: []string{"true"}, N: -1},
		"negative grace":   {Command: []string{"true"}, Grace: -1},
		"no such program":  {Command: []string{"/nonexistent/program"}, N: 2},
		"not a program":    {Command: []string{"/"}},
		"not in the PATH ": {Command: []string{"no-such-program-anywhere"}},
	} {
		cfg.Logger = slog.New(slog.DiscardHandler)
		if err := Run(t.Context(), cfg); err == nil || !strings.HasPrefix(err.Error(), "cannot ") {
			t.Errorf("%s: %v", why, err)
		}
	}
}

func TestListenerErrors(t *testing.T) {
	t.Parallel()
	if _, err := Listener("256.0.0.1:x"); err == nil {
		t.Error("a bad address is taken")
	}
	if _, err := InheritedListener(0); err == nil || !strings.HasPrefix(err.Error(), "cannot take inherited listener 0") {
		t.Errorf("got %v", err)
	}
	if _, ok := WorkerIndex(); ok {
		t.Error("this process is no worker")
	}
}

// Asking a copy for its descriptor, as os/exec does, leaves the socket as it is.
func TestPlainKeepsTheSocketNonBlocking(t *testing.T) {
	t.Parallel()
	file, err := Listener("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	copies, err := plain([]*os.File{file})
	defer closeAll(copies)
	if err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(copies[0].Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("the socket is blocking now: %v", err)
	}
	closed, err := Listener("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	if _, err := plain([]*os.File{closed}); err == nil {
		t.Error("a closed file is passed down")
	}
}
