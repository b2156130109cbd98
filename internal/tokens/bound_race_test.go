//go:build race

package tokens

// Under the race detector the library is some twenty times slower, and the
// counts are the same: only short texts are worth it.
const (
	maxPiece   = 2_000
	beyondMost = 34
)
