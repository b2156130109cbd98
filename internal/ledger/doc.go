// Package ledger holds the rules by which money moves, as pure functions: no
// SQL, no clock, no goroutine. A store reads rows under its locks, asks this
// package what becomes of them, and writes the answer; so PostgreSQL and SQLite
// cannot disagree about money.
//
// All amounts are int64 nano-dollars. The law that every function keeps, for
// each budget row at every moment:
//
//	spent − overrun + leased ≤ limit
//
// (after a limit was lowered the sum may stand above it, but never grows).
package ledger
