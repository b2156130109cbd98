package tokenstest

// A pattern is a regular expression that is matched as a backtracking engine does it:
// alternatives from the left, repetitions as long as possible first. An expression is
// a function that calls next with each end it can reach from i, the preferred one
// first, until next is content.
type expression func(text []rune, i int, next func(end int) bool) bool

// pattern is the list of alternatives of a whole expression.
type pattern []expression

// match returns the end of the match that begins at i. Every pattern here matches at
// least one character wherever it is tried.
func (p pattern) match(text []rune, i int) int {
	end := i
	found := alternatives(p...)(text, i, func(e int) bool { end = e; return true })
	if !found || end == i {
		panic("a pattern does not match: " + string(text[i:]))
	}
	return end
}

// alternatives is a|b|c.
func alternatives(of ...expression) expression {
	return func(text []rune, i int, next func(int) bool) bool {
		for _, e := range of {
			if e(text, i, next) {
				return true
			}
		}
		return false
	}
}

// sequence is abc.
func sequence(of ...expression) expression {
	if len(of) == 1 {
		return of[0]
	}
	first, rest := of[0], sequence(of[1:]...)
	return func(text []rune, i int, next func(int) bool) bool {
		return first(text, i, func(end int) bool { return rest(text, end, next) })
	}
}

// optional is (?:a)?.
func optional(e expression) expression {
	return func(text []rune, i int, next func(int) bool) bool {
		return e(text, i, next) || next(i)
	}
}

const unlimited = int(^uint(0) >> 1)

// repeat is [class]{least,most}.
func repeat(c class, least, most int) expression {
	return func(text []rune, i int, next func(int) bool) bool {
		end := i
		for end < len(text) && end-i < most && c(text[end]) {
			end++
		}
		for ; end >= i+least; end-- {
			if next(end) {
				return true
			}
		}
		return false
	}
}

func oneOrNone(c class) expression   { return repeat(c, 0, 1) }
func anyNumber(c class) expression   { return repeat(c, 0, unlimited) }
func oneOrMore(c class) expression   { return repeat(c, 1, unlimited) }
func upToThree(c class) expression   { return repeat(c, 1, 3) }
func literal(s string) expression    { return letters(s, is) }
func ignoreCase(s string) expression { return letters(s, foldsTo) }

// letters is the characters of s in a row, each compared with equal.
func letters(s string, equal func(rune) class) expression {
	var all []expression
	for _, r := range s {
		all = append(all, repeat(equal(r), 1, 1))
	}
	return sequence(all...)
}

// notFollowedBy is (?![class]).
func notFollowedBy(c class) expression {
	return func(text []rune, i int, next func(int) bool) bool {
		return (i == len(text) || !c(text[i])) && next(i)
	}
}
