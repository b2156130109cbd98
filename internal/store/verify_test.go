package store_test

import (
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
)

func TestScopeOf(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		if s == "" {
			return time.Time{}
		}
		v, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct{ why, since, kept, read, days, check string }{
		{"everything", "", "", "", "", ""},
		{"a day: its leases' first records may be older", "2026-03-14 00:00", "", "2026-03-13 23:00", "2026-03-14 00:00", "2026-03-14 00:00"},
		{"in the middle of a day, of which not all is read", "2026-03-14 10:00", "", "2026-03-14 09:00", "2026-03-15 00:00", "2026-03-14 10:00"},
		{"what is kept: there is nothing older to read", "", "2026-03-14 00:00", "2026-03-14 00:00", "2026-03-14 00:00", "2026-03-14 01:00"},
		{"a day that is not kept", "2026-03-01 00:00", "2026-03-14 00:00", "2026-03-14 00:00", "2026-03-14 00:00", "2026-03-14 01:00"},
		{"a day after what is kept", "2026-03-20 00:00", "2026-03-14 00:00", "2026-03-19 23:00", "2026-03-20 00:00", "2026-03-20 00:00"},
		{"just after what is kept", "2026-03-14 00:30", "2026-03-14 00:00", "2026-03-14 00:00", "2026-03-15 00:00", "2026-03-14 01:00"},
	} {
		want := store.Scope{Read: at(c.read), Days: at(c.days), Check: at(c.check)}
		if got := store.ScopeOf(at(c.since), at(c.kept)); got != want {
			t.Errorf("%s: got %v, want %v", c.why, got, want)
		}
	}
}

func FuzzParseLeaseName(f *testing.F) {
	for _, name := range []string{"pod/0/ab/1/2", "x/1/2", "", "/1/2", "a/0/1", "a/1/-1", "a/1/99999999999999999999", "a/01/2", "a/b/1/+2"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		h, ref, err := store.ParseLeaseName(name)
		if err != nil {
			return
		}
		again, ref2, err := store.ParseLeaseName(store.LeaseName(h, ref))
		if err != nil || again != h || ref2 != ref || ref.Seq == 0 || ref.Budget <= 0 || h == "" {
			t.Errorf("%q reads as %q %+v, and that as %q %+v: %v", name, h, ref, again, ref2, err)
		}
	})
}
