package tokens

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Run under -race: readers take no lock.
func TestLearnedIsSharedSafely(t *testing.T) {
	t.Parallel()
	l := newLearned()
	// Few buckets, so that all meet in them: words that differ in what is not hashed
	// alike still fill up neighbours.
	word := func(i int) (low, high uint64) { return uint64(i%500) + 1, uint64(i % 7) }
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := g; i < 50_000; i++ {
				low, high := word(i)
				want := int(low%200 + 1)
				if got := l.findShort(low, high); got != 0 && got != want {
					t.Errorf("word %d,%d has the count %d, want %d", low, high, got, want)
					return
				}
				l.learnShort(low, high, want)
				k := longKey{low, low, low, high}
				if got := l.findLong(&k); got != 0 && got != want {
					t.Errorf("long word %d,%d has the count %d, want %d", low, high, got, want)
					return
				}
				l.learnLong(&k, want)
			}
		})
	}
	wg.Wait()
}

func TestLearnedKeepsWhatItWasTold(t *testing.T) {
	t.Parallel()
	l := newLearned()
	for i := range uint64(100_000) {
		l.learnShort(i+1, i, int(i%255)+1)
	}
	known := 0
	for i := range uint64(100_000) {
		switch got := l.findShort(i+1, i); got {
		case 0:
		case int(i%255) + 1:
			known++
		default:
			t.Fatalf("word %d has the count %d, want %d", i, got, i%255+1)
		}
	}
	if known < 99_000 {
		t.Errorf("%d of 100,000 words are known: there is room for 262,144", known)
	}
	l.learnShort(1<<60, 1, maxCount+1)
	if l.findShort(1<<60, 1) != 0 {
		t.Error("a count was kept that does not fit")
	}
}

// A flood of junk fills the table; it is emptied, but not more than once a minute.
func TestFullMemoryIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m memory
		m.renew()
		first := m.table()
		first.full.Store(tooFull)
		second := m.table()
		if second == first {
			t.Fatal("a table that is full was kept")
		}
		second.full.Store(tooFull)
		if m.table() != second {
			t.Error("two tables were given up within a minute")
		}
		time.Sleep(renewSeconds * time.Second)
		if m.table() == second {
			t.Error("a table that is full was kept beyond a minute")
		}
	})
}

// Junk that fills the table must not change a count.
func TestCountsHoldWhileTheTableOverflows(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	enc := &c.encodings[O200kBase]
	text := []byte("zyxwv unwordlike qqqqq")
	want := c.Count(O200kBase, text)
	var junk strings.Builder
	for i := range 400_000 {
		fmt.Fprintf(&junk, " q%cz%cx%cj", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
		if i%1000 == 0 {
			c.Count(O200kBase, []byte(junk.String()))
			junk.Reset()
		}
	}
	enc.memory.table().full.Store(tooFull)
	if got := c.Count(O200kBase, text); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
}

func TestWarmKeepsCounts(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	text := []byte("Donaudampfschifffahrt unwordlike")
	want := c.Count(CL100kBase, text)
	c.Warm(CL100kBase)
	if got := c.Count(CL100kBase, text); got != want {
		t.Errorf("%d tokens after Warm, want %d", got, want)
	}
}

func TestCountAllocatesNothing(t *testing.T) {
	c := newCounter(t)
	texts := map[string]string{
		"prose": strings.Repeat("The gateway counts tokens before it forwards a request, unwordlikely as that is. ", 500),
		"long":  strings.Repeat("=", 20_000),
		"other": strings.Repeat("Die Straßenbahn fährt 程序设计语言 по улице. ", 300),
	}
	for name, s := range texts {
		text := []byte(s)
		c.Count(O200kBase, text)
		if allocs := testing.AllocsPerRun(20, func() { c.Count(O200kBase, text) }); allocs != 0 {
			t.Errorf("%s: %v allocations for a count, want none", name, allocs)
		}
	}
}
