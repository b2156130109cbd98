package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFolderNames(t *testing.T) {
	t.Parallel()
	id := newIdentity()
	got, err := ParseFolder(id.Folder())
	if err != nil || got != id {
		t.Errorf("a name is read back as %v, %v; want %v", got, err, id)
	}
	for _, bad := range []string{
		"", "x", "pod-1", "-1-" + id.Folder()[len(id.Folder())-32:], ".new-" + id.Folder(),
		"pod-01-00112233445566778899aabbccddeeff",
		"pod-1-00112233445566778899AABBCCDDEEFF", "pod-4294967296-00112233445566778899aabbccddeeff",
	} {
		if id, err := ParseFolder(bad); err == nil {
			t.Errorf("%q is read as %v", bad, id)
		}
	}
}

func TestFolderIsHeldByOne(t *testing.T) {
	t.Parallel()
	j := create(t, Config{})
	mustClose(t, j, mustOpen(t, j, "a"), "a")
	dir := j.lock.dir
	if _, err := Adopt(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("adopting a living process's journal: %v, want ErrLocked", err)
	}
	if err := j.Stop(); err != nil {
		t.Fatal(err)
	}
	a := adopt(t, dir)
	if _, err := Adopt(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a second adopter: %v, want ErrLocked", err)
	}
	if dead, err := Dead(j.cfg.Root); err != nil || len(dead) != 0 {
		t.Errorf("a folder that is being adopted is called dead: %v %v", dead, err)
	}
	a.Release()
	again := adopt(t, dir)
	if diff := cmp.Diff(closedText(a.Closed), closedText(again.Closed)); diff != "" {
		t.Errorf("the next adopter finds something else: %s", diff)
	}
	if err := again.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := Adopt(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("adopting a removed folder: %v, want ErrNotExist", err)
	}
	if left, _ := os.ReadDir(j.cfg.Root); len(left) != 0 {
		t.Errorf("remove leaves %v", left)
	}
}

// TestLockOfAReplacedFolder is the race between opening a folder and locking it.
func TestLockOfAReplacedFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := sameInode(f, dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is gone: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := sameInode(f, dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another folder has the name: %v", err)
	}
}

func TestDeadOfNoRoot(t *testing.T) {
	t.Parallel()
	dead, err := Dead(filepath.Join(t.TempDir(), "none"))
	if err != nil || dead != nil {
		t.Errorf("got %v, %v", dead, err)
	}
}

// written is a folder with three closed and two open requests in one segment.
func written(t *testing.T) string {
	t.Helper()
	j := create(t, Config{})
	a, b, c := mustOpen(t, j, "open a"), mustOpen(t, j, "open b"), mustOpen(t, j, "open c")
	mustClose(t, j, a, "close a")
	mustClose(t, j, b, "close b")
	d := mustOpen(t, j, "open d")
	mustOpen(t, j, "open e")
	if err := j.Attempt(d, []byte("open d again")); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j, c, "close c")
	return copyFolder(t, j)
}

func TestDamage(t *testing.T) {
	t.Parallel()
	all := []string{"1:close a", "2:close b", "3:close c"}
	open := []string{"open d again", "open e"}
	for _, c := range []struct {
		why     string
		damage  func([]byte) []byte
		closed  []string
		open    []string
		damaged int
	}{
		{"nothing", func(b []byte) []byte { return b }, all, open, 0},
		{"first header", func(b []byte) []byte { clear(b[:headerBytes]); return b }, all, open, 0},
		{"second header", func(b []byte) []byte { clear(b[len(b)-headerBytes:]); return b }, all, open, 0},
		{
			"both headers: the entries can still be checked",
			func(b []byte) []byte { b[9]++; b[len(b)-9]++; return b }, all, open, 1,
		},
		{
			"half of the segment is missing: there may have been a fourth",
			func(b []byte) []byte { return b[:len(b)/2] }, append(all[:3:3], "4:damaged"), open, 1,
		},
		{"a closed record: its number stays taken, its open is interrupted", flip("close b"),
			[]string{"1:close a", "2:damaged", "3:close c"}, []string{"open b", "open d again", "open e"}, 1},
		{"the last record: its number is not given again", flip("close c"),
			[]string{"1:close a", "2:close b", "3:damaged"}, []string{"open c", "open d again", "open e"}, 1},
		{"an open that is closed", flip("open a"), all, open, 1},
		{"an attempt: the open before it counts", flip("open d again"), all, []string{"open d", "open e"}, 1},
		{"an open: the others stay", flip("open e"), all, []string{"open d again"}, 1},
		{"a commit word", func(b []byte) []byte { b[headerBytes]++; return b }, all, open, 1},
		{"everything but the headers", func(b []byte) []byte { clear(b[headerBytes:entriesEnd(b)]); return b }, nil, nil, 0},
		{"everything", func(b []byte) []byte { clear(b); b[0] = 1; return b }, nil, nil, 1},
		{"an empty file", func([]byte) []byte { return nil }, nil, nil, 1},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			dir := written(t)
			change(t, dir, c.damage)
			a := adopt(t, dir)
			if diff := cmp.Diff(c.closed, closedText(a.Closed)); diff != "" {
				t.Error("closed:", diff)
			}
			if diff := cmp.Diff(c.open, openText(a.Open)); diff != "" {
				t.Error("open:", diff)
			}
			if a.Damaged != c.damaged || a.NextSeq != uint64(len(c.closed)+1) {
				t.Errorf("%d damaged, next %d; want %d, %d", a.Damaged, a.NextSeq, c.damaged, len(c.closed)+1)
			}
		})
	}
}

// change rewrites the first segment.
func change(t *testing.T, dir string, damage func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, segmentPrefix+"0000")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, damage(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// flip damages the last byte of the last entry with a payload.
func flip(payload string) func([]byte) []byte {
	return func(b []byte) []byte {
		for i := len(b) - len(payload) - 1; i > 0; i-- {
			// The byte behind tells "open d" from "open d again".
			if string(b[i:i+len(payload)]) == payload && b[i+len(payload)] == 0 {
				b[i+len(payload)-1]++
				return b
			}
		}
		panic("no entry " + payload)
	}
}

func TestANewerFormatIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := written(t)
	change(t, dir, func(b []byte) []byte {
		binary.NativeEndian.PutUint32(b[8:], formatVersion+1)
		binary.NativeEndian.PutUint32(b[headerBytes-4:], crc32.Checksum(b[:headerBytes-4], castagnoli))
		return b
	})
	if _, err := Adopt(dir); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("got %v, want ErrNewerFormat", err)
	}
	if dead, err := Dead(filepath.Dir(dir)); err != nil || len(dead) != 1 {
		t.Errorf("the folder is still there and unlocked: %v %v", dead, err)
	}
}

func TestASegmentOfAnotherLifeIsNotRead(t *testing.T) {
	t.Parallel()
	dir, other := written(t), written(t)
	b, err := os.ReadFile(filepath.Join(other, segmentPrefix+"0000"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, segmentPrefix+"0001"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if a := adopt(t, dir); len(a.Closed) != 3 || a.Damaged != 1 {
		t.Errorf("%d closed, %d damaged; want 3, 1", len(a.Closed), a.Damaged)
	}
}

// TestALostSegmentLeavesItsNumbersTaken removes a segment from the middle.
func TestALostSegmentLeavesItsNumbersTaken(t *testing.T) {
	t.Parallel()
	j := create(t, Config{MaxSegments: 4})
	for i := 0; j.Stats().Segments < 3; i++ {
		mustClose(t, j, mustOpen(t, j, "open"), fmt.Sprintf("%0500d", i))
	}
	last := mustClose(t, j, mustOpen(t, j, "open"), "last")
	dir := copyFolder(t, j)
	if err := os.Remove(filepath.Join(dir, segmentPrefix+"0001")); err != nil {
		t.Fatal(err)
	}
	a := adopt(t, dir)
	lost := 0
	for i, c := range a.Closed {
		if c.Seq != uint64(i+1) {
			t.Fatalf("number %d at place %d", c.Seq, i)
		}
		if c.Damaged {
			lost++
		}
	}
	if a.NextSeq != last+1 || lost == 0 || lost == len(a.Closed) || a.Damaged != 1 {
		t.Errorf("next %d, %d of %d lost, %d damaged; want next %d, some lost, 1 damaged",
			a.NextSeq, lost, len(a.Closed), a.Damaged, last+1)
	}
}

// TestALostOldestSegmentIsCounted: nothing in the other segments tells which numbers
// it had, so Closed begins behind them and the adopter has to look at its cursor.
func TestALostOldestSegmentIsCounted(t *testing.T) {
	t.Parallel()
	j := create(t, Config{MaxSegments: 4})
	var last uint64
	for i := 0; j.Stats().Segments < 3; i++ {
		last = mustClose(t, j, mustOpen(t, j, "open"), fmt.Sprintf("%0500d", i))
	}
	dir := copyFolder(t, j)
	if err := os.Remove(filepath.Join(dir, segmentPrefix+"0000")); err != nil {
		t.Fatal(err)
	}
	a := adopt(t, dir)
	if len(a.Closed) == 0 || a.Closed[0].Seq < 2 || a.Closed[0].Damaged || a.NextSeq != last+1 || a.Damaged != 1 {
		t.Errorf("from %+v, next %d, %d damaged; want from a later number on, next %d, 1 damaged", a.Closed[:min(1, len(a.Closed))], a.NextSeq, a.Damaged, last+1)
	}
}
