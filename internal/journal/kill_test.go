package journal

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// childRoot makes the test binary a writer under load; its value is the root.
const childRoot = "JOURNAL_TEST_CHILD_ROOT"

// runChild opens, attempts and closes as fast as it can from several goroutines
// and reports each append once it has returned. It ends by being killed.
func runChild(root string) {
	id := Identity{PodUID: "child"}
	_, err := hex.Decode(id.Epoch[:], []byte(os.Getenv("JOURNAL_TEST_EPOCH")))
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	j, err := Create(Config{Root: root, Identity: id, SegmentBytes: 64 << 10, MaxSegments: 4})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	time.AfterFunc(time.Minute, func() { os.Exit(2) }) // should the parent be gone
	var out sync.Mutex
	report := func(format string, args ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Fprintf(os.Stdout, format+"\n", args...) // unbuffered: what is read was returned
	}
	report("ready")
	told := &tally{more: make(chan struct{}, 1), seqs: map[uint64]bool{}}
	for w := range 4 {
		go childRequests(j, w, report, told)
	}
	for range told.more { // acks lag behind by a few records, so that segments are reused
		if upTo := told.upTo(); upTo > 20 {
			report("acking %d", upTo-20)
			j.Ack(upTo - 20)
		}
	}
}

// tally knows which closes have been reported. Only those are acked: the parent could
// not tell one that is acked and forgotten, and not reported, from one that is lost.
type tally struct {
	more chan struct{}

	mu   sync.Mutex
	seqs map[uint64]bool // reported, beyond last
	last uint64          // all up to here are reported
}

func (t *tally) add(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.seqs[seq] = true; t.seqs[t.last+1]; t.last++ {
		delete(t.seqs, t.last+1)
	}
	select {
	case t.more <- struct{}{}:
	default:
	}
}

func (t *tally) upTo() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

func childRequests(j *Journal, worker int, report func(string, ...any), told *tally) {
	filler := strings.Repeat("f", 700)
	var long Entry // stays open while segments are reused under it
	for n := 0; ; n++ {
		name := fmt.Sprintf("w%d-%d", worker, n)
		e, err := j.Open([]byte(name + " open " + filler))
		if err != nil {
			continue // full: the sender has not acked yet
		}
		report("opened %s", name)
		if n == 0 {
			long = e
			continue
		}
		if n%7 == 0 && j.Attempt(e, []byte(name+" again "+filler)) == nil {
			report("attempted %s", name)
		}
		seq, err := j.Close(e, []byte(name+" closed "+filler))
		if err != nil {
			report("error %v", err)
		}
		report("closed %s %d", name, seq)
		told.add(seq)
		if n == 1 {
			_ = j.Attempt(long, []byte(fmt.Sprintf("w%d-0 again ", worker))) // full: the open stands as it was
		}
	}
}

// reports is what the child had said when it was killed.
type reports struct {
	opened, attempted map[string]bool
	closed            map[string]uint64
	acked             uint64
}

// TestKill kills a writer with -9 after growing amounts of work: every append
// that returned is found, under its number, and nothing is found twice.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{1, 50, 400, 3000, 12000, 30000} {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			id := newIdentity()
			id.PodUID, id.Index = "child", 0
			said := killChild(t, root, id, lines)
			a := adopt(t, filepath.Join(root, id.Folder()))
			if a.Identity != id {
				t.Errorf("adopted %v, want %v", a.Identity, id)
			}
			checkAdoption(t, a, said)
		})
	}
}

// killChild runs a writer until it has reported so many lines.
func killChild(t *testing.T, root string, id Identity, lines int) reports {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childRoot+"="+root, "JOURNAL_TEST_EPOCH="+hex.EncodeToString(id.Epoch[:]))
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := reports{opened: map[string]bool{}, attempted: map[string]bool{}, closed: map[string]uint64{}}
	in := bufio.NewScanner(pipe)
	for n := 0; in.Scan(); n++ {
		if n == 0 {
			if dead, err := Dead(root); err != nil || len(dead) != 0 {
				t.Errorf("a living writer's folder is called dead: %v %v", dead, err)
			}
		}
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		said.add(t, in.Text())
	}
	if _, err := io.Copy(io.Discard, pipe); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed, which is an error to Wait
	return said
}

func (r *reports) add(t *testing.T, line string) {
	word := strings.Fields(line)
	switch word[0] {
	case "opened":
		r.opened[word[1]] = true
	case "attempted":
		r.attempted[word[1]] = true
	case "closed":
		r.closed[word[1]] = number(t, word[2])
	case "acking":
		r.acked = number(t, word[1])
	case "error":
		t.Error(line)
	}
}

func number(t *testing.T, word string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func checkAdoption(t *testing.T, a *Adoption, said reports) {
	t.Helper()
	found := make(map[string]bool) // requests with an entry, open or closed
	bySeq := make(map[uint64]string)
	for i, c := range a.Closed {
		if c.Damaged || c.Seq != a.Closed[0].Seq+uint64(i) {
			t.Fatalf("number %d is damaged or out of order", c.Seq)
		}
		name := strings.Fields(string(c.Payload))[0]
		if found[name] {
			t.Errorf("%s is there twice", name)
		}
		found[name], bySeq[c.Seq] = true, name
	}
	for _, o := range a.Open {
		word := strings.Fields(string(o.Payload))
		if found[word[0]] {
			t.Errorf("%s is both open and closed, or open twice", word[0])
		}
		found[word[0]] = true
		if said.attempted[word[0]] && word[1] != "again" {
			t.Errorf("%s has not the payload of its attempt", word[0])
		}
	}
	for name, seq := range said.closed {
		if seq > said.acked && bySeq[seq] != name {
			t.Errorf("record %d of %s is lost", seq, name)
		}
	}
	for name := range said.opened {
		if _, closed := said.closed[name]; !closed && !found[name] {
			t.Errorf("%s was opened and is lost", name)
		}
	}
	if a.NextSeq <= said.acked || (len(a.Closed) > 0 && a.NextSeq != a.Closed[len(a.Closed)-1].Seq+1) {
		t.Errorf("next number %d does not follow the last", a.NextSeq)
	}
}
