package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// rapid is the life below which an end counts towards a crash loop.
	rapid = time.Second
	// freeRestarts are made at once; a single crash must cost milliseconds.
	freeRestarts = 3
	maxDelay     = time.Second
)

// restartDelay is the wait before the next start after a number of rapid ends
// in a row.
func restartDelay(rapidEnds int) time.Duration {
	if rapidEnds <= freeRestarts {
		return 0
	}
	return min(10*time.Millisecond<<min(rapidEnds-freeRestarts-1, 10), maxDelay)
}

// worker is one place for a child: the processes in it follow one another.
type worker struct {
	cfg   Config
	index int
	tally *tally
	stop  chan struct{} // closed by the first stop signal

	mu       sync.Mutex
	proc     *os.Process // nil between two children
	stopping bool
	killed   bool
}

// run keeps a child running until a stop signal, and returns what went wrong
// with the last one.
func (w *worker) run() error {
	// The kernel sends a child its death signal when the thread that started it
	// ends, not the process. The thread stays as long as it is locked to this
	// goroutine, and the goroutine outlives every child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for rapidEnds, first := 0, true; ; first = false {
		began := time.Now()
		cmd, err := w.start()
		if err != nil && first {
			return fmt.Errorf("cannot start %s: %w", w.cfg.Command[0], err)
		}
		if cmd != nil {
			err = w.wait(cmd)
		}
		if w.isStopping() {
			return w.verdict(err)
		}
		lived := time.Since(began)
		if rapidEnds++; lived >= rapid {
			rapidEnds = 0
		}
		delay := restartDelay(rapidEnds)
		w.cfg.Logger.Warn("worker ended and is restarted", "worker", w.index, "reason", reason(err),
			"lived", lived.String(), "delay", delay.String())
		select {
		case <-time.After(delay):
		case <-w.stop:
			return nil
		}
	}
}

// start gives no command and no error when a stop came first.
func (w *worker) start() (*exec.Cmd, error) {
	cmd := exec.Command(w.cfg.Command[0], w.cfg.Command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = append(slices.Clone(w.cfg.Files), w.tally.file)
	cmd.Env = append(append(os.Environ(), w.cfg.Env...),
		envIndex+"="+strconv.Itoa(w.index), envListeners+"="+strconv.Itoa(len(w.cfg.Files)),
		envWorkers+"="+strconv.Itoa(w.cfg.N))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		// A group of its own: Ctrl-C at a terminal reaches the child through
		// us, once, and not a second time from the terminal.
		Setpgid: true,
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return nil, nil
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w.proc = cmd.Process
	return cmd, nil
}

func (w *worker) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proc = nil
	w.tally.forget(w.index)
	return err
}

// signal passes a signal on. Any but SIGHUP also ends the restarts.
func (w *worker) signal(sig os.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if sig != syscall.SIGHUP && !w.stopping {
		w.stopping = true
		close(w.stop)
	}
	if w.proc == nil {
		return
	}
	w.killed = w.killed || sig == syscall.SIGKILL
	// It fails only when the child has just ended; wait sees to that.
	_ = w.proc.Signal(sig)
}

func (w *worker) isStopping() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopping
}

// verdict judges how the last child ended after the stop.
func (w *worker) verdict(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killed {
		return fmt.Errorf("cannot stop worker %d within Grace %s: it was killed", w.index, w.cfg.Grace)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status, _ := exit.Sys().(syscall.WaitStatus)
		if status.Signaled() && (status.Signal() == syscall.SIGTERM || status.Signal() == syscall.SIGINT) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("cannot stop worker %d cleanly: %w", w.index, err)
	}
	return nil
}

func reason(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}
