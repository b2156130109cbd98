package main

import (
	"errors"
	"sort"

	"github.com/penstock-gateway/penstock/internal/tokens/vocab"
)

// perBucket is the mean number of keys in a bucket, and load the part of the
// slots that is filled: denser tables are smaller, which is what makes them
// fast, and take longer to compile.
const (
	perBucket = 2.0
	load      = 0.93
)

// perfect is a perfect hash: a pilot for each bucket, and for each slot the
// index of its key, or -1.
type perfect struct {
	pilots []byte
	slots  []int
}

// hashAll places keys, given by their hashes. A table that cannot be filled is
// tried again with a slot more, a bounded number of times.
func hashAll(hashes []uint64) (perfect, error) {
	buckets := int(float64(len(hashes))/perBucket) + 1
	size := int(float64(len(hashes))/load) + 1
	for range 64 {
		if p, ok := place(hashes, buckets, size); ok {
			return p, nil
		}
		size++
	}
	return perfect{}, errors.New("no perfect hash found: two keys may have one hash")
}

func place(hashes []uint64, buckets, size int) (perfect, bool) {
	byBucket := make([][]int, buckets)
	for i, h := range hashes {
		b := vocab.Bucket(h, buckets)
		byBucket[b] = append(byBucket[b], i)
	}
	order := make([]int, buckets)
	for i := range order {
		order[i] = i
	}
	// Full buckets go first, while there is room.
	sort.SliceStable(order, func(i, j int) bool { return len(byBucket[order[i]]) > len(byBucket[order[j]]) })
	p := perfect{pilots: make([]byte, buckets), slots: make([]int, size)}
	for i := range p.slots {
		p.slots[i] = -1
	}
	for _, b := range order {
		if !p.placeBucket(b, byBucket[b], hashes) {
			return perfect{}, false
		}
	}
	return p, true
}

// placeBucket finds a pilot under which every key of the bucket has a free slot
// of its own.
func (p *perfect) placeBucket(bucket int, keys []int, hashes []uint64) bool {
	taken := make([]int, 0, len(keys))
	for pilot := range 256 {
		taken = taken[:0]
		for _, k := range keys {
			s := vocab.Slot(hashes[k], byte(pilot), len(p.slots))
			if p.slots[s] >= 0 {
				break
			}
			p.slots[s] = k
			taken = append(taken, s)
		}
		if len(taken) == len(keys) {
			p.pilots[bucket] = byte(pilot)
			return true
		}
		for _, s := range taken {
			p.slots[s] = -1
		}
	}
	return false
}
