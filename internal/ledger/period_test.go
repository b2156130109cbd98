package ledger_test

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

func TestPeriodEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, duration, anchor, now, want string }{
		{"seconds", "30s", "2026-01-15T10:00:00Z", "2026-01-15T10:00:00Z", "2026-01-15T10:00:30Z"},
		{"m is minutes", "30m", "2026-01-15T10:00:00Z", "2026-01-15T10:00:00Z", "2026-01-15T10:30:00Z"},
		{"hours", "24h", "2026-01-15T10:00:00Z", "2026-01-15T10:00:00Z", "2026-01-16T10:00:00Z"},
		{"days", "30d", "2026-01-15T10:00:00Z", "2026-01-15T10:00:00Z", "2026-02-14T10:00:00Z"},
		{"a year of seconds", "31536000s", "2026-01-15T10:00:00Z", "2026-01-15T10:00:00Z", "2027-01-15T10:00:00Z"},
		{"an end belongs to the next period", "24h", "2026-01-15T10:00:00Z", "2026-01-16T10:00:00Z", "2026-01-17T10:00:00Z"},
		{"just before an end", "24h", "2026-01-15T10:00:00.5Z", "2026-01-16T10:00:00.4Z", "2026-01-16T10:00:00.5Z"},
		{"periods that nobody used are passed", "24h", "2026-01-15T10:00:00Z", "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"},
		{"a clock before the anchor", "24h", "2026-01-15T10:00:00Z", "2026-01-10T10:00:00Z", "2026-01-16T10:00:00Z"},
		{"the first month from the 31st", "1mo", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", "2026-02-28T12:00:00Z"},
		{"does not creep to the 28th", "1mo", "2026-01-31T12:00:00Z", "2026-02-28T12:00:00Z", "2026-03-31T12:00:00Z"},
		{"a month of 30 days", "1mo", "2026-01-31T12:00:00Z", "2026-03-31T12:00:00Z", "2026-04-30T12:00:00Z"},
		{"and on", "1mo", "2026-01-31T12:00:00Z", "2026-04-30T12:00:00Z", "2026-05-31T12:00:00Z"},
		{"a leap year", "1mo", "2028-01-31T12:00:00Z", "2028-01-31T12:00:00Z", "2028-02-29T12:00:00Z"},
		{"three months over a year's end", "3mo", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z", "2027-02-28T00:00:00Z"},
		{"other zones count in UTC", "1mo", "2026-02-01T08:00:00+09:00", "2026-02-01T08:00:00+09:00", "2026-02-28T23:00:00Z"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			p, err := ledger.ParsePeriod(c.duration)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.End(at(t, c.anchor), at(t, c.now)); !got.Equal(at(t, c.want)) {
				t.Fatalf("got %v, want %s", got, c.want)
			}
		})
	}
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What is accepted has an end; what is not says what would be.
func TestParsePeriodRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"0d", "-1d", "1y", "1M", "1.5h", "d", "30", "daily", " 1d", "1d ", "9999999999999999999s", "101000d", "1201mo", "+1d", "1MO"} {
		if p, err := ledger.ParsePeriod(s); err == nil || !strings.Contains(err.Error(), "budget_duration") {
			t.Errorf("%q: got %v, %v; want an error that names budget_duration", s, p, err)
		}
	}
	p, err := ledger.ParsePeriod("")
	if err != nil || !p.Endless() || !p.End(time.Now(), time.Now()).IsZero() {
		t.Errorf("no duration: %v, %v; want a period without end", p, err)
	}
}

func FuzzParsePeriod(f *testing.F) {
	for _, s := range []string{"", "30s", "1mo", "36600d", "m", "00012h", "9223372036854775807s"} {
		f.Add(s, int64(1_770_000_000), int64(1_790_000_000))
	}
	f.Fuzz(func(t *testing.T, s string, anchor, now int64) {
		const year3000 = 32_503_680_000
		p, err := ledger.ParsePeriod(s)
		if err != nil || p.Endless() || anchor < 0 || now < 0 || anchor > year3000 || now > year3000 {
			return
		}
		a, n := time.Unix(anchor, 0), time.Unix(now, 0)
		end := p.End(a, n)
		if !end.After(n) || !end.After(a) {
			t.Fatalf("period %q of %v ends at %v, not after %v", s, a, end, n)
		}
		if next := p.End(a, end); !next.After(end) {
			t.Fatalf("period %q of %v: after %v comes %v", s, a, end, next)
		}
	})
}
