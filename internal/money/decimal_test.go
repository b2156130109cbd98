package money

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
)

func TestParseNano(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, in string
		want    int64
	}{
		{"the usual", "0.03", 30_000_000},
		{"whole dollars", "5", 5_000_000_000},
		{"zero is nothing allowed, not unlimited", "0", 0},
		{"zero however it is written", "0.0000e5", 0},
		{"one nano-dollar is exact", "1e-9", 1},
		{"capital exponent", "1E-9", 1},
		{"explicit plus in the exponent", "1.5e+3", 1_500_000_000_000},
		{"no digit before the point, as YAML allows", ".5", 500_000_000},
		{"leading zeros", "000.5", 500_000_000},
		{"a float's noise is rounded", "0.30000000000000004", 300_000_000},
		{"half is rounded up", "0.0000000015", 2},
		{"below half is rounded down", "0.00000000149999999", 1},
		{"half of the smallest unit is one", "0.0000000005", 1},
		{"the largest amount", "9223372036.854775807", math.MaxInt64},
		{"a long fraction does not lose the whole", "1." + strings.Repeat("0", 300), 1_000_000_000},
	} {
		got, err := ParseNano(c.in)
		if err != nil || got != c.want {
			t.Errorf("%s: ParseNano(%q) = %d, %v; want %d", c.why, c.in, got, err, c.want)
		}
	}
}

func TestParseNanoRefuses(t *testing.T) {
	t.Parallel()
	for why, in := range map[string]string{
		"empty": "", "space": " 1", "newline": "1\n", "sign": "+1", "negative": "-1", "negative zero": "-0",
		"not a number": "NaN", "yaml's": ".nan", "infinity": "Inf", "yaml's infinity": ".inf", "json's": "Infinity",
		"a boolean": "true", "thousands": "1,000.00", "underscores": "1_000", "hexadecimal": "0x10",
		"no fraction": "1.", "only a point": ".", "two points": "1.2.3", "no exponent": "1e", "bad exponent": "1e1.5",
		"beyond any float": "1e400", "far beyond": "1e99999999999999999999", "one too large": "9223372036.854775808",
		"rounds up out of int64": "9223372036.8547758075", "would round to zero": "0.00000000049", "tiny": "1e-400",
		"too long": strings.Repeat("1", maxDecimal+1), "arabic digits": "١",
	} {
		if got, err := ParseNano(in); err == nil {
			t.Errorf("%s: ParseNano(%q) = %d, want an error", why, in, got)
		} else if !strings.HasPrefix(err.Error(), "cannot read ") {
			t.Errorf("%s: unclear error %v", why, err)
		}
	}
}

func TestParsePico(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"2.5e-06": 2_500_000, "0.0000025": 2_500_000, "3.75e-08": 37_500, "0": 0,
		"5.000000000000001e-07": 500_000, "0.1": maxPico,
	} {
		if got, err := ParsePico(in); err != nil || got != want {
			t.Errorf("ParsePico(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	_, err := ParsePico("2.5")
	if err == nil || !strings.Contains(err.Error(), "per million") {
		t.Errorf("a price per million in the per-token field must be refused and explained, got %v", err)
	}
}

func TestFormatNano(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0", 30_000_000: "0.03", 1: "0.000000001", 1_000_000_000: "1", 12_340_000_000: "12.34", -500_000_000: "-0.5",
		math.MaxInt64: "9223372036.854775807", math.MinInt64: "-9223372036.854775808",
	} {
		if got := FormatNano(n); got != want || !json.Valid([]byte(got)) {
			t.Errorf("FormatNano(%d) = %q, want %q", n, got, want)
		}
	}
	if got := FormatPico(37_500); got != "0.0000000375" {
		t.Errorf("FormatPico(37500) = %q", got)
	}
}

// FuzzParseNano compares with exact rational arithmetic and checks the way back.
func FuzzParseNano(f *testing.F) {
	for _, s := range []string{"0.03", "1e-9", "1,0", ".5", "9223372036.854775807", "1e400", "-1", "0.30000000000000004", "1e-10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseNano(s)
		if err != nil {
			return
		}
		r, ok := new(big.Rat).SetString(s)
		if !ok && n == 0 {
			return // zero with an exponent that math/big does not take
		}
		if !ok {
			t.Fatalf("ParseNano(%q) = %d, but it is not a number", s, n)
		}
		r.Mul(r, big.NewRat(1_000_000_000, 1)).Add(r, big.NewRat(1, 2))
		if want := new(big.Int).Quo(r.Num(), r.Denom()); want.Cmp(big.NewInt(n)) != 0 {
			t.Fatalf("ParseNano(%q) = %d, want %s", s, n, want)
		}
		if back, err := ParseNano(FormatNano(n)); err != nil || back != n {
			t.Fatalf("%d came back as %d, %v", n, back, err)
		}
	})
}
