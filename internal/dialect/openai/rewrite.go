package openai

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
)

// The names of the output cap. Older and most compatible upstreams know the
// first, OpenAI's reasoning models only the second.
const (
	MaxTokens           = "max_tokens"
	MaxCompletionTokens = "max_completion_tokens"
)

// Plan says what has to change in a request on its way to an upstream.
type Plan struct {
	// Model is the name that the upstream knows, "" keeps the client's.
	Model string
	// OutputCap, in tokens, is what was held. A larger cap of the client is
	// lowered to it, a missing one is written; 0 changes nothing.
	OutputCap int64
	// CapField is the name of the cap that the upstream accepts; a client's cap
	// under the other name is renamed. "" keeps the client's, else MaxTokens.
	CapField string
	// IncludeUsage asks for the usage event, in streams only.
	IncludeUsage bool
}

// edit replaces a span of the body.
type edit struct {
	span jsonscan.Span
	text []byte
}

// Rewrite appends to pieces what to send: slices of body around the new values,
// and the length of all. A request that needs no change is one piece, body
// itself. No byte outside the changed members is touched.
func Rewrite(pieces [][]byte, body []byte, c *jsonscan.Chat, p Plan) (out [][]byte, total int) {
	var room [5]edit
	edits := room[:0]
	if p.Model != "" && p.Model != c.Model {
		edits = append(edits, edit{c.ModelSpan, jsonscan.AppendString(nil, p.Model)})
	}
	var insert []byte
	edits, insert = capEdits(edits, c, p)
	if p.IncludeUsage && c.Stream {
		edits, insert = usageEdit(edits, insert, c)
	}
	if len(insert) > 0 {
		edits = append(edits, edit{jsonscan.Span{Start: c.Insert, End: c.Insert}, insert})
	}
	return splice(pieces, body, edits)
}

func splice(pieces [][]byte, body []byte, edits []edit) (out [][]byte, total int) {
	// An insertion comes before a replacement at the same place.
	slices.SortFunc(edits, func(a, b edit) int {
		return cmp.Or(a.span.Start-b.span.Start, a.span.End-b.span.End)
	})
	from := 0
	total = len(body)
	for _, e := range edits {
		pieces = append(pieces, body[from:e.span.Start], e.text)
		from = e.span.End
		total += len(e.text) - e.span.Len()
	}
	return append(pieces, body[from:]), total
}

// capEdits makes every cap in the request at most the plan's, and at least one
// of them present under the name that the upstream accepts.
func capEdits(edits []edit, c *jsonscan.Chat, p Plan) (out []edit, insert []byte) {
	if p.OutputCap <= 0 {
		return edits, nil
	}
	wanted, other := c.MaxTokens, c.MaxCompletionTokens
	field := p.CapField
	if field == "" && !wanted.Set && other.Set {
		field = MaxCompletionTokens
	}
	if field == MaxCompletionTokens {
		wanted, other = other, wanted
	} else {
		field = MaxTokens
	}
	edits = lower(edits, other, p.OutputCap)
	switch {
	case wanted.Set:
		return lower(edits, wanted, p.OutputCap), nil
	case !wanted.Span.IsZero(): // null
		limit := p.OutputCap
		if other.Set {
			limit = min(limit, other.Value)
		}
		return append(edits, edit{wanted.Span, strconv.AppendInt(nil, limit, 10)}), nil
	case other.Set:
		return append(edits, edit{other.Key, jsonscan.AppendString(nil, field)}), nil
	}
	insert = append(jsonscan.AppendString(nil, field), ':')
	insert = strconv.AppendInt(insert, p.OutputCap, 10)
	return edits, append(insert, ',')
}

func lower(edits []edit, given jsonscan.Int, limit int64) []edit {
	if !given.Set || given.Value <= limit {
		return edits
	}
	return append(edits, edit{given.Span, strconv.AppendInt(nil, limit, 10)})
}

func usageEdit(edits []edit, insert []byte, c *jsonscan.Chat) (out []edit, inserted []byte) {
	o := c.StreamOptions
	switch {
	case o.IncludeUsage:
	case !o.IncludeUsageSpan.IsZero():
		edits = append(edits, edit{o.IncludeUsageSpan, []byte("true")})
	case o.Object:
		text := `"include_usage":true,`
		if o.Empty {
			text = `"include_usage":true`
		}
		brace := o.Span.Start + 1
		edits = append(edits, edit{jsonscan.Span{Start: brace, End: brace}, []byte(text)})
	case !o.Span.IsZero(): // null
		edits = append(edits, edit{o.Span, []byte(`{"include_usage":true}`)})
	default:
		insert = append(insert, `"stream_options":{"include_usage":true},`...)
	}
	return edits, insert
}
