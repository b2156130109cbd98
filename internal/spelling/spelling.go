// Package spelling finds the name that a mistyped one was meant for.
package spelling

// maxDistance is how many letters may be wrong.
const maxDistance = 2

// Nearest returns the name that differs from typed in one or two letters, the nearest
// of several and the first in the alphabet of equally near ones; "" where there is
// none. Less than half of a name may be wrong, so that short names do not all look alike.
func Nearest(typed string, names []string) string {
	best, least := "", maxDistance+1
	for _, name := range names {
		if max(len(typed), len(name))-min(len(typed), len(name)) > maxDistance {
			continue // a name of a megabyte costs nothing
		}
		d := Distance(typed, name)
		if 2*d >= min(len(typed), len(name)) || d == 0 {
			continue
		}
		if d < least || d == least && name < best {
			best, least = name, d
		}
	}
	return best
}

// Distance counts the letters to insert, remove or replace to make a into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := before
			if a[i] != b[j] {
				d = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
