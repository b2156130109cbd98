package main

import (
	"cmp"
	"slices"
)

// median is the middle value; the upper one of two. It is zero of nothing.
func median[T cmp.Ordered](all []T) T {
	var none T
	if len(all) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// least is the smallest value, zero of nothing.
func least[T cmp.Ordered](all []T) T {
	var none T
	if len(all) == 0 {
		return none
	}
	return slices.Min(all)
}

// ratio is a/b, zero where b is.
func ratio[T ~int64 | ~float64](a, b T) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
