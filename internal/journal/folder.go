package journal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Identity names the process life that a journal belongs to. Epoch is 128 random
// bits, never reused: a number from a clock or a counter may meet an old cursor.
type Identity struct {
	PodUID string
	Index  uint32
	Epoch  [16]byte
}

// Folder is the identity's folder name under the journal root:
// "<podUID>-<index>-<epochhex>".
func (id Identity) Folder() string {
	return fmt.Sprintf("%s-%d-%s", id.PodUID, id.Index, hex.EncodeToString(id.Epoch[:]))
}

// ParseFolder reads an identity back from a folder name. A pod UID may contain
// dashes, so the name is read from its end.
func ParseFolder(name string) (Identity, error) {
	bad := fmt.Errorf("cannot read journal folder name %q: want <podUID>-<index>-<32 hex digits>", name)
	rest, epochHex, ok := cutLast(name)
	if !ok || len(epochHex) != 32 {
		return Identity{}, bad
	}
	uid, indexText, ok := cutLast(rest)
	if !ok {
		return Identity{}, bad
	}
	index, err := strconv.ParseUint(indexText, 10, 32)
	if err != nil {
		return Identity{}, bad
	}
	id := Identity{PodUID: uid, Index: uint32(index)}
	if _, err := hex.Decode(id.Epoch[:], []byte(epochHex)); err != nil {
		return Identity{}, bad
	}
	if id.validate() != nil || id.Folder() != name {
		return Identity{}, bad
	}
	return id, nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

func (id Identity) validate() error {
	switch {
	case id.PodUID == "" || len(id.PodUID) > maxPodUID:
		return fmt.Errorf("cannot use pod UID %q for a journal: want 1 to %d bytes (POD_UID)", id.PodUID, maxPodUID)
	case strings.ContainsAny(id.PodUID, "/\x00") || id.PodUID[0] == '.':
		// A leading dot marks folders that are not yet, or no longer, a journal.
		return fmt.Errorf("cannot use pod UID %q for a journal: no slash, no NUL, no leading dot (POD_UID)", id.PodUID)
	}
	return nil
}

// A folder is built under newPrefix and torn down under gonePrefix, so that
// under its own name it is always whole: locked from its first moment, and with
// all of its segments until its last.
const (
	newPrefix  = ".new-"
	gonePrefix = ".gone-"
)

// folderLock is a held flock on a journal folder. The descriptor is close-on-exec
// (os.Open sees to it), so that no child process keeps a dead journal locked.
type folderLock struct {
	dir  string
	file *os.File
}

// lockFolder takes the folder's flock without waiting. It fails with ErrLocked
// when somebody else has it and with fs.ErrNotExist when the folder is gone.
func lockFolder(dir string) (*folderLock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("cannot lock %s: %w", dir, ErrLocked)
		}
		return nil, fmt.Errorf("cannot lock %s: %w", dir, err)
	}
	// Between open and flock the folder may have been adopted and removed; the
	// lock would then be on an inode that no path leads to.
	if err := sameInode(f, dir); err != nil {
		f.Close()
		return nil, err
	}
	return &folderLock{dir: dir, file: f}, nil
}

func sameInode(f *os.File, path string) error {
	held, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(held, named) {
		return fmt.Errorf("cannot lock %s: the folder was replaced: %w", path, os.ErrNotExist)
	}
	return nil
}

func (l *folderLock) release() { l.file.Close() }

func (l *folderLock) rename(to string) error {
	if err := os.Rename(l.dir, to); err != nil {
		return err
	}
	l.dir = to
	return nil
}

// remove deletes the folder and then gives the lock up. The rename comes first:
// a process that dies in the middle must not leave half a journal under a name
// that is adopted.
func (l *folderLock) remove() error {
	defer l.release()
	root, name := filepath.Split(l.dir)
	if !strings.HasPrefix(name, ".") {
		if err := l.rename(filepath.Join(root, gonePrefix+name)); err != nil {
			return fmt.Errorf("cannot remove journal folder: %w", err)
		}
	}
	if err := os.RemoveAll(l.dir); err != nil {
		return fmt.Errorf("cannot remove journal folder: %w", err)
	}
	return nil
}

// sweep deletes what processes left behind that died while they built or removed
// a folder. Such folders hold no entry that is still needed, but their segments
// fill the memory that the next journal wants. Failure is not an error: the next
// start tries again.
func sweep(root string) {
	names, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), newPrefix) && !strings.HasPrefix(n.Name(), gonePrefix) {
			continue
		}
		if lock, err := lockFolder(filepath.Join(root, n.Name())); err == nil {
			_ = lock.remove() // the next start tries again
		}
	}
}

// newFolder makes and locks a folder under a name that is not adopted yet.
// Between the two steps another process's sweep may take it for a leftover; then
// the next try has another name.
func newFolder(root string, id Identity) (*folderLock, error) {
	var err error
	for range 10 {
		var dir string
		if dir, err = os.MkdirTemp(root, newPrefix+id.Folder()+"-*"); err != nil {
			break
		}
		var lock *folderLock
		if lock, err = lockFolder(dir); err == nil {
			return lock, nil
		}
	}
	return nil, fmt.Errorf("cannot create journal folder: %w", err)
}
