//go:build !race

package tokens

// maxPiece is the longest text without a break, in bytes, that the tests count,
// and beyond how many of the large facts that leaves out: the library needs
// time by the square of it, some seconds for 100,000 bytes. DESIGN.md lists the
// facts that are left out; all of them were right when they were tried.
const (
	maxPiece   = 50_000
	beyondMost = 10
)
