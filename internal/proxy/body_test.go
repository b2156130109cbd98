package proxy

import "testing"

// TestBodyPoolKeepsItsPromise: what take gives has room for what was asked, also after
// buffers of odd capacities were put back, as append leaves them.
func TestBodyPoolKeepsItsPromise(t *testing.T) {
	t.Parallel()
	var p bodyPool
	for _, size := range []int{0, 1, 4096, 4097, 278_528, 300_000, 524_288, 1 << 20} {
		odd := make([]byte, size)
		p.put(&odd)
		for _, asked := range []int{size, size + 1, 2*size + 1} {
			b := p.take(asked)
			if cap(*b) < asked || len(*b) != 0 {
				t.Fatalf("asked for %d after %d was put back: capacity %d, length %d", asked, size, cap(*b), len(*b))
			}
			p.put(b)
		}
	}
}
