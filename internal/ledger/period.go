package ledger

import (
	"fmt"
	"strconv"
	"time"
)

// maxYears bounds a period, so that every end is a time a database can hold.
const maxYears = 100

// Period is the length of a budget's period: a number of seconds or of calendar
// months. The zero value never ends.
type Period struct {
	seconds int64
	months  int64
}

// ParsePeriod reads "30s", "30m", "24h", "30d" or "1mo": a whole number and a
// unit, "m" being minutes. Days are 24 hours. Empty means a budget that never
// resets.
func ParsePeriod(s string) (Period, error) {
	if s == "" {
		return Period{}, nil
	}
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	unit := s[digits:]
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	if err != nil || n < 1 {
		return Period{}, periodError(s)
	}
	if unit == "mo" && n <= maxYears*12 {
		return Period{months: n}, nil
	}
	if size := unitSeconds(unit); size > 0 && n <= maxYears*366*86400/size {
		return Period{seconds: n * size}, nil
	}
	return Period{}, periodError(s)
}

// unitSeconds is the length of a unit, 0 for one that is not known.
func unitSeconds(unit string) int64 {
	switch unit {
	case "s":
		return 1
	case "m":
		return 60
	case "h":
		return 3600
	case "d":
		return 86400
	}
	return 0
}

func periodError(s string) error {
	return fmt.Errorf("cannot read budget_duration %q: want a whole number above 0 and one of s, m, h, d, mo (30s, 30m, 24h, 30d, 1mo), at most %d years", s, maxYears)
}

// Endless says whether the period never ends.
func (p Period) Endless() bool { return p == Period{} }

// End is the first end of a period after now, counted from anchor (UTC). Ends
// are always computed from the anchor and never from each other: a month from
// 31 January ends on 28 February, the next on 31 March. The zero time means never.
func (p Period) End(anchor, now time.Time) time.Time {
	anchor, now = anchor.UTC(), now.UTC()
	switch {
	case p.Endless():
		return time.Time{}
	case p.months > 0:
		return p.monthEnd(anchor, now)
	}
	k := int64(1)
	if elapsed := now.Unix() - anchor.Unix(); elapsed > 0 {
		k = max(1, elapsed/p.seconds)
	}
	end := addSeconds(anchor, k*p.seconds)
	for !end.After(now) {
		end = addSeconds(end, p.seconds)
	}
	return end
}

// addSeconds is Time.Add beyond the 292 years of a Duration.
func addSeconds(t time.Time, s int64) time.Time {
	return time.Unix(t.Unix()+s, int64(t.Nanosecond())).UTC()
}

func (p Period) monthEnd(anchor, now time.Time) time.Time {
	passed := int64(now.Year()-anchor.Year())*12 + int64(now.Month()-anchor.Month())
	k := max(1, passed/p.months)
	end := addMonths(anchor, k*p.months)
	for !end.After(now) {
		k++
		end = addMonths(anchor, k*p.months)
	}
	return end
}

// addMonths keeps the day of the month where it exists and otherwise takes the
// month's last day (time.AddDate would run over into the next month).
func addMonths(t time.Time, n int64) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(n), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), last)-1)
}
