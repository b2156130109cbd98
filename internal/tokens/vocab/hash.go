package vocab

import "math/bits"

// A perfect hash finds a key's only possible slot in two steps: the key's hash
// names a bucket, the bucket's pilot (one byte, chosen when the tables were
// compiled) turns the hash into the slot. So a look-up is one load of a pilot,
// one of a slot and one comparison, never a search.
const (
	oddKey   = 0x9E3779B97F4A7C15
	oddPilot = 0xD6E8FEB86659FD93
	oddSlot  = 0xFF51AFD7ED558CCD
	mixLow   = 0xA0761D6478BD642F
	mixHigh  = 0xE7037ED1A0B428DB
)

// Hash1 hashes a key of one word. Only its high bits are good.
func Hash1(key uint64) uint64 { return key * oddKey }

// Hash2 hashes a key of two words.
func Hash2(low, high uint64) uint64 {
	h, l := bits.Mul64(low^mixLow, high^mixHigh)
	return (h ^ l) * oddKey
}

// Bucket is the bucket of a hash among n.
func Bucket(hash uint64, n int) int {
	high, _ := bits.Mul64(hash, uint64(n))
	return int(high)
}

// Slot is the slot of a hash among n under its bucket's pilot.
func Slot(hash uint64, pilot byte, n int) int {
	high, _ := bits.Mul64((hash^uint64(pilot)*oddPilot)*oddSlot, uint64(n))
	return int(high)
}

// StartSets is the number of sets in the table of lengths.
const StartSets = 1 << startBits

const startBits = 15

// StartHash is the place of three bytes, the low ones of w, in the table of
// lengths.
func StartHash(w uint64) int { return int((w << 40) * oddKey >> (64 - startBits)) }
