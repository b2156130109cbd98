package tokens

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/penstock-gateway/penstock/internal/tokens/bpe"
	"github.com/penstock-gateway/penstock/internal/tokens/tokenstest"
	"github.com/penstock-gateway/penstock/internal/tokens/vocab"
	"github.com/penstock-gateway/penstock/test/corpus"
)

// bundle is one encoding: the slow reference, and every way to count that the
// fast counter has.
type bundle struct {
	encoding  Encoding
	reference *tokenstest.Reference
	corpus    *corpus.Corpus
	counter   *Counter
	pattern   *scan // piece by piece, by the pattern alone
	windows   *scan // long pieces in the smallest windows
}

func newBundle(t testing.TB, e Encoding) *bundle {
	t.Helper()
	r, err := tokenstest.New(e.String())
	if err != nil {
		t.Fatal(err)
	}
	table, err := vocab.Open(e.String())
	if err != nil {
		t.Fatal(err)
	}
	c := newCounter(t)
	fresh := func() *scan {
		s := c.encodings[e].fresh()
		s.memory = new(memory)
		s.memory.renew()
		return s
	}
	b := &bundle{encoding: e, reference: r, corpus: corpus.New(r.Vocabulary()), counter: c, pattern: fresh(), windows: fresh()}
	b.pattern.rules = nil
	b.windows.merge = bpe.NewWindows(table, 2*vocab.MaxToken)
	return b
}

// check counts a text each way; the first time its words are not learned, the
// second time they are.
func (b *bundle) check(t testing.TB, text []byte) {
	t.Helper()
	want := b.reference.Count(text)
	clean := bytes.ToValidUTF8(text, nil)
	valid := len(clean) == len(text)
	ways := []struct {
		name  string
		count func() int
	}{
		{"not learned", func() int { return b.counter.Count(b.encoding, text) }},
		{"learned", func() int { return b.counter.Count(b.encoding, text) }},
	}
	if valid {
		ways = append(ways, []struct {
			name  string
			count func() int
		}{
			{"pattern", func() int { return b.pattern.count(text) }},
			{"windows", func() int { return b.windows.count(text) }},
		}...)
	}
	for _, way := range ways {
		if got := way.count(); got != want {
			t.Errorf("%s, %s: %d tokens, want %d, pieces %q, in %q", b.encoding, way.name, got, want, b.reference.Pieces(text), text)
		}
	}
}

func bundles(t testing.TB) []*bundle {
	var all []*bundle
	for e := range Encoding(encodings) {
		all = append(all, newBundle(t, e))
	}
	return all
}

// Every kind of text that the corpus has, each way, beside the reference.
func TestEveryWayCountsAlike(t *testing.T) {
	t.Parallel()
	for e := range Encoding(encodings) {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, e)
			for seed := range uint64(200 * b.corpus.Kinds()) {
				b.check(t, b.corpus.Text(seed))
				if t.Failed() {
					t.Fatalf("seed %d, %s", seed, b.corpus.Kind(seed))
				}
			}
		})
	}
}

// The fast way reads eight bytes at a time and stops some bytes before the end:
// the same text is put at every distance from both borders.
func TestEveryLengthAndOffset(t *testing.T) {
	t.Parallel()
	texts := []string{
		"I'll say it's CamelCase HTTPServer, don't you? \n\n  (\"quoted\")\t12345 §9 naïve ",
		"if err != nil {\n\t\treturn fmt.Errorf(\"%w\", err)\r\n}\n//\n// x\n/\n",
		"internationalisation Donaudampfschifffahrtsgesellschaft 'store 'S 'tis ",
	}
	for e := range Encoding(encodings) {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, e)
			for _, text := range texts {
				for from := range len(text) {
					for to := from; to <= len(text); to++ {
						b.check(t, bytes.ToValidUTF8([]byte(text[from:to]), nil))
					}
				}
			}
		})
	}
}

// A character beyond ASCII, NUL or white space beside each kind of piece.
func TestUnusualNeighbours(t *testing.T) {
	t.Parallel()
	odd := []string{"\x00", "\x7f", "\u0085", "\u00a0", "\u2028", "\u3000", "\ufeff", "\u200b", "\u0301", "²", "é", "É", "ǅ", "ʰ", "中", "ſ", "👍", "'", "/", "\r", "\v", "\x1c"}
	plain := []string{"", "a", "A", "word", "Word", "WORD", "longerwords", "averyveryverylongword", "1", "12", "123", "1234", " ", "  ", "\n", " \n", "\t", ".", "..", "(\"", " (", "'s", "'ll", "'LL"}
	for e := range Encoding(encodings) {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, e)
			pad := []byte(" and then some more text so that this is not the end of it")
			for _, before := range plain {
				for _, o := range odd {
					for _, after := range plain {
						text := []byte(before + o + after)
						b.check(t, text)
						b.check(t, append(text, pad...))
					}
				}
			}
		})
	}
}

// What the original found and no other test: NUL is punctuation, so the blank
// before it is not white space.
func TestBlankBeforeNUL(t *testing.T) {
	t.Parallel()
	for e := range Encoding(encodings) {
		b := newBundle(t, e)
		for _, text := range []string{" \x00\u0301s", " \x00\u09c7\u09a8", "a \x00\u0301s and more so that this is not the end of it", "\t\x00\u0301s", "\n \x00\u0301s"} {
			b.check(t, []byte(text))
		}
	}
}

// Long pieces of few characters are where merging is hard.
func TestLongPieces(t *testing.T) {
	t.Parallel()
	alphabets := []string{"a", "ab", "=", "=-", " ", "ACGT", "abcdefghijklmnopqrstuvwxyz", "0123456789abcdef", "的一是不", "\x00", "é", "!\"#$%&()*+,-./:;<=>?@[]^_`{|}~"}
	for e := range Encoding(encodings) {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, e)
			r := rand.New(rand.NewPCG(1, 2))
			for _, alphabet := range alphabets {
				runes := []rune(alphabet)
				for _, size := range []int{17, 31, 32, 63, 65, 255, 256, 257, 300, 512, 1000, 3000} {
					var text []byte
					for len(text) < size {
						text = append(text, string(runes[r.IntN(len(runes))])...)
					}
					b.check(t, text)
				}
			}
		})
	}
}

func FuzzCount(f *testing.F) {
	b := sync.OnceValue(func() []*bundle { return bundles(f) })
	for seed := range uint64(300) {
		f.Add(b()[0].corpus.Text(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<12 {
			return // the reference is slow
		}
		for _, b := range b() {
			b.check(t, text)
		}
	})
}

// Digits are counted without a look-up: all runs of up to three must be tokens.
func TestUpToThreeDigitsAreAToken(t *testing.T) {
	t.Parallel()
	for _, e := range []Encoding{O200kBase, CL100kBase} {
		table, err := vocab.Open(e.String())
		if err != nil {
			t.Fatal(err)
		}
		for n := range 1000 {
			for width := 1; width <= 3; width++ {
				text := []byte("000" + strconv.Itoa(n))
				if text = text[len(text)-width:]; table.Find(text) == vocab.None {
					t.Errorf("%s: %q is no token", e, text)
				}
			}
		}
	}
}
