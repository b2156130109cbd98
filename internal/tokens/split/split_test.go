package split_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/tokens/split"
	"github.com/penstock-gateway/penstock/internal/tokens/tokenstest"
	"github.com/penstock-gateway/penstock/test/corpus"
)

// named are the patterns with an encoding that has them.
var named = map[string]split.Pattern{"o200k_base": split.O200k, "cl100k_base": split.CL100k, "r50k_base": split.R50k}

func reference(t testing.TB, name string) *tokenstest.Reference {
	t.Helper()
	r, err := tokenstest.New(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func pieces(pattern split.Pattern, text []byte) []string {
	var all []string
	for p := 0; p < len(text); {
		end := pattern.Next(text, p)
		all = append(all, string(text[p:end]))
		p = end
	}
	return all
}

func TestPiecesAreTheReferences(t *testing.T) {
	t.Parallel()
	for name, pattern := range named {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reference(t, name)
			c := corpus.New(r.Vocabulary())
			for seed := range uint64(200 * c.Kinds()) {
				text := c.Text(seed)
				if got, want := pieces(pattern, text), r.Pieces(text); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s: %q is split into\n%q, want\n%q", seed, c.Kind(seed), text, got, want)
				}
			}
		})
	}
}

// Where several rules could match, which one does was found out from the original.
func TestPieces(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, text           string
		o200k, cl100k, r50k string // pieces, separated by |
	}{
		{
			why: "an apostrophe is a word's prefix or a contraction", text: "I'll 'store it's",
			o200k: "I'll| '|store| it's", cl100k: "I|'ll| '|store| it|'s", r50k: "I|'ll| '|store| it|'s",
		},
		{
			why: "a contraction in capitals, and with a long s", text: "WE'RE a'ſ",
			o200k: "WE'RE| a'ſ", cl100k: "WE|'RE| a|'ſ", r50k: "WE|'|RE| a|'|ſ",
		},
		{
			why: "capitals end a word that small letters began", text: "camelCaseHTTPServer",
			o200k: "camel|Case|HTTPServer", cl100k: "camelCaseHTTPServer", r50k: "camelCaseHTTPServer",
		},
		{
			why: "a letter without case ends a run of capitals that no small letter follows", text: "ABʰCD",
			o200k: "ABʰ|CD", cl100k: "ABʰCD", r50k: "ABʰCD",
		},
		{
			why: "a mark is a prefix, a letter and punctuation", text: "\u0301ab \u0301",
			o200k: "\u0301ab| \u0301", cl100k: "\u0301ab| \u0301", r50k: "\u0301|ab| \u0301",
		},
		{
			why: "punctuation takes newlines with it, in o200k slashes, too", text: "a;\n//\n b",
			o200k: "a|;\n//\n| b", cl100k: "a|;\n|//\n| b", r50k: "a|;|\n|//|\n| b",
		},
		{
			why: "white space up to its last newline", text: "a \n \n  b",
			o200k: "a| \n \n| | b", cl100k: "a| \n \n| | b", r50k: "a| \n \n | b",
		},
		{
			why: "white space at the end stays together", text: "a  ",
			o200k: "a|  ", cl100k: "a|  ", r50k: "a|  ",
		},
		{
			why: "numbers come in threes, or all at once", text: "12345 6²7",
			o200k: "123|45| |6²7", cl100k: "123|45| |6²7", r50k: "12345| 6²7",
		},
		{
			why: "U+FEFF and U+200B are no white space, U+0085 and U+3000 are", text: "\ufeff\u200b\u0085\u3000a",
			o200k: "\ufeff\u200b|\u0085|\u3000a", cl100k: "\ufeff\u200b|\u0085|\u3000a", r50k: "\ufeff\u200b|\u0085|\u3000|a",
		},
	}
	for _, c := range cases {
		for pattern, want := range map[split.Pattern]string{split.O200k: c.o200k, split.CL100k: c.cl100k, split.R50k: c.r50k} {
			if got := strings.Join(pieces(pattern, []byte(c.text)), "|"); got != want {
				t.Errorf("%s: %q by pattern %d is %q, want %q", c.why, c.text, pattern, got, want)
			}
		}
	}
}

func FuzzNext(f *testing.F) {
	references := map[string]*tokenstest.Reference{}
	for name := range named {
		references[name] = reference(f, name)
	}
	c := corpus.New(nil)
	for seed := range uint64(4 * c.Kinds()) {
		f.Add(c.Text(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = bytes.ToValidUTF8(text, []byte("\ufffd"))
		if len(text) > 1<<12 {
			return
		}
		for name, pattern := range named {
			if got, want := pieces(pattern, text), references[name].Pieces(text); !slices.Equal(got, want) {
				t.Errorf("%s: %q is split into\n%q, want\n%q", name, text, got, want)
			}
		}
	})
}
