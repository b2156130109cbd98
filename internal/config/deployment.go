package config

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/penstock-gateway/penstock/internal/money"
)

// source is what an entry of the file says itself, kept for wildcards: what they serve
// is resolved per request.
type source struct {
	fields    money.Parts  // its own price fields
	limits    money.Limits // its own limits and mode
	baseModel string
}

// Wildcard says whether ModelName stands for every name that begins as it does.
func (d *Deployment) Wildcard() bool { return strings.HasSuffix(d.ModelName, "*") }

// For is the deployment as it serves a requested name: itself, or for a wildcard a copy
// with the model, price and limits of that name. The copy has the ID of the original.
func (d *Deployment) For(requested string, prices Prices) *Deployment {
	prefix, wildcard := strings.CutSuffix(d.ModelName, "*")
	if !wildcard {
		return d
	}
	served := *d
	if upstream, ok := strings.CutSuffix(d.Model, "*"); ok {
		served.Model = upstream + strings.TrimPrefix(requested, prefix)
	}
	served.resolve(prices)
	return &served
}

// resolve sets price, limits and mode: the entry's own before the tables'.
func (d *Deployment) resolve(prices Prices) {
	d.BaseModel = d.source.baseModel
	lookup := d.BaseModel
	if d.BaseModel == "" {
		d.BaseModel = d.Model
		lookup = d.priceName()
	}
	limits, known := d.source.limits, prices.limits(lookup)
	if limits.MaxInput == 0 {
		limits.MaxInput = known.MaxInput
	}
	if limits.MaxOutput == 0 {
		limits.MaxOutput = known.MaxOutput
	}
	if limits.Mode == "" {
		limits.Mode = known.Mode
	}
	limits.Provider = d.Provider
	d.Price = own(d.source.fields, prices.lookup(lookup), limits)
	d.MaxInput, d.MaxOutput, d.Mode = limits.MaxInput, limits.MaxOutput, limits.Mode
	if d.MaxOutput == 0 {
		d.MaxOutput = DefaultMaxOutput
	}
}

// priceName is the name that price tables know the model by. It always has the
// provider: a server of one's own that calls its model gpt-4o is not OpenAI.
func (d *Deployment) priceName() string {
	name := d.Provider
	if other := openAICompatible[d.Provider].prices; other != "" {
		name = other
	}
	return name + "/" + d.Model
}

// mergeParts lays a over b.
func mergeParts(a, b money.Parts) money.Parts {
	a.Base = a.Base.Over(b.Base)
	for above, rates := range b.Tiers {
		if a.Tiers == nil {
			a.Tiers = map[int64]money.PartRates{}
		}
		a.Tiers[above] = a.Tiers[above].Over(rates)
	}
	return a
}

// identify gives the deployment its ID and refuses one that is taken. A derived ID says
// the same for the same entry at every start, whatever its place in the file; equal
// entries are told apart by their order.
func (e *entry) identify(n *node) {
	d := e.d
	if d.ID != "" {
		if e.ids[d.ID] {
			e.fail(n.get("model_info").get("id").at, child(e.path, "model_info.id"), "another entry has the id %q", d.ID)
		}
		e.ids[d.ID] = true
		return
	}
	for i := 0; d.ID == "" || e.ids[d.ID]; i++ {
		parts := []string{d.ModelName, d.Provider, d.Model, d.APIBase, e.organization, strconv.Itoa(i)}
		sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
		d.ID = hex.EncodeToString(sum[:16])
	}
	e.ids[d.ID] = true
}
