package stack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// restartPause keeps a program that cannot start from taking a whole core.
const restartPause = 20 * time.Millisecond

// program says how one of the pod's programs is run.
type program struct {
	name string
	path string
	args []string
	env  []string // the whole environment
	cpus string   // taskset's list; empty: those of this process
}

// process keeps a program running, as a container's supervisor would: one that dies
// is started again until stop is called.
type process struct {
	program
	log      string
	stopping chan struct{} // closed by stop
	done     chan struct{} // closed when the program is gone for good

	mu       sync.Mutex
	cmd      *exec.Cmd
	restarts int
}

// spawn starts a program with its output in a log file of dir. The kernel kills it
// when this process dies, also of kill -9.
func spawn(p program, dir string) (*process, error) {
	s := &process{
		program: p, log: filepath.Join(dir, p.name+".log"),
		stopping: make(chan struct{}), done: make(chan struct{}),
	}
	started := make(chan error)
	go s.keep(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", p.name, err)
	}
	return s, nil
}

// keep runs the program until stop. The thread stays with this goroutine and ends
// with it: the kernel sends the death signal when the thread that started a child ends.
func (s *process) keep(started chan<- error) {
	runtime.LockOSThread()
	defer close(s.done)
	for first := true; ; first = false {
		cmd, err := s.start()
		if first {
			started <- err
			if err != nil {
				return
			}
		}
		if err == nil {
			_ = cmd.Wait() // its log tells why it ended
		}
		select {
		case <-s.stopping:
			return
		case <-time.After(restartPause):
		}
	}
}

func (s *process) start() (*exec.Cmd, error) {
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := exec.Command(s.path, s.args...)
	if s.cpus != "" {
		cmd = exec.Command("taskset", append([]string{"--cpu-list", s.cpus, s.path}, s.args...)...)
	}
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	select {
	case <-s.stopping:
		return nil, errors.New("it is being stopped")
	default:
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if s.cmd != nil {
		s.restarts++
	}
	s.cmd = cmd
	return cmd, nil
}

// pid is that of the program that runs now, or ran last.
func (s *process) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

// replaceArg changes a flag's value for the next start.
func (s *process) replaceArg(flag, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	args := slices.Clone(s.args)
	if at := slices.Index(args, flag); at >= 0 && at+1 < len(args) {
		args[at+1] = value
	}
	s.args = args
}

// stop sends SIGTERM and waits; after grace it kills and says so.
func (s *process) stop(grace time.Duration) error {
	s.mu.Lock()
	close(s.stopping)
	cmd := s.cmd
	s.mu.Unlock()
	// It fails only for one that has ended already.
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(grace):
		_ = cmd.Process.Kill()
		<-s.done
		return fmt.Errorf("cannot stop %s within %s: it was killed", s.name, grace)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("cannot stop %s well: %s", s.name, cmd.ProcessState)
	}
	return nil
}

// tail is the end of the program's log.
func (s *process) tail() string {
	const most = 3000
	b, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-most):])
}

// defect is an error when the log tells of a bug that a restart would hide.
func (s *process) defect() error {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err
	}
	for _, sign := range [...]string{"WARNING: DATA RACE", "panic: ", "fatal error: ", `"msg":"panic`} {
		if _, rest, found := strings.Cut(string(text), sign); found {
			return fmt.Errorf("%s: %s%s", s.name, sign, rest[:min(len(rest), 4000)])
		}
	}
	return nil
}
