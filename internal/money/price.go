package money

import (
	"math"
	"math/bits"
	"strings"
)

// Rates are prices in pico-dollars per token, all filled in: a part that a provider
// does not price apart (cached input, cache writes, reasoning) carries the price of
// its whole. Zero is free.
type Rates struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	Cached     int64 `json:"cached"`      // input read from the provider's cache
	CacheWrite int64 `json:"cache_write"` // input written to it
	Reasoning  int64 `json:"reasoning"`
}

// Tier replaces a price's rates for a whole request whose input is larger than Above
// tokens.
type Tier struct {
	Above int64 `json:"above"`
	Rates
}

// Price is what a model costs. The zero Price is free; a model without a price has
// no *Price at all.
type Price struct {
	Rates
	Tiers []Tier `json:"tiers,omitempty"` // ascending by Above

	MaxInput  int64  `json:"max_input"`  // tokens; 0: unknown
	MaxOutput int64  `json:"max_output"` // tokens; 0: unknown
	Provider  string `json:"provider"`
	Mode      string `json:"mode"`    // "chat", "embedding", …; empty: unknown
	Version   string `json:"version"` // which table it is from; goes into each record
}

// Clamp says what had to be bent to price a usage. Each bit is worth a counter: a
// provider's usage did not add up.
type Clamp uint8

const (
	// ClampNegative: a count below zero was taken as zero.
	ClampNegative Clamp = 1 << iota
	// ClampInput: cached and written tokens exceed the input; the rest of the input
	// was taken as zero, the parts as reported.
	ClampInput
	// ClampOutput: reasoning tokens exceed the output, likewise.
	ClampOutput
	// ClampOverflow: the cost does not fit and is the largest amount.
	ClampOverflow
)

// String names the bits, for logs and labels; "" is none.
func (c Clamp) String() string {
	var names []string
	for i, name := range []string{"negative", "input", "output", "overflow"} {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// Cost is the cost of a usage in nano-dollars, rounded half up once. Use Charge where
// the clamps have to be counted.
func (p *Price) Cost(u Usage) int64 {
	nano, _ := p.Charge(u)
	return nano
}

// Charge is the cost of a usage in nano-dollars, rounded half up once, and what had
// to be clamped to get it. It is never negative.
func (p *Price) Charge(u Usage) (int64, Clamp) {
	u, clamp := u.positive()
	r := p.rates(u.Input)
	var sum picoSum
	// Two counts of 63 bits cannot overflow 64.
	if parts := uint64(u.Cached) + uint64(u.CacheWrite); parts > uint64(u.Input) {
		clamp |= ClampInput
	} else {
		sum.add(u.Input-int64(parts), r.Input)
	}
	sum.add(u.Cached, r.Cached)
	sum.add(u.CacheWrite, r.CacheWrite)
	if u.Reasoning > u.Output {
		clamp |= ClampOutput
	} else {
		sum.add(u.Output-u.Reasoning, r.Output)
	}
	sum.add(u.Reasoning, r.Reasoning)
	nano, ok := sum.nano(500)
	if !ok {
		clamp |= ClampOverflow
	}
	return nano, clamp
}

// Hold is the most that a request can cost, in nano-dollars, rounded up: input tokens
// at the dearest price that may apply to them (cache writes and tiers included), and
// n answers of at most outputCap tokens at the dearest output price. Where the product
// does not fit, or a count is negative, it is the largest amount, which no budget can
// pay: a mistake is refused, not let through.
func (p *Price) Hold(input, n, outputCap int64) int64 {
	if input < 0 || n < 0 || outputCap < 0 {
		return math.MaxInt64
	}
	high, output := bits.Mul64(uint64(n), uint64(outputCap))
	if high != 0 || output > math.MaxInt64 {
		return math.MaxInt64
	}
	in, out := dearest(p.Rates, 0, 0)
	for i := range p.Tiers {
		if input > p.Tiers[i].Above {
			in, out = dearest(p.Tiers[i].Rates, in, out)
		}
	}
	var sum picoSum
	sum.add(input, in)
	sum.add(int64(output), out)
	nano, _ := sum.nano(999)
	return nano
}

// rates are those of the highest tier that the input reaches.
func (p *Price) rates(input int64) *Rates {
	r := &p.Rates
	for i := range p.Tiers {
		if input > p.Tiers[i].Above {
			r = &p.Tiers[i].Rates
		}
	}
	return r
}

func dearest(r Rates, in, out int64) (int64, int64) {
	return max(in, r.Input, r.Cached, r.CacheWrite), max(out, r.Output, r.Reasoning)
}

// positive takes negative counts as zero.
func (u Usage) positive() (Usage, Clamp) {
	var clamp Clamp
	for _, n := range []*int64{&u.Input, &u.Output, &u.Cached, &u.CacheWrite, &u.Reasoning} {
		if *n < 0 {
			*n, clamp = 0, ClampNegative
		}
	}
	return u, clamp
}

// picoSum adds tokens × price in 128 bits: five products of 63 bits and 37 bits
// (a price is at most 0.1 USD) cannot overflow it.
type picoSum struct{ high, low uint64 }

func (s *picoSum) add(tokens, pico int64) {
	high, low := bits.Mul64(uint64(tokens), uint64(pico))
	var carry uint64
	s.low, carry = bits.Add64(s.low, low, 0)
	s.high += high + carry
}

// nano divides by 1,000 after adding round, and says whether the result fits.
func (s *picoSum) nano(round uint64) (int64, bool) {
	low, carry := bits.Add64(s.low, round, 0)
	high := s.high + carry
	if high >= 1000 {
		return math.MaxInt64, false
	}
	n, _ := bits.Div64(high, low, 1000)
	if n > math.MaxInt64 {
		return math.MaxInt64, false
	}
	return int64(n), true
}
