package class

import (
	"testing"
	"unicode"

	"github.com/penstock-gateway/penstock/internal/tokens/unicode16"
)

func TestEveryCharacter(t *testing.T) {
	t.Parallel()
	if Version != unicode16.Version {
		t.Fatalf("the tables are of Unicode %s, want %s: run 'make generate'", Version, unicode16.Version)
	}
	if err := unicode16.Check(); err != nil {
		t.Fatal(err)
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := Other
		switch {
		case r == '\r' || r == '\n':
			want = Newline
		case unicode16.Space(r):
			want = Space
		case unicode16.Upper(r) || unicode16.Title(r):
			want = Upper
		case unicode16.Lower(r):
			want = Lower
		case unicode16.Modifier(r) || unicode16.OtherLetter(r):
			want = Uncased
		case unicode16.Mark(r):
			want = Mark
		case unicode16.Number(r):
			want = Number
		}
		if got := Of(r); got != want {
			t.Fatalf("%U is of class %d, want %d", r, got, want)
		}
	}
}
