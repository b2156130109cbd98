package money

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	nanoDigits = 9  // an amount is kept in 1e-9 USD
	picoDigits = 12 // a price is kept in 1e-12 USD per token

	// maxDecimal bounds what is read as one number, so that hostile input costs
	// nothing. A float64 written out in full fits.
	maxDecimal = 400
)

// maxPico is the dearest price per token that is believed: 0.1 USD. A price per
// million tokens that was entered per token is above it and would block every
// budget with one call.
const maxPico = 100_000_000_000

var (
	errNotDecimal = errors.New("not a decimal number")
	errNegative   = errors.New("negative")
	errTooLarge   = errors.New("too large")
	errTooSmall   = errors.New("not zero, but below half of the smallest unit")
)

// ParseNano reads a decimal amount in dollars ("0.03", "1e-9", "5") as nano-dollars,
// exactly: no float is involved. Digits beyond the ninth decimal are rounded half
// up, because clients send floats such as 0.30000000000000004; an amount that is not
// zero but would round to zero is refused, as are signs, NaN, infinities, thousands
// separators, underscores, hexadecimal and what does not fit in int64.
func ParseNano(decimal string) (int64, error) {
	n, err := ParseDecimal(decimal, nanoDigits)
	if err != nil {
		return 0, fmt.Errorf("cannot read %s as an amount in dollars: %w", quote(decimal), err)
	}
	return n, nil
}

// ParsePico reads a decimal price in dollars per token ("2.5e-06") as pico-dollars
// per token, by the rules of ParseNano with twelve decimals. A price above 0.1 USD
// per token is refused: it is a price per million tokens in the wrong field.
func ParsePico(decimal string) (int64, error) {
	n, err := ParseDecimal(decimal, picoDigits)
	if err != nil {
		return 0, fmt.Errorf("cannot read %s as a price in dollars per token: %w", quote(decimal), err)
	}
	if n > maxPico {
		return 0, fmt.Errorf("cannot believe %s as a price in dollars per token: above 0.1 (is it a price per million tokens?)", quote(decimal))
	}
	return n, nil
}

// FormatNano writes nano-dollars as the shortest exact decimal in dollars, which is
// a valid JSON number: 30_000_000 is "0.03".
func FormatNano(n int64) string { return formatDecimal(n, nanoDigits) }

// FormatPico writes pico-dollars as the shortest exact decimal in dollars.
func FormatPico(n int64) string { return formatDecimal(n, picoDigits) }

func formatDecimal(n int64, decimals int) string {
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	digits := strconv.FormatUint(u, 10)
	if pad := decimals + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	cut := len(digits) - decimals
	frac := strings.TrimRight(digits[cut:], "0")
	if frac == "" {
		return sign + digits[:cut]
	}
	return sign + digits[:cut] + "." + frac
}

// ParseDecimal reads s × 10^decimals by the rules of ParseNano. Its errors say what is
// wrong, not with what.
func ParseDecimal(s string, decimals int) (int64, error) {
	if len(s) > maxDecimal {
		return 0, errNotDecimal
	}
	if strings.HasPrefix(s, "-") {
		return 0, errNegative
	}
	digits, point, err := splitDecimal(s)
	if err != nil {
		return 0, err
	}
	if digits == "" {
		return 0, nil
	}
	// The value is 0.digits × 10^point; keep is how many digits stand before the
	// decimal point once it is scaled.
	keep := point + decimals
	switch {
	case keep > 19:
		return 0, errTooLarge
	case keep < 0:
		return 0, errTooSmall
	}
	n, err := scaled(digits, keep)
	if err == nil && n == 0 {
		return 0, errTooSmall
	}
	return n, err
}

// scaled is the number made of the first keep digits (zeros follow where there are
// fewer), rounded half up by the next one.
func scaled(digits string, keep int) (int64, error) {
	whole := digits
	if keep < len(digits) {
		whole = digits[:keep]
	} else {
		whole += strings.Repeat("0", keep-len(digits))
	}
	var n uint64
	if whole != "" {
		var err error
		if n, err = strconv.ParseUint(whole, 10, 64); err != nil {
			return 0, errTooLarge
		}
	}
	if keep < len(digits) && digits[keep] >= '5' {
		n++ // cannot wrap: whole has at most 19 digits
	}
	if n > math.MaxInt64 {
		return 0, errTooLarge
	}
	return int64(n), nil
}

// splitDecimal reads digits[.digits][e[sign]digits] into its significant digits and
// the place of the decimal point: the value is 0.digits × 10^point. Zero has no
// digits.
func splitDecimal(s string) (digits string, point int, err error) {
	mantissa, exp, err := cutExponent(s)
	if err != nil {
		return "", 0, err
	}
	whole, frac, hasPoint := strings.Cut(mantissa, ".")
	if whole+frac == "" || hasPoint && frac == "" || !allDigits(whole) || !allDigits(frac) {
		return "", 0, errNotDecimal
	}
	all := whole + frac
	digits = strings.TrimLeft(all, "0")
	point = len(whole) - (len(all) - len(digits)) + exp
	return strings.TrimRight(digits, "0"), point, nil
}

// cutExponent splits "1.5e-3" into "1.5" and -3. Exponents beyond any use are
// brought to ±100,000, which the caller finds too large or too small.
func cutExponent(s string) (mantissa string, exp int, err error) {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return s, 0, nil
	}
	text := s[i+1:]
	sign := 1
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		text, sign = rest, -1
	} else {
		text = strings.TrimPrefix(text, "+")
	}
	if text == "" || !allDigits(text) {
		return "", 0, errNotDecimal
	}
	exp, err = strconv.Atoi(text)
	if err != nil || exp > 100_000 {
		exp = 100_000
	}
	return s[:i], sign * exp, nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// quote shows input in an error without letting it flood the log.
func quote(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
