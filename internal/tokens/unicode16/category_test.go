package unicode16

import (
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// What Go's tables lack is added to them, so they have to be of one version.
func TestBase(t *testing.T) {
	t.Parallel()
	if err := Check(); err != nil {
		t.Error(err)
	}
}

// Every code point is in one category, and as many as Unicode 16.0.0 has in each.
func TestCategories(t *testing.T) {
	t.Parallel()
	sets := map[string]func(rune) bool{"Lu": Upper, "Lt": Title, "Ll": Lower, "Lm": Modifier, "Lo": OtherLetter, "M": Mark, "N": Number, "space": Space}
	want := map[string]int{"Lu": 1858, "Lt": 31, "Ll": 2258, "Lm": 404, "Lo": 136477, "M": 2501, "N": 1911, "space": 25}
	got := make(map[string]int)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		in := 0
		for name, set := range sets {
			if set(r) {
				got[name]++
				in++
			}
		}
		if in > 1 {
			t.Errorf("%U is in %d categories", r, in)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("characters in a category (-want +got):\n%s", diff)
	}
	for _, r := range []rune{0x378, 0x2fe0, 0xe000, unicode.MaxRune} {
		for name, set := range sets {
			if set(r) {
				t.Errorf("%U is in %s, and is not assigned", r, name)
			}
		}
	}
}
