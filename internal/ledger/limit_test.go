package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-gateway/penstock/internal/ledger"
)

var minute = ledger.Window{Length: time.Minute}

const (
	limitNow = int64(1_770_000_000_000_000)
	second   = int64(1_000_000)
)

func limitState(holders int, meters ...ledger.Meter) ledger.LimitState {
	return ledger.LimitState{Meters: meters, Now: limitNow, Holders: holders, Window: minute}
}

func counts(amount int64) ledger.Meter {
	return ledger.Meter{Cells: []ledger.Cell{{Until: limitNow + 10*second, Amount: amount / 2}, {Until: limitNow + 20*second, Amount: amount - amount/2}}}
}

// Wishes depend on how much of a limit is free.
func TestLimitWishes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why         string
		counted     int64
		holders     int
		short, calm int64
		amount      int64
		isCalm      bool
	}{
		{"all is free: for long, at most an eighth over all holders", 0, 2, 10, 900, 62, true},
		{"what is wished, when that is less", 0, 2, 10, 50, 50, true},
		{"many holders share the eighth", 0, 100, 0, 900, 1, true},
		{"more than half is counted: for a short time", 600, 2, 10, 900, 10, false},
		{"at most a quarter of the rest", 960, 2, 30, 900, 10, false},
		{"a rate beyond the share is served for a short time", 0, 2, 200, 900, 200, false},
		{"no wish, no permits", 0, 2, 0, 0, 0, true},
		{"nothing is free", 1000, 2, 30, 900, 0, false},
		{"a lowered limit gives nothing", 5000, 2, 30, 900, 0, false},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			ask := ledger.LimitAsk{Subject: "key:a", Kind: ledger.LimitRequests, Limit: 1000, Short: c.short, Calm: c.calm}
			g := ledger.DecideLimits(ledger.LimitSync{Asks: []ledger.LimitAsk{ask}}, limitState(c.holders, counts(c.counted))).Grants[0]
			use := minute.Short()
			if c.isCalm {
				use = minute.Calm()
			}
			if g.Amount != c.amount || g.Calm != c.isCalm || g.Use != use || g.Free != max(1000-c.counted-c.amount, 0) {
				t.Errorf("%+v, want %d, calm %v", g, c.amount, c.isCalm)
			}
		})
	}
}

// A refusal tells when enough has expired; wants are served in order and all or nothing.
func TestLimitWants(t *testing.T) {
	t.Parallel()
	asks := []ledger.LimitAsk{
		{Subject: "key:a", Kind: ledger.LimitRequests, Limit: 100},
		{Subject: "team:b", Kind: ledger.LimitTokens, Limit: 1000, Charge: 300},
		{Subject: "key:a", Kind: ledger.LimitParallel, Limit: 2, Have: 1},
	}
	one := func(asks ...int) ledger.LimitWant {
		var w ledger.LimitWant
		for _, a := range asks {
			w = append(w, ledger.LimitNeed{Ask: a, Amount: []int64{1, 400, 1}[a]})
		}
		return w
	}
	wants := []ledger.LimitWant{one(0, 1, 2), one(0, 1), one(0, 2), one(0), one(0), {{Ask: 0, Amount: 60}}, {{Ask: 0, Amount: 101}}, {}}
	plan := ledger.DecideLimits(ledger.LimitSync{Holder: "h", Asks: asks, Wants: wants}, limitState(1, counts(98), ledger.Meter{}, ledger.Meter{}))
	want := []ledger.LimitVerdict{
		{Granted: true},
		{Ask: 1, Retry: plan.Verdicts[1].Retry}, // 300 + 400 + 400 tokens
		{Ask: 2},                                // both slots are taken
		{Granted: true},                         // the two refused have consumed nothing
		{Ask: 0, Retry: 10 * time.Second},       // the first cell has 49
		{Ask: 0, Retry: 20 * time.Second},       // 60 need both
		{Ask: 0, Retry: ledger.RetryNever},      // above the limit
		{Granted: true},                         // needs nothing
	}
	if !slices.Equal(plan.Verdicts, want) {
		t.Errorf("got  %+v\nwant %+v", plan.Verdicts, want)
	}
	if r := plan.Verdicts[1].Retry; r < time.Minute || r > 62*time.Second {
		t.Errorf("tokens that were charged now are back after %v, want a window", r)
	}
	if !plan.RefusedParallel(asks) {
		t.Error("a slot was refused")
	}
}

// A use counts for a window, wherever it is counted.
func TestLimitReturns(t *testing.T) {
	t.Parallel()
	far := limitNow + (minute.Calm() + minute.Length).Microseconds()
	for _, c := range []struct {
		why   string
		cells []ledger.Cell
		ret   ledger.PermitReturn
		after int64 // counted at once, and …
		later int64 // … 63 seconds later
	}{
		{"unused permits count no more", []ledger.Cell{{far, 10}}, ledger.PermitReturn{Cell: far, Granted: 10}, 0, 0},
		{"used ones count from now", []ledger.Cell{{far, 10}}, ledger.PermitReturn{Cell: far, Granted: 10, Used: 4}, 4, 0},
		{"not longer than their cell", []ledger.Cell{{limitNow + second, 10}}, ledger.PermitReturn{Cell: limitNow + second, Granted: 10, Used: 4}, 4, 0},
		{"others' permits of the cell stay", []ledger.Cell{{far, 30}}, ledger.PermitReturn{Cell: far, Granted: 10, Used: 4}, 24, 20},
		{"a cell that has expired gives nothing back", []ledger.Cell{{limitNow, 10}, {far, 5}}, ledger.PermitReturn{Cell: limitNow, Granted: 10, Used: 4}, 5, 5},
		{"nor one that never was", []ledger.Cell{{far, 5}}, ledger.PermitReturn{Cell: 7, Granted: 100}, 5, 5},
		{"nor more than it holds", []ledger.Cell{{far, 5}}, ledger.PermitReturn{Cell: far, Granted: 100, Used: 50}, 5, 0},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			ask := ledger.LimitAsk{Kind: ledger.LimitRequests, Limit: 100, Returns: []ledger.PermitReturn{c.ret}}
			plan := ledger.DecideLimits(ledger.LimitSync{Asks: []ledger.LimitAsk{ask}}, limitState(1, ledger.Meter{Cells: c.cells}))
			if got := 100 - plan.Grants[0].Free; got != c.after {
				t.Errorf("%d counted, want %d", got, c.after)
			}
			st := limitState(1, plan.Meters[0])
			st.Now += 63 * second
			if got := 100 - ledger.DecideLimits(ledger.LimitSync{Asks: []ledger.LimitAsk{{Kind: ledger.LimitRequests, Limit: 100}}}, st).Grants[0].Free; got != c.later {
				t.Errorf("%d counted a window later, want %d", got, c.later)
			}
		})
	}
}

// A database whose clock is set back does not count less.
func TestLimitClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	ask := ledger.LimitAsk{Kind: ledger.LimitRequests, Limit: 10}
	s := ledger.LimitSync{Asks: []ledger.LimitAsk{ask}, Wants: []ledger.LimitWant{{{Ask: 0, Amount: 5}}}}
	m := ledger.DecideLimits(s, limitState(1, ledger.Meter{})).Meters[0]
	st := limitState(1, m)
	st.Now -= 3600 * second // a correction, and …
	m = ledger.DecideLimits(s, st).Meters[0]
	st = limitState(1, m) // … its correction
	st.Now += 59 * second
	if free := ledger.DecideLimits(ledger.LimitSync{Asks: []ledger.LimitAsk{ask}}, st).Grants[0].Free; free != 0 {
		t.Errorf("%d are free 59 s after all were used", free)
	}
}

// Slots count until the requests in them have ended for sure, or their holder is dead.
func TestLimitSlots(t *testing.T) {
	t.Parallel()
	ask := func(limit, have, short int64) []ledger.LimitAsk {
		return []ledger.LimitAsk{{Kind: ledger.LimitParallel, Limit: limit, Have: have, Short: short}}
	}
	want := []ledger.LimitWant{{{Ask: 0, Amount: 1}}}
	plan := ledger.DecideLimits(ledger.LimitSync{Holder: "a", Asks: ask(3, 2, 0), Wants: want, Longest: time.Hour}, limitState(2, ledger.Meter{}))
	if g := plan.Grants[0]; g.Amount != 1 || g.Free != 0 || g.Keep != 0 || g.Rest != 0 {
		t.Errorf("%+v, want the last slot, to be given back at once", g)
	}
	st := limitState(2, plan.Meters[0])
	other := ledger.LimitSync{Holder: "b", Asks: ask(3, 0, 0), Wants: want}
	st.Now += 3600 * second
	if ledger.DecideLimits(other, st).Verdicts[0].Granted {
		t.Error("a slot was taken from a holder whose request may still run")
	}
	st.Dead = map[string]bool{"a": true}
	if !ledger.DecideLimits(other, st).Verdicts[0].Granted {
		t.Error("the slots of a dead holder are not free")
	}
	st.Dead = nil
	st.Now += 31 * second
	taken := ledger.DecideLimits(other, st)
	if !taken.Verdicts[0].Granted {
		t.Error("slots that nothing can run in any more are not free")
	}
	st.Meters = taken.Meters
	back := ledger.DecideLimits(ledger.LimitSync{Holder: "a", Asks: ask(3, 3, 0)}, st)
	if g := back.Grants[0]; g.Amount != -1 || g.Free != 0 {
		t.Errorf("a holder that comes back has %+v of three slots, want one fewer: it was given away", g)
	}
	if g := ledger.DecideLimits(ledger.LimitSync{Holder: "a", Asks: ask(1, 2, 0)}, limitState(2, back.Meters[0])).Grants[0]; g.Amount != 0 {
		t.Errorf("%+v, want to keep what it has although the limit was lowered", g)
	}
	g := ledger.DecideLimits(ledger.LimitSync{Holder: "a", Asks: ask(100, 0, 5), Wants: want}, limitState(2, ledger.Meter{})).Grants[0]
	if g.Amount != 6 || g.Keep != 2*time.Second || g.Rest != 12 {
		t.Errorf("%+v, want five more than needed, 12 of which may rest", g)
	}
	g = ledger.DecideLimits(ledger.LimitSync{Holder: "a", Asks: ask(100, 73, 5), Wants: want}, limitState(2, ledger.Meter{})).Grants[0]
	if g.Amount != 2 || g.Rest != 0 {
		t.Errorf("%+v, want one more than needed: a quarter stays free for others", g)
	}
}

// A meter is read as it was written, and a broken one is an error.
func FuzzParseMeter(f *testing.F) {
	f.Add(`{"clock":5,"cells":[[7,3]],"slots":[{"holder":"a","count":1,"ends":9}]}`)
	f.Add(``)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ledger.ParseMeter(text)
		if err != nil {
			return
		}
		first, err := m.Text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ledger.ParseMeter(first)
		if err != nil {
			t.Fatal(err)
		}
		if second, _ := again.Text(); first != second {
			t.Errorf("%s became %s", first, second)
		}
	})
}
