package vocab

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func names() []string { return []string{"o200k_base", "cl100k_base", "p50k_base", "r50k_base"} }

func mustOpen(t *testing.T, name string) *Table {
	t.Helper()
	table, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// spell puts a token together from the halves that it was merged from.
func (t *Table) spell(id uint32) []byte {
	if id < Bytes {
		b := slices.Index(t.byteIDs, id)
		return []byte{byte(b)}
	}
	return append(t.spell(t.tokens[id].left), t.spell(t.tokens[id].right)...)
}

func (t *Table) has(id uint32) bool { return t.tokens[id].length > 0 }

// textbook merges the bytes of text: the least rank first, the leftmost of equals.
func (t *Table) textbook(text []byte) []uint32 {
	var ids []uint32
	for _, b := range text {
		ids = append(ids, t.One(b))
	}
	for {
		best, at := None, 0
		for i := range len(ids) - 1 {
			if id := t.Merge(ids[i], ids[i+1]); id < best {
				best, at = id, i
			}
		}
		if best == None {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, best)
	}
}

// Every token is found by its bytes in each of the tables that should have it.
func TestEveryTokenIsFound(t *testing.T) {
	t.Parallel()
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := mustOpen(t, name)
			for id := range uint32(len(table.tokens)) {
				if !table.has(id) {
					continue // the gap that a special token leaves
				}
				text := table.spell(id)
				if got := table.Find(text); got != id || table.Len(id) != len(text) {
					t.Fatalf("%q of %d bytes: token %d, want %d of %d bytes", text, len(text), got, id, table.Len(id))
				}
				if got := table.Longest(text); got != id {
					t.Fatalf("%q: the longest token is %d, want %d itself", text, got, id)
				}
				if shorter := table.Shorter(id); id >= Bytes && !strings.HasPrefix(string(text), string(table.spell(shorter))) {
					t.Fatalf("%q does not begin with %q", text, table.spell(shorter))
				}
				low, high := load(text)
				switch n := len(text); {
				case text[n-1] == 0:
				case n <= 8 && table.Miss1(low) != 0, n > 8 && n <= 16 && table.Miss2(low, high) != 0:
					t.Fatalf("%q is missed", text)
				}
				if id >= Bytes && table.Merge(table.tokens[id].left, table.tokens[id].right) != id {
					t.Fatalf("the halves of %q do not merge", text)
				}
			}
		})
	}
}

// What is no token is not found, near misses above all.
func TestNothingElseIsFound(t *testing.T) {
	t.Parallel()
	table := mustOpen(t, "o200k_base")
	known := map[string]uint32{}
	for id := range uint32(len(table.tokens)) {
		known[string(table.spell(id))] = id
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300_000 {
		text := table.spell(r.Uint32N(uint32(len(table.tokens))))
		switch r.IntN(4) {
		case 0:
			text = append(text, 0) // padding must not hide it
		case 1:
			text[r.IntN(len(text))] ^= 1 << r.IntN(8)
		case 2:
			text = append(text, text[0])
		case 3:
			text = append(text, table.spell(r.Uint32N(100_000))...)
		}
		want, ok := known[string(text)]
		if !ok {
			want = None
		}
		if got := table.Find(text); got != want {
			t.Fatalf("%q: token %d, want %d", text, got, want)
		}
		longest := None
		for n := 1; n <= len(text); n++ {
			if id, ok := known[string(text[:n])]; ok {
				longest = id
			}
		}
		if got := table.Longest(text); got != longest {
			t.Fatalf("%q begins with token %d at most, want %d", text, got, longest)
		}
	}
	if table.Find(nil) != None || table.Find(make([]byte, MaxToken+1)) != None {
		t.Error("a text that is too short or too long is a token")
	}
	for _, id := range []uint32{0, 1000, Outside} {
		if table.Merge(Outside, id) != None || table.Merge(id, Outside) != None {
			t.Errorf("%d merges with what is outside", id)
		}
	}
}

// Two tokens are compatible when merging their bytes gives the two again.
func TestCompatibleIsWhatMergingLeaves(t *testing.T) {
	t.Parallel()
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := mustOpen(t, name)
			r := rand.New(rand.NewPCG(3, 4))
			token := func() uint32 {
				for {
					// Half of them old ones, which merge with more.
					id := r.Uint32N(uint32(len(table.tokens)) >> (6 * r.IntN(2)))
					if table.has(id) && table.Len(id) < 40 {
						return id
					}
				}
			}
			yes := 0
			for range 100_000 {
				left, right := token(), token()
				if r.IntN(8) == 0 {
					right = left // ties
				}
				want := slices.Equal(table.textbook(append(table.spell(left), table.spell(right)...)), []uint32{left, right})
				if got := table.Compatible(left, right); got != want {
					t.Fatalf("%q and %q: compatible %v, want %v", table.spell(left), table.spell(right), got, want)
				}
				if want {
					yes++
				}
			}
			if yes < 1000 || yes > 99_000 {
				t.Errorf("%d of 100,000 pairs are compatible: the test does not test", yes)
			}
		})
	}
}

// On a machine of another byte order a section is copied.
func TestDecodeReadsWhatIsViewed(t *testing.T) {
	t.Parallel()
	table := mustOpen(t, "r50k_base")
	section := r50kBase[Align(headerSize):]
	words := decode[uint64](section[:8*100], 8)
	for i, w := range words {
		if want := word(section, 8*i); w != want {
			t.Fatalf("word %d is %x, want %x", i, w, want)
		}
	}
	if len(table.pairs) == 0 || len(table.tokens) != 50_256 {
		t.Errorf("%d pairs, %d tokens", len(table.pairs), len(table.tokens))
	}
}

func TestOpenTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, data, want string }{
		{"a file that is none", "nonsense", "does not begin with"},
		{"a file of another version", strings.Replace(r50kBase[:4096], " 1", " 0", 1), "does not begin with"},
		{"a file that was cut", r50kBase[:4096], "ends beyond"},
		{"nothing", "", "does not begin with"},
	} {
		if _, err := open(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.why, err, c.want)
		}
	}
	if _, err := Open("gpt2"); err == nil || !strings.Contains(err.Error(), `"gpt2"`) {
		t.Errorf("an unknown name: %v", err)
	}
}
