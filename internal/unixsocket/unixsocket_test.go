package unixsocket_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/penstock-gateway/penstock/internal/unixsocket"
)

// socket is a path that is short enough for one.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "u") // t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s.sock")
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := unixsocket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func serves(path string) bool {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func TestASecondServerLeavesTheFirstAlone(t *testing.T) {
	t.Parallel()
	path := socket(t)
	listen(t, path)
	if _, err := unixsocket.Listen(path); err == nil || !strings.Contains(err.Error(), "another process serves it") {
		t.Errorf("got %v, want a plain refusal", err)
	}
	if !serves(path) {
		t.Error("the first one's socket is gone")
	}
}

func TestADeadSocketIsReplaced(t *testing.T) {
	t.Parallel()
	path := socket(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close() // as after kill -9: a file that nobody serves
	listen(t, path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 || !serves(path) {
		t.Errorf("%v, %v: want a socket for the pod's group that answers", info, err)
	}
}

func TestCloseTakesOnlyItsOwnSocket(t *testing.T) {
	t.Parallel()
	path := socket(t)
	first := listen(t, path)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a closed server left its socket: %v", err)
	}
	listen(t, path)
	first.Close() // servers close their listeners more than once
	if !serves(path) {
		t.Error("the predecessor's second close took the successor's socket")
	}
}

func TestAFolderThatIsNotThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socket(t), "x.sock")
	if _, err := unixsocket.Listen(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), syscall.ENOENT.Error()) {
		t.Errorf("got %v, want the path and the reason", err)
	}
}
