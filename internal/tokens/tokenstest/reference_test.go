package tokenstest

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

func reference(t testing.TB, name string) *Reference {
	t.Helper()
	r, err := New(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func all(t testing.TB) map[string]*Reference {
	t.Helper()
	references := make(map[string]*Reference)
	for name := range encodings() {
		references[name] = reference(t, name)
	}
	return references
}

func readJSON(t testing.TB, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// Every fact was taken from tiktoken itself.
func TestFacts(t *testing.T) {
	t.Parallel()
	var facts []struct {
		Name, Encoding, Text string
		Count                int
		IDs                  []int
	}
	readJSON(t, "../testdata/facts.json", &facts)
	references := all(t)
	for _, f := range facts {
		r := references[f.Encoding]
		if got := r.Count([]byte(f.Text)); got != f.Count {
			t.Errorf("%s, %s: %d tokens, want %d (pieces %q)", f.Name, f.Encoding, got, f.Count, r.Pieces([]byte(f.Text)))
		}
		// Of a long text the facts have the first twenty.
		if got := r.Encode([]byte(f.Text)); !slices.Equal(got[:min(len(got), len(f.IDs))], f.IDs) || len(f.IDs) < min(f.Count, 20) {
			t.Errorf("%s, %s: tokens %d, want %d", f.Name, f.Encoding, got, f.IDs)
		}
	}
	if len(facts) < 100 {
		t.Errorf("only %d facts: the test would prove little", len(facts))
	}
}

// The merge is the square of the length: longer ones say nothing more about it.
func TestLongFacts(t *testing.T) {
	t.Parallel()
	var facts []struct {
		Encoding, Unit      string
		Times, Bytes, Count int
	}
	readJSON(t, "../testdata/facts-large.json", &facts)
	references := all(t)
	compared := 0
	for _, f := range facts {
		if f.Bytes > 10_000 {
			continue
		}
		compared++
		if got := references[f.Encoding].Count([]byte(strings.Repeat(f.Unit, f.Times))); got != f.Count {
			t.Errorf("%q x %d, %s: %d tokens, want %d", f.Unit, f.Times, f.Encoding, got, f.Count)
		}
	}
	if compared < 20 {
		t.Errorf("only %d facts: the test would prove little", compared)
	}
}

// What makes it right to look a whole piece up before merging it.
func TestTokensMergeIntoThemselves(t *testing.T) {
	t.Parallel()
	for name, r := range all(t) {
		for id, token := range r.Vocabulary() {
			if token == "" {
				continue
			}
			if got := r.merge(token); len(got) != 1 {
				t.Errorf("%s: token %d, %q, merges into %q", name, id, token, got)
			}
		}
	}
}

func TestPieces(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, encoding, text string
		want                []string
	}{
		{
			why: "a word ends before the capitals of the next", encoding: "o200k_base",
			text: "fooBar HTTPServer", want: []string{"foo", "Bar", " HTTPServer"},
		},
		{
			why: "a contraction belongs to the word", encoding: "o200k_base",
			text: "we'LL 'store", want: []string{"we'LL", " '", "store"},
		},
		{
			why: "an apostrophe is tried as a contraction first", encoding: "cl100k_base",
			text: "we'LL'store", want: []string{"we", "'LL", "'s", "tore"},
		},
		{
			why: "U+017F is an s", encoding: "cl100k_base",
			text: "it'ſx", want: []string{"it", "'ſ", "x"},
		},
		{
			why: "case counts in the old encodings", encoding: "r50k_base",
			text: "it's IT'S", want: []string{"it", "'s", " IT", "'", "S"},
		},
		{
			why: "after the last letter without case, a word of capitals ends", encoding: "o200k_base",
			text: "ªB", want: []string{"ª", "B"},
		},
		{
			why: "a mark is a prefix, a letter and punctuation", encoding: "o200k_base",
			text: "1\u0301B", want: []string{"1", "\u0301", "B"},
		},
		{
			why: "white space runs to its last newline and leaves one blank to the word", encoding: "o200k_base",
			text: "a\n \n  b", want: []string{"a", "\n \n", " ", " b"},
		},
		{
			why: "a slash belongs to the tail of punctuation", encoding: "o200k_base",
			text: "?\n/\n//x", want: []string{"?\n/\n//", "x"},
		},
		{
			why: "but not here", encoding: "cl100k_base",
			text: "?\n/\n//x", want: []string{"?\n", "/\n", "//", "x"},
		},
		{
			why: "digits of any kind, three at a time", encoding: "cl100k_base",
			text: "12²34", want: []string{"12²", "34"},
		},
		{
			why: "letters that only Unicode 16 knows", encoding: "o200k_base",
			text: "Ᲊ's\U000105c0's", want: []string{"Ᲊ's", "\U000105c0's"},
		},
		{
			why: "digits without limit", encoding: "p50k_base",
			text: " 12²34", want: []string{" 12²34"},
		},
		{
			why: "what is white space and what is not", encoding: "o200k_base",
			text: "\u0085\u00a0\u2028\u3000\ufeff\u200b\u180e", want: []string{"\u0085\u00a0\u2028", "\u3000", "\ufeff\u200b\u180e"},
		},
	}
	references := all(t)
	for _, tc := range cases {
		if got := references[tc.encoding].Pieces([]byte(tc.text)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s splits %q into %q, want %q", tc.why, tc.encoding, tc.text, got, tc.want)
		}
	}
}

func TestInvalidUTF8CountsAsReplacement(t *testing.T) {
	t.Parallel()
	for name, r := range all(t) {
		got, want := r.Count([]byte("a\xff\xfeb\xe4\xb8")), r.Count([]byte("a\ufffd\ufffdb\ufffd\ufffd"))
		if got != want {
			t.Errorf("%s: %d tokens, want %d", name, got, want)
		}
	}
}

func TestUnknownEncoding(t *testing.T) {
	t.Parallel()
	if _, err := New("o300k_base"); err == nil || !strings.Contains(err.Error(), "o300k_base") {
		t.Errorf("error %v, want one that names the encoding", err)
	}
}
