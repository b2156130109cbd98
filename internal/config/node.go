package config

import "strconv"

type kind uint8

const (
	kindNull kind = iota
	kindScalar
	kindList
	kindMapping
)

// String names a kind the way a person who writes YAML would.
func (k kind) String() string {
	return [...]string{"nothing", "a single value", "a list", "a mapping"}[k]
}

// position is a place in the file, from 1.
type position struct{ line, column int }

// node is a YAML value with its place. A scalar keeps its text as it was written: what
// it means is decided by the key it stands under, so that a model named "no", "1e3" or
// 0123 keeps its name and a price that is a boolean is refused.
type node struct {
	kind   kind
	at     position
	text   string
	quoted bool
	items  []*node
	fields []field
}

type field struct {
	key   string
	at    position
	value *node
}

// get returns the value of a key, nil where it is missing or null.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.key == key && f.value.kind != kindNull {
			return f.value
		}
	}
	return nil
}

// child is the dotted path of a key.
func child(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
