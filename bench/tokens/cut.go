package main

import (
	"fmt"
	"sort"
	"unicode/utf8"
)

// chunk is how much text is counted at once on the way to a cut, in bytes.
const chunk = 4 << 10

// cuts finds prefixes of text with exactly so many tokens each, and gives their lengths
// in bytes. targets ascend.
//
// The text is counted in chunks that begin with a blank behind a letter or digit: no
// piece of an encoding spans such a place, so that the counts of the chunks add up.
func cuts(text []byte, targets []int, count func([]byte) int) ([]int, error) {
	var ends []int
	at, total := 0, 0
	for len(ends) < len(targets) {
		next := seam(text, at+chunk)
		if next < 0 {
			return nil, fmt.Errorf("cannot cut %d tokens out of %d bytes: there are only about %d", targets[len(ends)], len(text), total)
		}
		n := count(text[at:next])
		if want := targets[len(ends)] - total; n >= want {
			length, err := prefix(text[at:next], want, count)
			if err != nil {
				return nil, err
			}
			ends = append(ends, at+length)
			continue // the next target may be in the same chunk
		}
		at, total = next, total+n
	}
	return ends, nil
}

// seam is the first place from at on where text may be cut without changing counts; -1:
// there is none.
func seam(text []byte, at int) int {
	for i := max(at, 1); i < len(text); i++ {
		if blank(text[i]) && alphanumeric(text[i-1]) {
			return i
		}
	}
	return -1
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' }

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// prefix is the length of a prefix of text with exactly want tokens. Counts of prefixes
// nearly ascend: the search finds a place close by, and the rest is trying.
func prefix(text []byte, want int, count func([]byte) int) (int, error) {
	guess := sort.Search(len(text), func(n int) bool { return count(text[:whole(text, n)]) >= want })
	for n := max(0, guess-8); n <= len(text); n++ {
		if whole(text, n) == n && count(text[:n]) == want {
			return n, nil
		}
	}
	return 0, fmt.Errorf("cannot cut %d tokens out of a chunk of %d bytes: no prefix has so many", want, len(text))
}

// whole is n, or what is before the character that n would cut.
func whole(text []byte, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
