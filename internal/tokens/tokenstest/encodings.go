package tokenstest

import (
	"unicode"

	u "github.com/penstock-gateway/penstock/internal/tokens/unicode16"
)

// class is a set of characters, as in [...].
type class func(rune) bool

func anyOf(of ...class) class {
	return func(r rune) bool {
		for _, c := range of {
			if c(r) {
				return true
			}
		}
		return false
	}
}

func not(c class) class { return func(r rune) bool { return !c(r) } }

func is(want rune) class { return func(r rune) bool { return r == want } }

// foldsTo is the case-insensitive is: by Unicode's simple case folding, in which
// U+017F (long s) is an s.
func foldsTo(want rune) class {
	return func(r rune) bool {
		for f := want; ; {
			if f == r {
				return true
			}
			if f = unicode.SimpleFold(f); f == want {
				return false
			}
		}
	}
}

// The sets of characters that the published patterns name.

// letter is \p{L}.
func letter() class { return anyOf(u.Upper, u.Lower, u.Title, u.Modifier, u.OtherLetter) }

// space is \s.
func space() class { return u.Space }

// newline is [\r\n].
func newline() class { return anyOf(is('\r'), is('\n')) }

// upper is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}].
func upper() class { return anyOf(u.Upper, u.Title, u.Modifier, u.OtherLetter, u.Mark) }

// lower is [\p{Ll}\p{Lm}\p{Lo}\p{M}].
func lower() class { return anyOf(u.Lower, u.Modifier, u.OtherLetter, u.Mark) }

// contraction is 's|'t|'re|'ve|'m|'ll|'d.
func contraction(of func(string) expression) expression {
	return alternatives(of("'s"), of("'t"), of("'re"), of("'ve"), of("'m"), of("'ll"), of("'d"))
}

func o200k() pattern {
	prefix := not(anyOf(newline(), letter(), class(u.Number)))
	return pattern{
		// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
		sequence(oneOrNone(prefix), anyNumber(upper()), oneOrMore(lower()), optional(contraction(ignoreCase))),
		// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
		sequence(oneOrNone(prefix), oneOrMore(upper()), anyNumber(lower()), optional(contraction(ignoreCase))),
		// \p{N}{1,3}
		upToThree(class(u.Number)),
		//  ?[^\s\p{L}\p{N}]+[\r\n/]*
		sequence(oneOrNone(is(' ')), oneOrMore(not(anyOf(space(), letter(), class(u.Number)))), anyNumber(anyOf(newline(), is('/')))),
		// \s*[\r\n]+
		sequence(anyNumber(space()), oneOrMore(newline())),
		// \s+(?!\S)
		sequence(oneOrMore(space()), notFollowedBy(not(space()))),
		// \s+
		oneOrMore(space()),
	}
}

func cl100k() pattern {
	return pattern{
		// (?i:'s|'t|'re|'ve|'m|'ll|'d)
		contraction(ignoreCase),
		// [^\r\n\p{L}\p{N}]?\p{L}+
		sequence(oneOrNone(not(anyOf(newline(), letter(), class(u.Number)))), oneOrMore(letter())),
		// \p{N}{1,3}
		upToThree(class(u.Number)),
		//  ?[^\s\p{L}\p{N}]+[\r\n]*
		sequence(oneOrNone(is(' ')), oneOrMore(not(anyOf(space(), letter(), class(u.Number)))), anyNumber(newline())),
		// \s*[\r\n]+
		sequence(anyNumber(space()), oneOrMore(newline())),
		// \s+(?!\S)
		sequence(oneOrMore(space()), notFollowedBy(not(space()))),
		// \s+
		oneOrMore(space()),
	}
}

// r50k is also p50k's.
func r50k() pattern {
	return pattern{
		// 's|'t|'re|'ve|'m|'ll|'d
		contraction(literal),
		//  ?\p{L}+
		sequence(oneOrNone(is(' ')), oneOrMore(letter())),
		//  ?\p{N}+
		sequence(oneOrNone(is(' ')), oneOrMore(class(u.Number))),
		//  ?[^\s\p{L}\p{N}]+
		sequence(oneOrNone(is(' ')), oneOrMore(not(anyOf(space(), letter(), class(u.Number))))),
		// \s+(?!\S)
		sequence(oneOrMore(space()), notFollowedBy(not(space()))),
		// \s+
		oneOrMore(space()),
	}
}
