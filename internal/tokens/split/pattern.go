package split

import (
	"bytes"

	"github.com/penstock-gateway/penstock/internal/tokens/class"
)

// o200k is
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func o200k(text []byte, p int) int {
	c, n := at(text, p)
	if c == class.Number {
		return digits(text, p)
	}
	if end := o200kWord(text, p, c, n); end > p {
		return end + Contraction(text[end:])
	}
	return notWord(text, p, "\r\n/")
}

// o200kWord is the first two rules without their contraction, at a character of
// class c and length n. It returns p where neither holds.
func o200kWord(text []byte, p int, c class.Class, n int) int {
	if letters.has(c) {
		if end := endsLower(text, p); end > p {
			return end
		}
		return startsUpper(text, p)
	}
	if !prefix.has(c) {
		return p
	}
	// The prefix is taken where a word can follow; a mark is a prefix, and part of
	// a word as well.
	q := p + n
	if end := endsLower(text, q); end > q {
		return end
	}
	if c == class.Mark {
		if end := endsLower(text, p); end > p {
			return end
		}
	}
	if end := startsUpper(text, q); end > q {
		return end
	}
	return p
}

// endsLower is [upperish]*[lowerish]+. Both sets hold uncased letters and marks:
// where the run of the first ends before no lower case, the pattern gives back
// what it took up to the last of these. It returns p where there is no match.
func endsLower(text []byte, p int) int {
	end, shared := p, p
	for end < len(text) {
		c, n := at(text, end)
		if !upperish.has(c) {
			if c == class.Lower {
				return run(text, end, lowerish)
			}
			break
		}
		end += n
		if c != class.Upper {
			shared = end
		}
	}
	return shared
}

// startsUpper is [upperish]+[lowerish]*. It returns p where there is no match.
func startsUpper(text []byte, p int) int {
	end := run(text, p, upperish)
	if end == p {
		return p
	}
	return run(text, end, lowerish)
}

// cl100k is
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func cl100k(text []byte, p int) int {
	if n := Contraction(text[p:]); n > 0 {
		return p + n
	}
	c, n := at(text, p)
	switch {
	case letters.has(c):
		return run(text, p, letters)
	case c == class.Number:
		return digits(text, p)
	case prefix.has(c):
		if end := run(text, p+n, letters); end > p+n {
			return end
		}
	}
	return notWord(text, p, "\r\n")
}

// notWord is | ?[^\s\p{L}\p{N}]+[tail]*|\s*[\r\n]+|\s+(?!\S)|\s+ .
func notWord(text []byte, p int, tail string) int {
	q := p
	if text[p] == ' ' {
		q++
	}
	end := run(text, q, punct)
	if end == q {
		return whitespace(text, p)
	}
	for end < len(text) && bytes.IndexByte([]byte(tail), text[end]) >= 0 {
		end++
	}
	return end
}

// r50k is
//
//	'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func r50k(text []byte, p int) int {
	if n := lowerContraction(text[p:]); n > 0 {
		return p + n
	}
	q := p
	if text[p] == ' ' {
		q++
	}
	if q < len(text) {
		c, _ := at(text, q)
		for _, s := range [...]set{letters, number, punct} {
			if s.has(c) {
				return run(text, q, s)
			}
		}
	}
	return butLast(text, p, run(text, p, white))
}

// lowerContraction is Contraction for those in lower case.
func lowerContraction(text []byte) int {
	n := Contraction(text)
	for _, b := range text[:n] {
		if b < 'a' && b != '\'' || b > 'z' {
			return 0
		}
	}
	return n
}
