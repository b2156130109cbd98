package tokens

import (
	"fmt"
	"strings"
)

// Encoding is a vocabulary with its way of splitting text.
type Encoding uint8

// The encodings of OpenAI's models, from the newest to the oldest.
const (
	O200kBase Encoding = iota
	CL100kBase
	P50kBase
	R50kBase

	encodings = iota
)

// String is the name that tiktoken uses.
func (e Encoding) String() string {
	switch e {
	case O200kBase:
		return "o200k_base"
	case CL100kBase:
		return "cl100k_base"
	case P50kBase:
		return "p50k_base"
	case R50kBase:
		return "r50k_base"
	}
	return fmt.Sprintf("encoding(%d)", uint8(e))
}

// EncodingNamed is the encoding that tiktoken calls by that name.
func EncodingNamed(name string) (Encoding, error) {
	var known []string
	for e := range Encoding(encodings) {
		if e.String() == name {
			return e, nil
		}
		known = append(known, e.String())
	}
	return 0, fmt.Errorf("cannot count in the encoding %q: the known ones are %s", name, strings.Join(known, ", "))
}

// rule gives an encoding to a model of that name or, unless whole is set, to
// every model whose name begins with it.
type rule struct {
	name     string
	encoding Encoding
	whole    bool
}

// rules are tried from the top: the longer of two names that begin alike comes
// first. gpt-4.5 and later 4.x are o200k, only gpt-4 itself is cl100k.
var rules = [...]rule{
	{name: "gpt-4o", encoding: O200kBase},
	{name: "gpt-4.", encoding: O200kBase},
	{name: "gpt-5", encoding: O200kBase},
	{name: "gpt-oss", encoding: O200kBase},
	{name: "chatgpt-4o", encoding: O200kBase},
	{name: "o1", encoding: O200kBase, whole: true},
	{name: "o1-", encoding: O200kBase},
	{name: "o3", encoding: O200kBase, whole: true},
	{name: "o3-", encoding: O200kBase},
	{name: "o4-", encoding: O200kBase},

	{name: "gpt-4", encoding: CL100kBase, whole: true},
	{name: "gpt-4-", encoding: CL100kBase},
	{name: "gpt-3.5", encoding: CL100kBase},
	{name: "gpt-35", encoding: CL100kBase},
	{name: "text-embedding-3", encoding: CL100kBase},
	{name: "text-embedding-ada-002", encoding: CL100kBase},
	{name: "davinci-002", encoding: CL100kBase, whole: true},
	{name: "babbage-002", encoding: CL100kBase, whole: true},

	{name: "text-davinci-003", encoding: P50kBase},
	{name: "text-davinci-002", encoding: P50kBase},
	{name: "text-davinci-edit", encoding: P50kBase},
	{name: "code-davinci", encoding: P50kBase},
	{name: "code-cushman", encoding: P50kBase},
	{name: "davinci-codex", encoding: P50kBase},
	{name: "cushman-codex", encoding: P50kBase},

	{name: "text-davinci-001", encoding: R50kBase},
	{name: "text-curie-001", encoding: R50kBase},
	{name: "text-babbage-001", encoding: R50kBase},
	{name: "text-ada-001", encoding: R50kBase},
	{name: "text-similarity-", encoding: R50kBase},
	{name: "text-search-", encoding: R50kBase},
	{name: "code-search-", encoding: R50kBase},
	{name: "davinci", encoding: R50kBase, whole: true},
	{name: "curie", encoding: R50kBase, whole: true},
	{name: "babbage", encoding: R50kBase, whole: true},
	{name: "ada", encoding: R50kBase, whole: true},
}

// ForModel returns the encoding of a model, with or without a provider
// ("openai/", "azure/", "text-completion-openai/") in front, also when it was
// fine-tuned ("ft:gpt-4o:…"). For any other model exact is false: o200k is then
// an estimate.
func ForModel(model string) (enc Encoding, exact bool) {
	for _, provider := range [...]string{"openai/", "azure/", "text-completion-openai/"} {
		if rest, ok := strings.CutPrefix(model, provider); ok {
			model = rest
			break
		}
	}
	if rest, ok := strings.CutPrefix(model, "ft:"); ok {
		model, _, _ = strings.Cut(rest, ":")
	}
	for _, r := range rules {
		if model == r.name || !r.whole && strings.HasPrefix(model, r.name) {
			return r.encoding, true
		}
	}
	return O200kBase, false
}
