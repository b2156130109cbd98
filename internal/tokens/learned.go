package tokens

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/penstock-gateway/penstock/internal/tokens/vocab"
)

// learned remembers how many tokens words have that are no token themselves: the
// memory of a pure function, shared by all goroutines, of bounded size. A reader
// takes no lock; entries are only ever added.
//
// A word is known by its bytes, zero padded, so that it must not end in NUL. Its
// count stands in the last byte of its slot, in a word that is written after the
// others: a slot whose count is not zero is complete and never changes again.
type learned struct {
	mu    sync.Mutex // held by a writer
	short []shortBucket
	long  []longBucket
	full  atomic.Uint32 // words that found no room
}

// A bucket is a cache line.
type (
	shortBucket [4][2]uint64 // words of at most 15 bytes
	longBucket  [2][4]uint64 // words of at most 31 bytes
)

const (
	shortBits = 16 // 2^18 words, 4 MB
	longBits  = 14 // 2^15 words, 1 MB
	maxShort  = 15
	maxLong   = 31
	maxCount  = 255
	countBits = 56 // where the count begins in the last word
)

func newLearned() *learned {
	return &learned{short: make([]shortBucket, 1<<shortBits), long: make([]longBucket, 1<<longBits)}
}

// shortBucket is where a word of at most 15 bytes is, or, where that is full, in
// the bucket beside it.
func (l *learned) shortBucket(low, high uint64) int {
	return int(vocab.Hash2(low, high) >> (64 - shortBits))
}

// findShort returns the count of a word of at most 15 bytes, 0 where it is not
// known.
func (l *learned) findShort(low, high uint64) int {
	i := l.shortBucket(low, high)
	b := &l.short[i]
	if count := b.find(low, high); count != 0 || !b.isFull() {
		return count
	}
	return l.short[i^1].find(low, high)
}

func (b *shortBucket) isFull() bool { return atomic.LoadUint64(&b[len(b)-1][1]) != 0 }

func (b *shortBucket) find(low, high uint64) int {
	for i := range b {
		last := atomic.LoadUint64(&b[i][1])
		if last<<8 == high<<8 && last>>countBits != 0 && b[i][0] == low {
			return int(last >> countBits)
		}
	}
	return 0
}

// learnShort keeps a word's count. Where another goroutine is writing or the
// bucket is full it does nothing: the word will be merged once more.
func (l *learned) learnShort(low, high uint64, count int) {
	if count > maxCount || !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	if l.findShort(low, high) != 0 {
		return
	}
	i := l.shortBucket(low, high)
	if !l.short[i].add(low, high, count) && !l.short[i^1].add(low, high, count) {
		l.full.Add(1)
	}
}

// add takes a word in and tells whether there was room.
func (b *shortBucket) add(low, high uint64, count int) bool {
	for i := range b {
		if b[i][1] == 0 {
			b[i][0] = low
			atomic.StoreUint64(&b[i][1], high|uint64(count)<<countBits)
			return true
		}
	}
	return false
}

// longKey is a word of 16 to 31 bytes.
type longKey [4]uint64

func longKeyOf(word []byte) (k longKey) {
	var b [32]byte
	copy(b[:], word)
	for i := range k {
		k[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return k
}

// appendTo appends the first size bytes of the word.
func (k *longKey) appendTo(dst []byte, size int) []byte {
	for _, w := range k {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst[:len(dst)-8*len(k)+size]
}

func (l *learned) longBucket(k *longKey) *longBucket {
	return &l.long[(vocab.Hash2(k[0], k[1])+vocab.Hash2(k[2], k[3]))>>(64-longBits)]
}

// findLong returns the count of a word of 16 to 31 bytes, 0 where it is not
// known.
func (l *learned) findLong(k *longKey) int {
	b := l.longBucket(k)
	for i := range b {
		last := atomic.LoadUint64(&b[i][3])
		if last<<8 == k[3]<<8 && last>>countBits != 0 && b[i][0] == k[0] && b[i][1] == k[1] && b[i][2] == k[2] {
			return int(last >> countBits)
		}
	}
	return 0
}

// learnLong is learnShort for a longer word.
func (l *learned) learnLong(k *longKey, count int) {
	if count > maxCount || !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	if l.findLong(k) != 0 {
		return
	}
	b := l.longBucket(k)
	for i := range b {
		if b[i][3] == 0 {
			b[i][0], b[i][1], b[i][2] = k[0], k[1], k[2]
			atomic.StoreUint64(&b[i][3], k[3]|uint64(count)<<countBits)
			return
		}
	}
	l.full.Add(1)
}
