package journal

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		runChild(root)
		return
	}
	goleak.VerifyTestMain(m)
}

func newIdentity() Identity {
	id := Identity{PodUID: "6f1c-pod", Index: 3}
	rand.Read(id.Epoch[:])
	return id
}

// create makes a journal of the smallest size unless cfg says otherwise.
func create(t testing.TB, cfg Config) *Journal {
	t.Helper()
	if cfg.Root == "" {
		cfg.Root = t.TempDir()
	}
	if cfg.Identity.PodUID == "" {
		cfg.Identity = newIdentity()
	}
	if cfg.SegmentBytes == 0 {
		cfg.SegmentBytes = minSegment
	}
	if cfg.MaxSegments == 0 {
		cfg.MaxSegments = 3
	}
	j, err := Create(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Stop() }) // many tests stop it themselves and look
	return j
}

// crash adopts a copy of the journal's folder as it is now, which is what an
// adopter would find if the process were killed at this moment.
func crash(t testing.TB, j *Journal) *Adoption {
	t.Helper()
	return adopt(t, copyFolder(t, j))
}

func copyFolder(t testing.TB, j *Journal) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), filepath.Base(j.lock.dir))
	if err := os.CopyFS(dir, os.DirFS(j.lock.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func adopt(t testing.TB, dir string) *Adoption {
	t.Helper()
	a, err := Adopt(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Release)
	return a
}

func mustOpen(t testing.TB, j *Journal, payload string) Entry {
	t.Helper()
	e, err := j.Open([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustClose(t testing.TB, j *Journal, e Entry, payload string) uint64 {
	t.Helper()
	seq, err := j.Close(e, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// closedText and openText make adoptions comparable at a glance.
func closedText(list []Closed) (out []string) {
	for _, c := range list {
		text := string(c.Payload)
		if c.Damaged {
			text = "damaged"
		}
		out = append(out, fmt.Sprintf("%d:%s", c.Seq, text))
	}
	return out
}

func openText(list []OpenEntry) (out []string) {
	for _, o := range list {
		out = append(out, string(o.Payload))
	}
	return out
}
