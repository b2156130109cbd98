package keyring

import "strings"

// Special names in an allow-list.
const (
	allModels = "all-proxy-models"  // every model
	noModels  = "no-default-models" // nothing by itself
)

// maxWildcardName bounds a name that only a wildcard allows, in bytes.
const maxWildcardName = 512

// models is a compiled allow-list. Names compare byte by byte: case matters.
type models struct {
	all      bool
	exact    map[string]struct{}
	prefixes []string // "provider/" of "provider/*"
}

// newModels compiles an allow-list; an empty one allows every model. "*" allows
// every model, "p/*" every model below p; any other entry is a literal name.
func newModels(list []string) models {
	m := models{all: len(list) == 0, exact: map[string]struct{}{}}
	for _, name := range list {
		switch {
		case name == allModels || name == "*":
			m.all = true
		case name == noModels:
		case strings.HasSuffix(name, "/*"):
			m.prefixes = append(m.prefixes, strings.TrimSuffix(name, "*"))
		default:
			m.exact[name] = struct{}{}
		}
	}
	return m
}

func (m *models) allow(model string) bool {
	if model == "" {
		return false
	}
	if m.all {
		return true
	}
	if _, ok := m.exact[model]; ok {
		return true
	}
	for _, p := range m.prefixes {
		if rest, ok := strings.CutPrefix(model, p); ok && plain(rest) && len(model) <= maxWildcardName {
			return true
		}
	}
	return false
}

// plain says whether what a wildcard stands for means the same to every reader.
// Names become parts of paths and routes, so that "p/../q/big" or an encoded slash
// must not pass for a model of p.
func plain(rest string) bool {
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(rest, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`%\?#`, r)
	})
}
