package sidecar

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSumsDoNotDependOnTheirOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	parts := make([]amount, 1000)
	for i := range parts {
		parts[i] = amountOf(random.Float64() * math.Pow(10, float64(i%9)))
	}
	sum := func() (total amount) {
		for _, i := range random.Perm(len(parts)) {
			total = total.plus(parts[i])
		}
		return total
	}
	first := sum()
	for range 20 {
		if again := sum(); again != first || again.float() != first.float() {
			t.Fatalf("%v and %v", first, again)
		}
	}
}

func FuzzAmount(f *testing.F) {
	f.Add(0.1, 0.2)
	f.Add(999_999.999999999, 1e-9)
	f.Add(1e15, 123_456_789.987654321)
	f.Fuzz(func(t *testing.T, a, b float64) {
		if !finite(a) || !finite(b) || a < 0 || b < 0 || a > maxValue || b > maxValue {
			return
		}
		x, y := amountOf(a), amountOf(b)
		if a <= b && y.less(x) || math.Abs(x.float()-a) > 1e-9+a*1e-15 {
			t.Fatalf("%v and %v become %v and %v", a, b, x, y)
		}
		sum := x.plus(y)
		if sum.less(x) || sum.minus(y) != x || sum.float() < x.float() {
			t.Fatalf("%v + %v = %v", x, y, sum)
		}
		if amountOf(sum.atLeast()).less(sum) {
			t.Fatalf("%v is kept as %v", sum, sum.atLeast())
		}
	})
}
