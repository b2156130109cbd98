package limit

import (
	"math/bits"
	"sync"
)

const (
	// maxOutputs bounds the keys whose outputs are remembered.
	maxOutputs = 10_000
	// enoughOutputs is how many answers a key must have had before its p95 means anything.
	enoughOutputs = 20
	// rememberedOutputs is how many answers count; older ones fade.
	rememberedOutputs = 1000
)

// Outputs learns how long the answers of each key are, so that a request is charged for
// what is likely and not for the most that it could produce. The zero value is ready;
// its methods may be called from several goroutines at once.
type Outputs struct {
	mu   sync.Mutex
	keys map[string]*histogram
}

// histogram counts output tokens in buckets of an eighth of their power of two.
type histogram struct {
	total  int
	counts [8 * 32]uint16
}

// Observe learns one answer's output tokens.
func (o *Outputs) Observe(key string, tokens int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.keys[key]
	if h == nil {
		if o.keys == nil {
			o.keys = map[string]*histogram{}
		}
		for old := range o.keys { // any will do: it learns again
			if len(o.keys) < maxOutputs {
				break
			}
			delete(o.keys, old)
		}
		h = &histogram{}
		o.keys[key] = h
	}
	h.add(tokens)
}

// Expect is what a request of the key is charged for output: the p95 of its answers, at
// most the request's output cap; the cap while too few answers are known.
func (o *Outputs) Expect(key string, outputCap int64) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.keys[key]
	if h == nil || h.total < enoughOutputs {
		return outputCap
	}
	return min(outputCap, h.p95())
}

func (h *histogram) add(tokens int64) {
	if h.total >= rememberedOutputs {
		h.total = 0
		for i := range h.counts {
			h.counts[i] /= 2
			h.total += int(h.counts[i])
		}
	}
	h.counts[bucket(tokens)]++
	h.total++
}

// p95 is the upper end of the bucket in which the 95th percentile lies.
func (h *histogram) p95() int64 {
	left := h.total - h.total*95/100 // above it
	for i := len(h.counts) - 1; i > 0; i-- {
		if left -= int(h.counts[i]); left <= 0 {
			return upper(i)
		}
	}
	return upper(0)
}

// bucket is where so many tokens are counted: the exponent and the three bits after it.
func bucket(tokens int64) int {
	n := uint64(min(max(tokens, 0), 1<<31)) + 8
	e := bits.Len64(n) - 4
	return min(8*e+int(n>>e)-8, 8*32-1)
}

// upper is the most tokens that are counted in a bucket.
func upper(i int) int64 {
	e := i / 8
	return int64(i%8+8+1)<<e - 8 - 1
}
