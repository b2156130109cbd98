package store

import (
	"slices"
	"strings"
)

// Special names in an allow-list of models.
const (
	teamModels  = "all-team-models"
	everyModel  = "all-proxy-models"
	noModel     = "no-default-models"
	everySuffix = "/*"
)

// CommonModels is the allow-list of the models that both lists allow. Empty allows
// every model, so that nothing in common is "no-default-models". "p/*" is every model
// below p; other names are literal.
func CommonModels(a, b []string) []string {
	if allowsAll(a) {
		return b
	}
	if allowsAll(b) {
		return a
	}
	var common []string
	for _, x := range a {
		for _, y := range b {
			if m := commonModel(x, y); m != "" && !slices.Contains(common, m) {
				common = append(common, m)
			}
		}
	}
	if len(common) == 0 {
		return []string{noModel}
	}
	return common
}

// allowsAll says whether a list allows every model.
func allowsAll(list []string) bool {
	return len(list) == 0 || slices.Contains(list, everyModel) || slices.Contains(list, "*")
}

// commonModel is what two entries have in common; "" for nothing.
func commonModel(x, y string) string {
	switch {
	case x == noModel || y == noModel:
		return ""
	case x == y || below(x, y):
		return x
	case below(y, x):
		return y
	}
	return ""
}

// below says whether name, or what it stands for, lies below the wildcard. A path
// that climbs out of it again does not.
func below(name, wildcard string) bool {
	prefix, ok := strings.CutSuffix(wildcard, everySuffix)
	if !ok {
		return false
	}
	rest, ok := strings.CutPrefix(name, prefix+"/")
	if !ok || rest == "" {
		return false
	}
	if strings.ContainsFunc(rest, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`%\?#`, r) }) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(rest, "/"), func(s string) bool { return s == "" || s == "." || s == ".." })
}

// ownModels is a key's allow-list with what it says of its team's.
func ownModels(key, team []string) []string {
	if !slices.Contains(key, teamModels) {
		return key
	}
	if allowsAll(team) {
		return nil
	}
	return slices.Concat(slices.DeleteFunc(slices.Clone(key), func(m string) bool { return m == teamModels }), team)
}
