package gateway

import "testing"

func TestMemoryShare(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		why         string
		limit       int64
		workers     int
		least, most int64
	}{
		{"a pod of 512 MiB", 512 * mib, 1, 400 * mib, 410 * mib},
		{"two workers share it", 512 * mib, 2, 200 * mib, 205 * mib},
		{"workers that were not told", 512 * mib, 0, 400 * mib, 410 * mib},
	} {
		if got := memoryShare(c.limit, c.workers); got < c.least || got > c.most {
			t.Errorf("%s: %d MiB, want %d to %d", c.why, got/mib, c.least/mib, c.most/mib)
		}
	}
}
