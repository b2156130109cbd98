package sidecar

import "math"

// amount is a value as whole units and billionths. Sums of floats depend on their order;
// a total that comes out one bit lower than at the last scrape is, to Prometheus, a
// counter that started again from zero.
type amount struct{ whole, nano int64 }

// amountOf keeps nine decimals, which is all that a worker sends.
func amountOf(v float64) amount {
	whole, rest := math.Modf(v)
	return amount{whole: int64(whole), nano: int64(math.Round(rest * 1e9))}.carried()
}

// carried brings nano into 0 to 999,999,999, also below zero, so that equal is equal.
func (a amount) carried() amount {
	a.whole += a.nano / 1e9
	if a.nano %= 1e9; a.nano < 0 {
		a.whole, a.nano = a.whole-1, a.nano+1e9
	}
	return a
}

func (a amount) plus(b amount) amount {
	return amount{whole: a.whole + b.whole, nano: a.nano + b.nano}.carried()
}

func (a amount) minus(b amount) amount {
	return amount{whole: a.whole - b.whole, nano: a.nano - b.nano}.carried()
}

func (a amount) less(b amount) bool {
	return a.whole < b.whole || a.whole == b.whole && a.nano < b.nano
}

func (a amount) float() float64 { return float64(a.whole) + float64(a.nano)/1e9 }

// atLeast is the float to keep in a file: never less than a, so that what is read back
// cannot be lower than what was served.
func (a amount) atLeast() float64 {
	v := a.float()
	if amountOf(v).less(a) {
		v = math.Nextafter(v, math.Inf(1))
	}
	return v
}
