package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// parent starts a supervisor as a process of its own, with one child, and
// gives a descriptor of the child.
func parent(t *testing.T) (cmd *exec.Cmd, b *bundle, childfd int) {
	t.Helper()
	path, notes := pipe(t)
	b = &bundle{notes: notes}
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"=parent", "SUPERVISE_TEST_NOTES="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	childfd, err := unix.PidfdOpen(b.up(t, 1)[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(childfd) })
	return cmd, b, childfd
}

// A child never outlives a supervisor that was killed.
func TestChildDiesWithParent(t *testing.T) {
	t.Parallel()
	cmd, _, childfd := parent(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, childfd)
}

func TestSignalsArePassedOn(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			cmd, b, childfd := parent(t)
			for range 2 { // changes nothing else
				_ = cmd.Process.Signal(syscall.SIGHUP)
				if got := b.read(t); got != "hangup 0" {
					t.Fatalf("got %q", got)
				}
			}
			_ = cmd.Process.Signal(sig)
			if got := b.read(t); got != fmt.Sprintf("%v 0", sig) {
				t.Fatalf("got %q", got)
			}
			awaitExit(t, childfd)
			if err := cmd.Wait(); err != nil {
				t.Errorf("the supervisor ended with %v", err)
			}
		})
	}
}
