package jsonscan

func (r *reader) responsesMember(key []byte) {
	q := r.req
	switch string(key) {
	case "input":
		r.input()
	case "instructions":
		r.instructions()
	case "max_output_tokens":
		q.MaxTokens = r.limit("max_output_tokens", MaxTokens)
	case "text":
		r.textOptions()
	case "prompt":
		r.storedPrompt()
	case "previous_response_id", "conversation":
		if !r.null(nil) {
			r.Skip()
			q.Inexact = true
		}
	default:
		r.Skip()
	}
}

// input reads a string, which is a user's message, or an array of items.
func (r *reader) input() {
	switch r.Peek() {
	case Null:
		r.Skip()
		return
	case String:
		r.bareMessage(r.String())
	case Array:
		r.push("input")
		r.Array()
		for r.object() {
			r.inputItem()
		}
		r.pop()
	default:
		r.wrong("input", "a string or an array")
	}
	r.given++
}

func (r *reader) instructions() {
	if text := r.text("instructions"); !text.IsZero() {
		r.bareMessage(text)
	}
}

// textOptions takes the schema out of text.format.
func (r *reader) textOptions() {
	if !r.isObject("text") {
		return
	}
	r.push("text")
	seen := 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		if string(key) != "format" {
			r.Skip()
			continue
		}
		r.once(&seen, 1, key)
		r.schemaIn("format", "schema")
	}
	r.pop()
}

// bareMessage is a text that stands for a message of a role that is not said.
func (r *reader) bareMessage(text Span) {
	m := Message{Span: text, Content: text, FirstText: len(r.req.Texts)}
	r.count(text)
	r.message(m)
}

// storedPrompt is a reference to a text that the provider keeps, with what is
// to be filled in.
func (r *reader) storedPrompt() {
	if !r.isObject("prompt") {
		return
	}
	r.item(Item{Span: r.Skip()})
	r.req.Inexact = true
}

// inputItem reads an element of input. All its kinds are read alike, because
// the type may come last.
func (r *reader) inputItem() {
	q := r.req
	m := Message{FirstText: len(q.Texts)}
	before := len(q.Texts) + len(q.Items) + len(q.Schemas)
	var kind Span
	start, seen := r.pos, 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "type":
			r.once(&seen, seenType, key)
			kind = r.typeOf()
		case "role":
			r.once(&seen, seenRole, key)
			m.Role = r.counted(key)
		case "content":
			r.once(&seen, seenContent, key)
			m.Content = r.content("content")
		default:
			r.inputItemMember(&seen, key)
		}
	}
	if r.err != nil {
		return
	}
	m.Span = Span{start, r.pos}
	if !r.isPlain(kind) {
		q.Inexact = true
		if before == len(q.Texts)+len(q.Items)+len(q.Schemas) {
			r.item(Item{Span: m.Span})
		}
	}
	r.message(m)
}

// inputItemMember reads what calls, their outputs and reasoning are made of.
func (r *reader) inputItemMember(seen *int, key []byte) {
	switch string(key) {
	case "name":
		r.once(seen, seenName, key)
		r.count(r.textIfString())
	case "arguments":
		r.once(seen, seenArguments, key)
		r.textOrSchema()
	case "input":
		r.once(seen, seenInput, key)
		r.textOrSchema()
	case "output":
		r.once(seen, seenOutput, key)
		r.nested("output")
	case "summary":
		r.once(seen, seenSummary, key)
		r.nested("summary")
	case "encrypted_content":
		r.once(seen, seenEncrypted, key)
		if span := r.textIfString(); !span.IsZero() {
			r.item(Item{Kind: Encrypted, Span: span, Data: span})
		}
	case "result":
		r.once(seen, seenResult, key)
		if span := r.textIfString(); !span.IsZero() {
			r.item(Item{Kind: Image, Span: span, Data: span})
		}
	default:
		r.serverToolMember(seen, key)
	}
}

// serverToolMember reads what the provider's own tools leave in a conversation.
func (r *reader) serverToolMember(seen *int, key []byte) {
	bit := 0
	switch string(key) {
	case "action":
		bit = seenAction
	case "code":
		bit = seenCode
	case "outputs":
		bit = seenOutputs
	case "queries":
		bit = seenQueries
	case "results":
		bit = seenResults
	case "tools":
		bit = seenTools
	default:
		r.Skip()
		return
	}
	r.once(seen, bit, key)
	r.textOrSchema()
}

// isPlain tells whether an item is made of nothing but texts that the model
// reads as they stand.
func (r *reader) isPlain(kind Span) bool {
	if kind.IsZero() {
		return true
	}
	var buf []byte
	switch string(Unescaped(r.body, kind, &buf)) {
	case "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output":
		return true
	}
	return false
}
