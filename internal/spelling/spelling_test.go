package spelling_test

import (
	"testing"

	"github.com/penstock-gateway/penstock/internal/spelling"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"model", "max_budget", "api_base", "api_key", "rpm", "tpm", "tags", "id"}
	for _, c := range []struct{ why, typed, want string }{
		{"two letters swapped", "mdoel", "model"},
		{"two letters swapped in a long name", "max_bugdet", "max_budget"},
		{"one letter too many", "models", "model"},
		{"one letter missing", "api_bse", "api_base"},
		{"a hyphen", "max-budget", "max_budget"},
		{"one that is right is not mistyped", "model", ""},
		{"three letters", "mxbudgt", ""},
		{"a short name that is half wrong", "ipx", ""},
		{"equally near names: the first in the alphabet", "qpm", "rpm"},
		{"nothing alike", "temperature", ""},
		{"no name at all", "", ""},
	} {
		if got := spelling.Nearest(c.typed, names); got != c.want {
			t.Errorf("%s: %q is taken for %q, want %q", c.why, c.typed, got, c.want)
		}
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("mdoel", "model")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 200 || len(b) > 200 {
			return
		}
		d := spelling.Distance(a, b)
		if d != spelling.Distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a), len(b)) {
			t.Errorf("%q to %q: %d", a, b, d)
		}
	})
}
