package jsonscan

// request reads the top-level object.
func (r *reader) request() {
	if r.Peek() != Object {
		if r.Peek() != Invalid {
			r.fail("", r.pos, "the body must be an object")
			return
		}
		r.unexpected("an object")
		return
	}
	r.Object()
	r.req.Insert = r.pos
	for {
		r.space()
		at := r.pos
		key, ok := r.Key()
		if !ok {
			break
		}
		r.distinct(key, at)
		r.member(key)
	}
	r.required()
}

// member reads what all shapes have and leaves the rest to them.
func (r *reader) member(key []byte) {
	q := r.req
	switch string(key) {
	case "model":
		r.model()
	case "stream":
		q.Stream = r.boolean("stream")
	case "stream_options":
		r.streamOptions()
	case "user":
		q.User = r.text("user")
	case "mock_response":
		q.MockResponse = r.text("mock_response")
	case "tags":
		r.tags()
	case "metadata":
		r.metadata()
	case "tools":
		r.tools("tools")
	default:
		r.memberOfShape(key)
	}
}

func (r *reader) memberOfShape(key []byte) {
	switch r.req.Shape {
	case ChatCompletions:
		r.chatMember(key)
	case Completions:
		r.completionMember(key)
	case Embeddings:
		r.embeddingMember(key)
	case Responses:
		r.responsesMember(key)
	case Messages:
		r.messagesMember(key)
	case TokenCounter:
		r.tokenCounterMember(key)
	default:
		r.Skip()
	}
}

func (r *reader) chatMember(key []byte) {
	q := r.req
	switch string(key) {
	case "messages":
		r.messages("messages")
	case "max_tokens":
		q.MaxTokens = r.limit("max_tokens", MaxTokens)
	case "max_completion_tokens":
		q.MaxCompletionTokens = r.limit("max_completion_tokens", MaxTokens)
	case "n":
		r.answers("n")
	case "functions":
		r.tools("functions")
	case "response_format":
		r.schemaIn("response_format", "json_schema")
	default:
		r.Skip()
	}
}

func (r *reader) completionMember(key []byte) {
	q := r.req
	switch string(key) {
	case "prompt":
		r.inputs("prompt")
	case "suffix":
		if !r.count(r.text("suffix")).IsZero() {
			q.Inexact = true
		}
	case "max_tokens":
		q.MaxTokens = r.limit("max_tokens", MaxTokens)
	case "n", "best_of":
		r.answers(string(key))
	default:
		r.Skip()
	}
}

func (r *reader) embeddingMember(key []byte) {
	if string(key) == "input" {
		r.inputs("input")
		return
	}
	r.Skip()
}

func (r *reader) messagesMember(key []byte) {
	switch string(key) {
	case "messages":
		r.messages("messages")
	case "system":
		r.system()
	case "max_tokens":
		r.req.MaxTokens = r.limit("max_tokens", MaxTokens)
	case "output_format", "output_config":
		r.schema()
	default:
		r.Skip()
	}
}

func (r *reader) tokenCounterMember(key []byte) {
	switch string(key) {
	case "prompt":
		r.inputs("prompt")
	case "messages":
		r.messages("messages")
	case "contents":
		r.contents()
	case "system":
		r.system()
	default:
		r.Skip()
	}
}

// required holds what must be there. A Responses request needs no input where
// the provider has one.
func (r *reader) required() {
	q := r.req
	prompt := "messages"
	switch q.Shape {
	case Completions:
		prompt = "prompt"
	case Embeddings, Responses:
		prompt = "input"
	}
	switch {
	case r.err != nil:
	case q.ModelSpan.IsZero():
		r.fail("model", r.pos, "is required")
	case q.Shape == TokenCounter && r.given != 1:
		r.fail(prompt, r.pos, "or one of prompt and contents is required, and no two of them")
	case r.given == 0 && (q.Shape != Responses || !q.Inexact):
		r.fail(prompt, r.pos, "is required")
	}
}

func (r *reader) model() {
	if r.Peek() != String {
		r.wrong("model", "a string")
		return
	}
	span := r.String()
	if span.Len() == len(`""`) {
		r.fail("model", span.Start, "must not be empty")
		return
	}
	if r.err == nil {
		r.req.ModelSpan = span
		var buf []byte
		if model := Unescaped(r.body, span, &buf); string(model) != r.req.lastModel {
			r.req.lastModel = string(model)
		}
		r.req.Model = r.req.lastModel
	}
}

func (r *reader) streamOptions() {
	o := &r.req.StreamOptions
	if r.null(&o.Span) {
		return
	}
	if r.Peek() != Object {
		r.wrong("stream_options", "an object")
		return
	}
	o.Object, o.Empty = true, true
	start := r.pos
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		o.Empty = false
		if string(key) != "include_usage" {
			r.Skip()
			continue
		}
		const field = "stream_options.include_usage"
		r.Peek()
		if !o.IncludeUsageSpan.IsZero() {
			r.fail(field, r.pos, "must not be given twice")
			return
		}
		o.IncludeUsageSpan.Start = r.pos
		o.IncludeUsage = r.boolean(field)
		o.IncludeUsageSpan.End = r.pos
	}
	o.Span = Span{start, r.pos}
}

// answers reads n, or best_of, which is how many answers are made to choose n
// from: all of them are billed.
func (r *reader) answers(field string) {
	if n := r.limit(field, r.lim.MaxN); n.Set {
		r.req.N = max(r.req.N, n.Value)
	}
}

func (r *reader) tools(field string) {
	if r.isArray(field) {
		r.schema()
	}
}

// schemaIn takes the value of one member of an object.
func (r *reader) schemaIn(field, member string) {
	if !r.isObject(field) {
		return
	}
	r.push(field)
	seen := 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		if string(key) != member {
			r.Skip()
			continue
		}
		r.once(&seen, 1, key)
		r.schema()
	}
	r.pop()
}

func (r *reader) metadata() {
	if !r.isObject("metadata") {
		return
	}
	r.push("metadata")
	seen := 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch {
		case string(key) == "tags":
			r.once(&seen, 1, key)
			r.tags()
		case string(key) == "user_id" && r.req.Shape == Messages:
			r.once(&seen, 2, key)
			r.req.User = r.textIfString()
		default:
			r.Skip()
		}
	}
	r.pop()
}

// tags takes the strings of an array. Anything else is left alone: providers
// give these members meanings of their own.
func (r *reader) tags() {
	if r.Peek() != Array {
		r.Skip()
		return
	}
	r.Array()
	for r.More() {
		if span := r.textIfString(); !span.IsZero() && len(r.req.Tags) < r.lim.MaxMembers {
			r.req.Tags = append(r.req.Tags, span)
		}
	}
}
