package corpus

import (
	"bytes"
	"regexp"
	"slices"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Tokens as vocabularies have them: words, and pieces of characters.
var vocabulary = []string{"", " the", "ing", "\n\n", "!", "\xe4\xb8", "\xad", "\xf0\x9f\x98", "\x80\x99", "\xd0", "\xb8\xd1", " \xe2", "\xff"}

const texts = 60_000

func TestTextsAreValidUTF8(t *testing.T) {
	t.Parallel()
	c := New(vocabulary)
	for seed := range uint64(texts) {
		if text := c.Text(seed); !utf8.Valid(text) {
			t.Fatalf("seed %d, kind %s: %q is not valid", seed, c.Kind(seed), text)
		}
	}
}

// A failure is repeated by its seed.
func TestSameSeedSameText(t *testing.T) {
	t.Parallel()
	a, b := New(vocabulary), New(vocabulary)
	for seed := range uint64(1000) {
		if !bytes.Equal(a.Text(seed), b.Text(seed)) {
			t.Errorf("seed %d, kind %s: two texts", seed, a.Kind(seed))
		}
	}
}

func TestNeighboursDiffer(t *testing.T) {
	t.Parallel()
	c := New(vocabulary)
	seen, same := make(map[string]bool), 0
	for seed := range uint64(texts) {
		text := string(c.Text(seed))
		if len(text) > 16 && seen[text] {
			same++
		}
		seen[text] = true
	}
	// Runs of one character and the like are alike sometimes.
	if same > texts/50 {
		t.Errorf("%d of %d texts were there before", same, texts)
	}
}

func TestLengths(t *testing.T) {
	t.Parallel()
	c := New(vocabulary)
	near, long, total := make(map[int]int), 0, 0
	for seed := range uint64(texts) {
		n := len(c.Text(seed))
		near[n]++
		total += n
		if n > 1000 {
			long++
		}
	}
	for _, width := range []int{0, 8, 16, 32, 40, 64} {
		for n := max(0, width-2); n <= width+2; n++ {
			if near[n] < texts/1000 {
				t.Errorf("only %d texts of %d bytes", near[n], n)
			}
		}
	}
	if long < texts/500 {
		t.Errorf("only %d texts over 1,000 bytes", long)
	}
	if mean := total / texts; mean < 60 || mean > 140 {
		t.Errorf("texts of %d bytes on average", mean)
	}
}

func TestEachKindHasATextOfItsOwn(t *testing.T) {
	t.Parallel()
	c := New(vocabulary)
	var names []string
	for seed := range uint64(c.Kinds()) {
		names = append(names, c.Kind(seed))
	}
	slices.Sort(names)
	if got := len(slices.Compact(names)); got != c.Kinds() {
		t.Errorf("%d names for %d kinds", got, c.Kinds())
	}
	if without := New(nil); without.Kinds() >= c.Kinds() {
		t.Errorf("%d kinds without a vocabulary, %d with one", without.Kinds(), c.Kinds())
	}
}

// Each of these was once wrong in a tokenizer.
func TestWhatMustOccur(t *testing.T) {
	t.Parallel()
	wanted := map[string]*regexp.Regexp{
		"a contraction with the long s after a letter":     regexp.MustCompile(`\pL'ſ`),
		"a contraction in capitals":                        regexp.MustCompile(`\pL'(RE|VE|LL|S|T|M|D)`),
		"a contraction after a letter that is not ASCII":   regexp.MustCompile(`[^\x00-\x7f]'(s|t|re|ve|m|ll|d)`),
		"ASCII digits before another number":               regexp.MustCompile(`12?\d[^\x00-\x7f\D]|\d\d[²³¹½]`),
		"a piece that ends in NUL":                         regexp.MustCompile(`[a-z]\x00|-\x00`),
		"white space with a newline inside":                regexp.MustCompile(`\n[ \t]+\n`),
		"a newline after U+0085":                           regexp.MustCompile("\u0085\r?\n"),
		"what only looks like a space":                     regexp.MustCompile("[\ufeff\u200b\u180e]"),
		"punctuation, newlines and slashes in a row":       regexp.MustCompile(`[?!;]\n/`),
		"a mark before a capital":                          regexp.MustCompile(`\pM\p{Lu}`),
		"a letter of title case inside a word":             regexp.MustCompile(`\pL\p{Lt}\pL`),
		"capitals, a letter without case, capitals":        regexp.MustCompile(`\p{Lu}[\p{Lo}\p{Lm}]\p{Lu}`),
		"a family of emoji":                                regexp.MustCompile("👨\u200d👩"),
		"a keycap":                                         regexp.MustCompile("1\ufe0f\u20e3"),
		"a flag":                                           regexp.MustCompile("🇩🇪"),
		"a special token":                                  regexp.MustCompile(regexp.QuoteMeta("<|endoftext|>")),
		"a long word that is in no vocabulary":             regexp.MustCompile(`[a-z]{200}`),
		"many characters of one sort":                      regexp.MustCompile(`={60}`),
		"a character of two broken tokens":                 regexp.MustCompile(`[丠-丿]`),
		"a character above the first plane, next to ASCII": regexp.MustCompile(`[a-z][\x{10000}-\x{10ffff}]`),
	}
	scripts := map[string]*unicode.RangeTable{}
	for _, l := range languages() {
		scripts[l.name] = l.letters
	}
	c := New(vocabulary)
	for seed := range uint64(texts) {
		text := c.Text(seed)
		for why, expression := range wanted {
			if expression.Match(text) {
				delete(wanted, why)
			}
		}
		for name, table := range scripts {
			if bytes.ContainsFunc(text, func(r rune) bool { return unicode.Is(table, r) }) {
				delete(scripts, name)
			}
		}
		if len(wanted)+len(scripts) == 0 {
			return
		}
	}
	for why := range wanted {
		t.Errorf("no text has %s", why)
	}
	for name := range scripts {
		t.Errorf("no text has letters of the script of %s", name)
	}
}
