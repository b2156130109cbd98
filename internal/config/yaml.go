package config

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file. Aliases multiply what a small file means, so the values that they
// stand for are counted each time.
const (
	maxFile   = 4 << 20
	maxValues = 200_000
	maxDepth  = 64
)

// parseYAML reads one document into nodes. The error is a *Problem.
func parseYAML(data []byte) (*node, error) {
	if len(data) > maxFile {
		return nil, &Problem{Text: fmt.Sprintf("the file is larger than %d bytes", maxFile)}
	}
	if !utf8.Valid(data) {
		return nil, &Problem{Text: "the file is not UTF-8"}
	}
	file, err := parseAST(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, syntaxProblem(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || nothing(doc.Body) {
			continue
		}
		if body != nil {
			return nil, &Problem{position: place(doc.Body), Text: "a second YAML document"}
		}
		body = doc.Body
	}
	if body == nil {
		return nil, &Problem{Text: "the file is empty"}
	}
	t := translator{anchors: map[string]ast.Node{}}
	n := t.translate(body, 0)
	if t.problem != nil {
		return nil, t.problem
	}
	return n, nil
}

// parseAST keeps a panic of the parser from ending a process that runs well on its
// present configuration.
func parseAST(data []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not YAML: %v", r)
		}
	}()
	return parser.ParseBytes(data, 0)
}

// syntaxProblem drops the excerpt of the source that the parser's own text has: it may
// show a secret.
func syntaxProblem(err error) *Problem {
	var at yaml.Error
	if !errors.As(err, &at) {
		return &Problem{Text: err.Error()}
	}
	p := &Problem{Text: at.GetMessage()}
	if t := at.GetToken(); t != nil && t.Position != nil {
		p.position = position{t.Position.Line, t.Position.Column}
	}
	return p
}

// nothing says whether a document's body has no value: comments, or a %YAML directive.
func nothing(n ast.Node) bool {
	switch n.(type) {
	case *ast.CommentGroupNode, *ast.DirectiveNode:
		return true
	}
	return false
}

func place(n ast.Node) position {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		n = m.Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return position{t.Position.Line, t.Position.Column}
	}
	return position{}
}

// translator turns the parser's tree into nodes and resolves anchors.
type translator struct {
	anchors map[string]ast.Node
	values  int
	problem *Problem
}

func (t *translator) fail(n ast.Node, text string) *node {
	if t.problem == nil {
		t.problem = &Problem{position: place(n), Text: text}
	}
	return &node{at: place(n)}
}

func (t *translator) translate(n ast.Node, depth int) *node {
	if t.problem != nil || n == nil {
		return &node{}
	}
	t.values++
	if t.values > maxValues {
		return t.fail(n, fmt.Sprintf("more than %d values", maxValues))
	}
	if depth > maxDepth {
		return t.fail(n, fmt.Sprintf("nested deeper than %d levels", maxDepth))
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		return t.mapping(v, v.Values, depth)
	case *ast.MappingValueNode:
		return t.mapping(v, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		list := &node{kind: kindList, at: place(v)}
		for _, item := range v.Values {
			list.items = append(list.items, t.translate(item, depth+1))
		}
		return list
	case *ast.AnchorNode:
		t.anchors[v.Name.String()] = v.Value
		return t.translate(v.Value, depth+1)
	case *ast.AliasNode:
		return t.alias(v, depth)
	case *ast.TagNode:
		return t.tag(v, depth)
	}
	return t.scalar(n)
}

func (t *translator) alias(v *ast.AliasNode, depth int) *node {
	target, ok := t.anchors[v.Value.String()]
	if !ok {
		return t.fail(v, fmt.Sprintf("the alias *%s has no anchor before it", v.Value))
	}
	n := t.translate(target, depth+1)
	n.at = place(v)
	return n
}

// tag lets the plain types through; a tag that builds something else has no meaning here.
func (t *translator) tag(v *ast.TagNode, depth int) *node {
	tag := v.GetToken().Value
	switch tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!":
		n := t.translate(v.Value, depth+1)
		n.quoted = n.quoted || tag == "!!str"
		return n
	}
	return t.fail(v, fmt.Sprintf("the tag %s is not supported", tag))
}

func (t *translator) scalar(n ast.Node) *node {
	s := &node{kind: kindScalar, at: place(n), text: n.GetToken().Value}
	switch v := n.(type) {
	case *ast.NullNode:
		s.kind = kindNull
	case *ast.LiteralNode:
		s.text, s.quoted = v.Value.Value, true
	case *ast.StringNode:
		s.text = v.Value
		s.quoted = v.Token.Type == token.DoubleQuoteType || v.Token.Type == token.SingleQuoteType
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
	default:
		return t.fail(n, fmt.Sprintf("%s is not supported here", n.Type()))
	}
	return s
}

// mapping reads fields in their order. Merged fields ("<<") stand behind the mapping's
// own and lose against them, as YAML has it.
func (t *translator) mapping(n ast.Node, values []*ast.MappingValueNode, depth int) *node {
	m := &node{kind: kindMapping, at: place(n)}
	var merged []field
	seen := map[string]bool{}
	for _, v := range values {
		value := t.translate(v.Value, depth+1)
		if v.Key.IsMergeKey() {
			merged = append(merged, t.merge(v, value)...)
			continue
		}
		key, ok := t.key(v.Key)
		if !ok {
			continue
		}
		if seen[key] {
			t.fail(v, fmt.Sprintf("the key %q stands twice", key))
			continue
		}
		seen[key] = true
		m.fields = append(m.fields, field{key: key, at: place(v.Key), value: value})
	}
	for _, f := range merged {
		if !seen[f.key] {
			seen[f.key] = true
			m.fields = append(m.fields, f)
		}
	}
	return m
}

func (t *translator) key(n ast.MapKeyNode) (string, bool) {
	var inner ast.Node = n
	if explicit, ok := n.(*ast.MappingKeyNode); ok {
		inner = explicit.Value
	}
	switch inner.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.LiteralNode,
		*ast.InfinityNode, *ast.NanNode:
		return t.scalar(inner).keyText(inner), true
	}
	t.fail(n, "a key must be a single value")
	return "", false
}

// keyText is the text of a key; "null" is a name there.
func (n *node) keyText(of ast.Node) string {
	if n.kind == kindNull {
		return of.GetToken().Value
	}
	return n.text
}

func (t *translator) merge(v *ast.MappingValueNode, value *node) []field {
	switch value.kind {
	case kindMapping:
		return value.fields
	case kindList:
		var all []field
		for _, item := range value.items {
			all = append(all, item.fields...)
		}
		return all
	}
	t.fail(v, "only a mapping can be merged with <<")
	return nil
}
