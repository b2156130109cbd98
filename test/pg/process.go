package pg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// process is a server program that runs until it is ended, or until the process
// that started it is gone.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when the program has ended
}

// spawn starts a program with its output in a log file. The kernel sends it the
// signal death when this process dies, also of kill -9; since the kernel watches
// the thread that started it, that thread is kept for it.
func spawn(cmd *exec.Cmd, dir, name string, death syscall.Signal) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), cmd: cmd, done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write the log of %s: %w", name, err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr.Pdeathsig = death
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		defer close(p.done)
		defer out.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its log tells why it ended
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	return p, nil
}

// ready waits until check succeeds; it fails when the program ends before.
func (p *process) ready(ctx context.Context, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("cannot start %s: it ended: %s", p.name, p.tail())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("cannot start %s: %w: %s", p.name, err, p.tail()), p.end(syscall.SIGKILL))
		case <-tick.C:
		}
	}
}

// end sends a signal and waits until the program is gone.
func (p *process) end(sig syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot end %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// tail is the end of the program's log.
func (p *process) tail() string {
	const most = 2000
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-most):])
}

// unprivileged is the account for servers that refuse to run as root: nil when
// this process is not root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("cannot drop root: no account postgres; install the Debian package postgresql: %w", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

// tempDir makes a folder that the account owns.
func tempDir(prefix string, account *syscall.Credential) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", fmt.Errorf("cannot make a folder (TMPDIR): %w", err)
	}
	if account != nil {
		if err := os.Chown(dir, int(account.Uid), int(account.Gid)); err != nil {
			return "", errors.Join(fmt.Errorf("cannot give a folder to the account postgres: %w", err), os.RemoveAll(dir))
		}
	}
	return dir, nil
}
