package bpe

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/penstock-gateway/penstock/internal/tokens/vocab"
)

func mustOpen(t testing.TB, name string) *vocab.Table {
	t.Helper()
	table, err := vocab.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// textbook is byte-pair encoding as it is defined.
func textbook(t *vocab.Table, text []byte) int {
	var ids []uint32
	for _, b := range text {
		ids = append(ids, t.One(b))
	}
	for {
		best, at := vocab.None, 0
		for i := range len(ids) - 1 {
			if id := t.Merge(ids[i], ids[i+1]); id < best {
				best, at = id, i
			}
		}
		if best == vocab.None {
			return len(ids)
		}
		ids = slices.Replace(ids, at, at+2, best)
	}
}

// pieces are texts of few different bytes, where merging goes deep, and of many.
func pieces(r *rand.Rand, size int) []byte {
	alphabets := []string{"a", "ab", "=", "=-", "- ", "ACGT", "etaoinshrdlu", "abcdefghijklmnopqrstuvwxyz", "0123456789abcdef", "\x00\x01", "的一是不了", "!\"#$%&'()*+,-./:;<=>?@", "\xe4\xb8\x80\x81\x82"}
	alphabet := alphabets[r.IntN(len(alphabets))]
	text := make([]byte, size)
	for i := range text {
		text[i] = alphabet[r.IntN(len(alphabet))]
	}
	return text
}

// Each length on its own: 16 and 17 bytes go different ways.
func TestShortPieces(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"o200k_base", "cl100k_base", "p50k_base", "r50k_base"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := mustOpen(t, name)
			e := New(table)
			r := rand.New(rand.NewPCG(1, 1))
			for i := range 60_000 {
				text := pieces(r, 1+i%24)
				if got, want := e.Count(text), textbook(table, text); got != want {
					t.Fatalf("%q: %d tokens, want %d", text, got, want)
				}
			}
		})
	}
}

// Windows small enough that every piece has many: what one kept may turn out not to
// be how the piece goes on.
func TestWindows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"o200k_base", "cl100k_base", "p50k_base", "r50k_base"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := mustOpen(t, name)
			whole := New(table)
			var small []*Encoder
			for _, size := range []int{vocab.MaxToken + 8, vocab.MaxToken + 64, 4 * vocab.MaxToken} {
				small = append(small, NewWindows(table, size))
			}
			r := rand.New(rand.NewPCG(2, 2))
			for range 500 {
				text := pieces(r, 100+r.IntN(1500))
				want := textbook(table, text)
				for _, e := range append(small, whole) {
					if got := e.Count(text); got != want {
						t.Fatalf("windows of %d: %q: %d tokens, want %d", e.size, text, got, want)
					}
				}
			}
		})
	}
}

// A window that cannot keep a token is made larger, also when it is far too small.
func TestTinyWindows(t *testing.T) {
	t.Parallel()
	table := mustOpen(t, "o200k_base")
	e := NewWindows(table, 1)
	text := pieces(rand.New(rand.NewPCG(3, 3)), 2000)
	if got, want := e.Count(text), textbook(table, text); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
}

func FuzzCount(f *testing.F) {
	table := mustOpen(f, "o200k_base")
	e, small := New(table), NewWindows(table, vocab.MaxToken+16)
	r := rand.New(rand.NewPCG(4, 4))
	for i := range 100 {
		f.Add(pieces(r, 1+5*i))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) == 0 || len(text) > 1<<12 {
			return
		}
		want := textbook(table, text)
		if got := e.Count(text); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
		if got := small.Count(text); got != want {
			t.Errorf("small windows: %q: %d tokens, want %d", text, got, want)
		}
	})
}
