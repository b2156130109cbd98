package money

import (
	"math"
	"math/big"
	"testing"
)

// perMillion makes a price from dollars per million tokens times 1,000.
func perMillion(input, cached, output int64) *Price {
	const milli = 1_000
	return &Price{Rates: Rates{
		Input: input * milli, Cached: cached * milli, CacheWrite: input * milli,
		Output: output * milli, Reasoning: output * milli,
	}}
}

func TestChargeCachedAndReasoning(t *testing.T) {
	t.Parallel()
	p := perMillion(500, 50, 3000)
	for _, c := range []struct {
		why   string
		usage Usage
		want  int64
		clamp Clamp
	}{
		{"parts are inside their wholes, billed once",
			Usage{Input: 20212, Output: 931, Cached: 16298, Reasoning: 700}, 5_564_900, 0},
		{"more cached than input: the rest is zero, not negative",
			Usage{Input: 20212, Output: 931, Cached: 30000, Reasoning: 700}, 4_293_000, ClampInput},
		{"more reasoning than output, likewise",
			Usage{Output: 10, Reasoning: 20}, 60_000, ClampOutput},
		{"a negative count never lowers a cost",
			Usage{Input: -5, Output: 2, Cached: -1}, 6_000, ClampNegative},
		{"nothing costs nothing", Usage{}, 0, 0},
		{"counts that overflow are the largest amount",
			Usage{Input: math.MaxInt64, Output: math.MaxInt64, Cached: math.MaxInt64, CacheWrite: math.MaxInt64}, math.MaxInt64, ClampInput | ClampOverflow},
	} {
		got, clamp := p.Charge(c.usage)
		if got != c.want || clamp != c.clamp {
			t.Errorf("%s: Charge = %d, %q; want %d, %q", c.why, got, clamp, c.want, c.clamp)
		}
		if p.Cost(c.usage) != got {
			t.Errorf("%s: Cost differs from Charge", c.why)
		}
	}
}

func TestChargeRoundsOnce(t *testing.T) {
	t.Parallel()
	// 0.4 nano-dollars per token each: rounded apart, both would vanish.
	p := &Price{Rates: Rates{Input: 400, Output: 400}}
	for _, c := range []struct{ tokens, want int64 }{{1, 1}, {2, 2}, {3, 2}} {
		if got := p.Cost(Usage{Input: c.tokens, Output: c.tokens}); got != c.want {
			t.Errorf("%d+%d tokens cost %d, want %d", c.tokens, c.tokens, got, c.want)
		}
	}
	half := &Price{Rates: Rates{Input: 500}}
	if got := half.Cost(Usage{Input: 1}); got != 1 {
		t.Errorf("half a nano-dollar costs %d, want 1", got)
	}
}

func TestChargeTierIsForTheWholeRequest(t *testing.T) {
	t.Parallel()
	p, ok := Builtin().Lookup("gemini/gemini-2.5-pro")
	if !ok {
		t.Fatal("gemini-2.5-pro has no price")
	}
	for _, c := range []struct {
		why         string
		input, want int64
	}{
		{"at the threshold still the lower tier", 200_000, 200_000*1250 + 10*10_000},
		{"one above: every token at the higher one", 200_001, 200_001*2500 + 10*15_000},
	} {
		if got := p.Cost(Usage{Input: c.input, Output: 10}); got != c.want {
			t.Errorf("%s: %d, want %d", c.why, got, c.want)
		}
	}
	if got := p.Cost(Usage{Input: 300_000, Cached: 300_000}); got != 300_000*250 {
		t.Errorf("cached input of the higher tier costs %d", got)
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	sonnet, _ := Builtin().Lookup("claude-sonnet-4-5")
	free := &Price{}
	for _, c := range []struct {
		why           string
		price         *Price
		input, n, cap int64
		want          int64
	}{
		{"input may all be written to the cache, which is dearer", sonnet, 1000, 1, 100, 1000*3750 + 100*15_000},
		{"the long tier for the whole request", sonnet, 200_001, 1, 100, 200_001*7500 + 100*22_500},
		{"n answers", sonnet, 0, 3, 10, 30 * 15_000},
		{"rounded up", &Price{Rates: Rates{Input: 1}}, 1, 1, 0, 1},
		{"reasoning is dearer than output", &Price{Rates: Rates{Output: 1000, Reasoning: 2000}}, 0, 1, 5, 10},
		{"a free model holds nothing", free, 1 << 40, 1, 1 << 40, 0},
		{"a negative count is refused by its size", free, -1, 1, 1, math.MaxInt64},
		{"n times cap overflows", sonnet, 0, math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{"n times cap overflows int64 only", sonnet, 0, 1 << 40, 1 << 23, math.MaxInt64},
		{"the amount overflows", sonnet, 0, 1, math.MaxInt64, math.MaxInt64},
	} {
		if got := c.price.Hold(c.input, c.n, c.cap); got != c.want {
			t.Errorf("%s: Hold = %d, want %d", c.why, got, c.want)
		}
	}
}

func TestClampString(t *testing.T) {
	t.Parallel()
	if got := (ClampInput | ClampOverflow).String(); got != "input+overflow" {
		t.Errorf("got %q", got)
	}
	if got := Clamp(0).String(); got != "" {
		t.Errorf("no clamp reads %q", got)
	}
}

// FuzzHoldCoversCost: what was held is enough for every usage within it, and both agree
// with arithmetic of any size.
func FuzzHoldCoversCost(f *testing.F) {
	f.Add(int64(20212), int64(16298), int64(0), int64(931), int64(700))
	f.Add(int64(200_001), int64(1), int64(200_000), int64(1), int64(0))
	prices := map[string]*Price{}
	table := Builtin()
	for _, name := range table.Names() {
		prices[name], _ = table.Lookup(name)
	}
	f.Fuzz(func(t *testing.T, input, cached, written, output, reasoning int64) {
		u := Usage{Input: input, Cached: cached, CacheWrite: written, Output: output, Reasoning: reasoning}
		if input < 0 || output < 0 || cached < 0 || written < 0 || reasoning < 0 ||
			reasoning > output || cached > input || written > input-cached {
			for _, p := range prices {
				if nano, _ := p.Charge(u); nano < 0 {
					t.Fatalf("negative cost of %+v", u)
				}
			}
			return
		}
		for name, p := range prices {
			cost, clamp := p.Charge(u)
			if clamp&^ClampOverflow != 0 {
				t.Fatalf("%s: clamp %v of a sound usage", name, clamp)
			}
			if clamp == 0 && cost != bigCost(p, u) {
				t.Fatalf("%s: cost %d of %+v, want %d", name, cost, u, bigCost(p, u))
			}
			if hold := p.Hold(input, 1, output); hold < cost {
				t.Fatalf("%s: hold %d below cost %d of %+v", name, hold, cost, u)
			}
		}
	})
}

func bigCost(p *Price, u Usage) int64 {
	r := p.Rates
	for _, tier := range p.Tiers {
		if u.Input > tier.Above {
			r = tier.Rates
		}
	}
	sum := big.NewInt(500)
	for _, part := range [][2]int64{
		{u.Input - u.Cached - u.CacheWrite, r.Input}, {u.Cached, r.Cached}, {u.CacheWrite, r.CacheWrite},
		{u.Output - u.Reasoning, r.Output}, {u.Reasoning, r.Reasoning},
	} {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
	}
	return sum.Quo(sum, big.NewInt(1000)).Int64()
}
