package config

import (
	"net/url"
	"strings"
	"time"

	"github.com/penstock-gateway/penstock/internal/money"
)

// entry is an element of model_list while it is read.
type entry struct {
	*loader
	path string
	d    *Deployment

	info           money.Parts // model_info's prices; those of litellm_params win
	infoMax        int64       // model_info.max_tokens, the older max_output_tokens
	organization   string
	weight         [3]*int64 // weight, rpm, tpm: the first that a group has decides
	timeout        time.Duration
	streamTimeout  time.Duration
	retries        *int
	authentication bool // extra_headers carry their own credential
}

func (l *loader) models(root *node) {
	list := root.get("model_list")
	if list == nil {
		l.missing(root, "", "model_list", "it is missing or empty, there is nothing to serve")
		return
	}
	if !l.is(list, "model_list", kindList) {
		return
	}
	var entries []*entry
	for i, item := range list.items {
		if e := l.entry(item, element("model_list", i)); e != nil {
			entries = append(entries, e)
			l.config.Deployments = append(l.config.Deployments, e.d)
		}
	}
	if len(entries) == 0 && len(l.problems) == 0 {
		l.fail(list.at, "model_list", "it has no model that can be served; left out: %s", strings.Join(l.unserved, ", "))
	}
	setWeights(entries)
}

// entry reads one element. It is nil where the element is left out or wrong, which was
// noted.
func (l *loader) entry(n *node, path string) *entry {
	if !l.is(n, path, kindMapping) {
		return nil
	}
	e := &entry{loader: l, path: path, d: &Deployment{}}
	before := len(l.problems)
	e.required(n)
	if len(l.problems) == before && !e.served(n.get("litellm_params")) {
		return nil
	}
	// Read on after a problem, to find all of them in one go.
	l.section(n, path, handlers{
		"model_name":     func(*node, string) {},
		"litellm_params": e.readParams,
		"model_info":     e.readInfo,
	}, litellmEntry())
	if len(l.problems) > before {
		return nil
	}
	e.complete(n)
	return e
}

// required reads the names, without which nothing else makes sense.
func (e *entry) required(n *node) {
	name, params := n.get("model_name"), n.get("litellm_params")
	if name == nil {
		e.missing(n, e.path, "model_name", "it is missing")
	} else {
		e.d.ModelName = e.name(name, child(e.path, "model_name"))
	}
	if params == nil {
		e.missing(n, e.path, "litellm_params", "it is missing")
		return
	}
	path := child(e.path, "litellm_params")
	if !e.is(params, path, kindMapping) {
		return
	}
	model := params.get("model")
	if model == nil {
		e.missing(params, path, "model", "it is missing")
		return
	}
	path = child(path, "model")
	e.resolve(params, model, path)
	e.checkWildcards(model, path)
}

// resolve finds the provider of litellm_params.model.
func (e *entry) resolve(params, model *node, path string) {
	text := e.name(model, path)
	if text == "" {
		return
	}
	if custom := params.get("custom_llm_provider"); custom != nil {
		e.d.Provider = e.name(custom, child(child(e.path, "litellm_params"), "custom_llm_provider"))
		e.d.Model = strings.TrimPrefix(text, e.d.Provider+"/")
		return
	}
	var ok bool
	if e.d.Provider, e.d.Model, ok = splitModel(text); !ok {
		e.fail(model.at, path, "cannot tell the provider of %s: write provider/name, or openai/name with an api_base for a server that speaks OpenAI's format", model.shown())
	}
}

func (e *entry) checkWildcards(model *node, path string) {
	name, upstream := e.d.ModelName, e.d.Model
	for _, s := range []string{name, upstream} {
		if i := strings.IndexByte(s, '*'); i >= 0 && i != len(s)-1 {
			e.fail(model.at, path, "%q has a * that is not its last character", s)
			return
		}
	}
	if strings.HasSuffix(upstream, "*") && !strings.HasSuffix(name, "*") {
		e.fail(model.at, path, "%q ends in * and model_name %q does not", upstream, name)
	}
}

// served says whether the provider can be served; a mock answer needs none.
func (e *entry) served(params *node) bool {
	_, known := openAICompatible[e.d.Provider]
	if known || params.get("mock_response") != nil {
		return true
	}
	e.unserved = append(e.unserved, e.d.ModelName+" ("+e.d.Provider+"/"+e.d.Model+")")
	e.leftOut[e.d.ModelName] = true
	return false
}

// complete derives what the element does not say.
func (e *entry) complete(n *node) {
	d := e.d
	e.endpoint(n)
	if e.organization != "" {
		d.Headers = append(d.Headers, Header{Name: "OpenAI-Organization", Value: NewSecret(e.organization)})
	}
	d.Timeout = firstDuration(e.timeout, e.loader.timeout, e.requestTimeout, defaultTimeout)
	d.StreamTimeout = firstDuration(e.streamTimeout, e.loader.streamTimeout, d.Timeout)
	d.NumRetries = defaultRetries
	for _, retries := range []*int{e.litellmRetries, e.loader.retries, e.retries} {
		if retries != nil {
			d.NumRetries = *retries
		}
	}
	d.source.fields = mergeParts(d.source.fields, e.info)
	if d.source.limits.MaxOutput == 0 {
		d.source.limits.MaxOutput = e.infoMax
	}
	d.resolve(e.config.Prices)
	switch named := d.ModelName + " (" + e.path + ")"; {
	case d.Price != nil || d.Wildcard(): // a wildcard's price is known when a model is asked for
	case !d.source.fields.Empty():
		e.halfPriced = append(e.halfPriced, named)
	default:
		e.unpriced = append(e.unpriced, named)
	}
	e.identify(n)
}

func firstDuration(all ...time.Duration) time.Duration {
	for _, d := range all {
		if d > 0 {
			return d
		}
	}
	return 0
}

// endpoint settles URL and credential: the entry's own, the provider's environment
// variables, the provider's public URL.
func (e *entry) endpoint(n *node) {
	d := e.d
	if d.Mock() {
		d.APIBase, d.APIKey = "", Secret{}
		return
	}
	p := openAICompatible[d.Provider]
	if d.APIBase == "" {
		for _, name := range p.baseEnv {
			if value, ok := e.getenv(name); ok && d.APIBase == "" && trimNewline(value) != "" {
				d.APIBase = e.checkBase(trimNewline(value), n, name)
			}
		}
	}
	if d.APIBase == "" {
		d.APIBase = p.base
	}
	if d.APIBase == "" {
		e.fail(n.at, child(e.path, "litellm_params.api_base"), "it is missing, and the provider %s has no public URL", d.Provider)
	}
	if d.APIKey.IsZero() {
		d.APIKey = e.firstSecret(p.keyEnv...)
	}
	if e.authentication {
		d.APIKey = Secret{}
	} else if d.APIKey.IsZero() && p.base != "" && d.APIBase == p.base {
		e.noCredential = append(e.noCredential, d.ModelName+" ("+e.path+")")
	}
}

// checkBase checks a URL and drops the slashes at its end. Its errors do not show it:
// it may carry a password.
func (e *entry) checkBase(text string, n *node, path string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		e.fail(n.at, path, "it is not an http:// or https:// URL")
	case u.User != nil:
		e.fail(n.at, path, "it has a user or password in it; use api_key or extra_headers")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		e.fail(n.at, path, "it has a query or fragment, which cannot be kept")
	case hasControl(text) || strings.Contains(text, " "):
		e.fail(n.at, path, "it has spaces or control characters")
	default:
		base := strings.TrimRight(text, "/")
		if e.d.Provider == "anthropic" && u.Path == strings.Repeat("/", len(u.Path)) {
			base += "/v1" // LiteLLM writes Anthropic's base without it
		}
		return base
	}
	return ""
}
