// Package class sorts characters into the few classes that the encodings'
// splitting patterns tell apart. Its tables are those of one Unicode version,
// pinned in the source: were Go's own tables read, a newer Go would change
// counts.
package class

// Class is what a pattern sees of a character.
type Class uint8

// Other, the zero value, is all that is not one of those below it: punctuation,
// symbols, control characters, unassigned code points.
const (
	Other   Class = iota
	Upper         // \p{Lu} \p{Lt}
	Lower         // \p{Ll}
	Uncased       // \p{Lm} \p{Lo}
	Mark          // \p{M}
	Number        // \p{N}
	Space         // \s but for the two below
	Newline       // CR and LF
)

const (
	blockBits = 7
	blockSize = 1 << blockBits
)

// Of returns the class of a character, which must be one.
func Of(r rune) Class {
	at := int(r) >> blockBits * 2
	block := int(index[at]) | int(index[at+1])<<8
	return Class(blocks[block<<blockBits|int(r)&(blockSize-1)])
}
