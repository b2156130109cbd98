package config

import (
	"encoding/json"
	"math"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/penstock-gateway/penstock/internal/money"
)

// readParams reads litellm_params; model was read before.
func (e *entry) readParams(n *node, path string) {
	if n.kind != kindMapping {
		return // reported before
	}
	d := e.d
	base := func(n *node, path string) {
		if s, ok := e.text(n, path); ok {
			d.APIBase = e.checkBase(s, n, path)
		}
	}
	act := handlers{
		"model":               func(*node, string) {},
		"custom_llm_provider": func(*node, string) {},
		"api_base":            base,
		"base_url":            base,
		"api_key":             func(n *node, path string) { d.APIKey = e.secret(n, path) },
		"organization":        func(n *node, path string) { e.organization = e.name(n, path) },
		"extra_headers":       e.readHeaders,
		"timeout":             func(n *node, path string) { e.timeout = e.seconds(n, path) },
		"stream_timeout":      func(n *node, path string) { e.streamTimeout = e.seconds(n, path) },
		"max_retries":         func(n *node, path string) { e.retries = e.count(n, path) },
		"num_retries":         func(n *node, path string) { e.retries = e.count(n, path) },
		"mock_response":       e.readMock,
		"weight":              e.readWeight(0),
		"rpm":                 e.readRate(1),
		"tpm":                 e.readRate(2),
	}
	e.addPrices(act, n, &d.source.fields)
	e.section(n, path, act, litellmParams())
}

// addPrices makes a handler of each field of a mapping that is a price.
func (e *entry) addPrices(act handlers, n *node, to *money.Parts) {
	for _, f := range n.fields {
		price, ok := money.LookupPriceField(f.key)
		if !ok {
			continue
		}
		act[f.key] = func(n *node, path string) {
			if pico, ok := e.price(n, path); ok {
				price.Set(to, pico)
			}
		}
	}
}

// readMock reads a canned answer: a text, or anything else as JSON.
func (e *entry) readMock(n *node, path string) {
	if n.kind != kindScalar {
		text := string(toJSON(n))
		e.d.MockResponse = &text
		return
	}
	if s, ok := e.text(n, path); ok {
		e.d.MockResponse = &s
	}
}

// readWeight reads one of the three fields that simple-shuffle weighs by.
func (e *entry) readWeight(i int) func(*node, string) {
	return func(n *node, path string) {
		const most = 1e12 // so that sums over a group stay far from int64's end
		v, ok := e.decimal(n, path, 3)
		if ok && v > most {
			e.fail(n.at, path, "%s is too large", n.shown())
		}
		e.weight[i] = &v
	}
}

// readRate reads a weight that looks like a limit.
func (e *entry) readRate(i int) func(*node, string) {
	read := e.readWeight(i)
	return func(n *node, path string) {
		read(n, path)
		e.weighed[generic(path)] = true
	}
}

// setWeights gives each deployment its weight in its group: by weight where any of the
// group has one, else by rpm, else by tpm, else all the same. One without the field that
// decides gets nothing, as in LiteLLM.
func setWeights(entries []*entry) {
	field := map[string]int{}
	for _, e := range entries {
		for i := range e.weight {
			if first, set := field[e.d.ModelName]; e.weight[i] != nil && (!set || i < first) {
				field[e.d.ModelName] = i
			}
		}
	}
	for _, e := range entries {
		i, weighted := field[e.d.ModelName]
		switch {
		case !weighted:
			e.d.Weight = 1
		case e.weight[i] != nil:
			e.d.Weight = *e.weight[i]
		}
	}
}

// hopHeaders belong to the connection, or are written by the gateway itself.
const hopHeaders = " host content-length content-type transfer-encoding connection keep-alive te trailer upgrade accept-encoding expect proxy-connection "

func (e *entry) readHeaders(n *node, path string) {
	if !e.is(n, path, kindMapping) {
		return
	}
	seen := map[string]bool{}
	for _, f := range n.fields {
		at := child(path, f.key)
		lower := strings.ToLower(f.key)
		switch {
		case !httpguts.ValidHeaderFieldName(f.key):
			e.fail(f.at, at, "it is not the name of a header")
		case strings.Contains(hopHeaders, " "+lower+" "):
			e.fail(f.at, at, "the gateway writes this header itself")
		case seen[lower]:
			e.fail(f.at, at, "the header stands twice")
		case f.value.kind != kindNull:
			seen[lower] = true
			e.authentication = e.authentication || lower == "authorization"
			e.d.Headers = append(e.d.Headers, Header{Name: f.key, Value: e.secret(f.value, at)})
		}
	}
}

// readInfo reads model_info: what we know of it, and all of it for /v1/model/info.
func (e *entry) readInfo(n *node, path string) {
	if !e.is(n, path, kindMapping) {
		return
	}
	src := &e.d.source
	tokens := func(to *int64) func(*node, string) {
		return func(n *node, path string) { *to = e.integer(n, path, 1, math.MaxInt32) }
	}
	act := handlers{
		"id":                func(n *node, path string) { e.d.ID = e.name(n, path) },
		"mode":              func(n *node, path string) { src.limits.Mode = e.name(n, path) },
		"base_model":        func(n *node, path string) { src.baseModel = e.name(n, path) },
		"max_input_tokens":  tokens(&src.limits.MaxInput),
		"max_output_tokens": tokens(&src.limits.MaxOutput),
		"max_tokens":        tokens(&e.infoMax),
	}
	e.addPrices(act, n, &e.info)
	ours := litellmInfo()
	var own []string // the operator's, of any name but a mistyped one of ours
	for _, f := range n.fields {
		if act[f.key] == nil && !ours[f.key] && likely(f.key, act, ours) == "" {
			own = append(own, f.key)
		}
	}
	for _, name := range own {
		act[name] = func(*node, string) {}
	}
	e.section(n, path, act, ours)
	e.d.Info = toJSON(n)
}

// toJSON writes a value as JSON, plain scalars by what they look like.
func toJSON(n *node) json.RawMessage {
	data, err := json.Marshal(plain(n))
	if err != nil {
		return json.RawMessage("null") // cannot be: plain makes only maps, lists and scalars
	}
	return data
}

func plain(n *node) any {
	switch n.kind {
	case kindMapping:
		m := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			m[f.key] = plain(f.value)
		}
		return m
	case kindList:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = plain(item)
		}
		return list
	case kindScalar:
		return plainScalar(n)
	}
	return nil
}

func plainScalar(n *node) any {
	lower := strings.ToLower(n.text)
	switch {
	case n.quoted:
	case lower == "true" || lower == "false":
		return lower == "true"
	case n.text != "" && strings.Contains("-0123456789", n.text[:1]) && json.Valid([]byte(n.text)):
		return json.Number(n.text)
	}
	return n.text
}
