package jsonscan

// Each member of a message, a part or a call that is read may come once; the
// bit sets below remember which have come.
const (
	seenRole = 1 << iota
	seenName
	seenContent
	seenCalls
	seenFunctionCall
	seenReasoning
	seenRefusal
	seenType
	seenText
	seenArguments
	seenFunction
	seenDetail
	seenInput
	seenOutput
	seenSummary
	seenEncrypted
	seenResult
	seenAction
	seenCode
	seenOutputs
	seenQueries
	seenResults
	seenTools
	seenParts
	seenTitle
	seenContext
	seenResponse
	seenMediaType

	// Members that carry an item.
	seenImageURL
	seenInputAudio
	seenFile
	seenFileData
	seenFileURL
	seenSource
	seenInlineData
	seenURL
	seenData
)

func (r *reader) messages(field string) {
	if !r.isArray(field) {
		return
	}
	r.given++
	at, n := r.pos, 0
	r.push(field)
	r.Array()
	for ; r.object(); n++ {
		r.oneMessage()
	}
	r.pop()
	if r.err == nil && n == 0 {
		r.fail(field, at, "must not be empty")
	}
}

func (r *reader) oneMessage() {
	m := Message{FirstText: len(r.req.Texts)}
	start := r.pos
	seen := 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "role":
			r.once(&seen, seenRole, key)
			m.Role = r.roleOf(key)
		case "name":
			r.once(&seen, seenName, key)
			if m.Name = r.counted(key); !m.Name.IsZero() {
				r.req.Names++
			}
		case "content":
			r.once(&seen, seenContent, key)
			m.Content = r.content("content")
		case "tool_calls":
			r.once(&seen, seenCalls, key)
			r.toolCalls()
		case "function_call":
			r.once(&seen, seenFunctionCall, key)
			r.call("function_call", "arguments")
		case "reasoning_content":
			r.once(&seen, seenReasoning, key)
			r.count(r.textIfString())
		case "refusal":
			r.once(&seen, seenRefusal, key)
			r.count(r.textIfString())
		default:
			r.Skip()
		}
	}
	if r.err == nil && seen&seenRole == 0 {
		r.fail(r.path("role"), start, "is required")
	}
	m.Span = Span{start, r.pos}
	r.message(m)
}

// system reads Anthropic's system prompt, which stands beside the messages.
func (r *reader) system() {
	if r.null(nil) {
		return
	}
	m := Message{Span: Span{Start: r.pos}, FirstText: len(r.req.Texts)}
	m.Content = r.content("system")
	m.Span.End = r.pos
	r.message(m)
}

// contents reads Gemini's form of messages.
func (r *reader) contents() {
	if !r.isArray("contents") {
		return
	}
	r.given++
	at, n := r.pos, 0
	r.push("contents")
	r.Array()
	for ; r.object(); n++ {
		r.geminiMessage()
	}
	r.pop()
	if r.err == nil && n == 0 {
		r.fail("contents", at, "must not be empty")
	}
}

func (r *reader) geminiMessage() {
	m := Message{FirstText: len(r.req.Texts)}
	start, seen := r.pos, 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "role":
			r.once(&seen, seenRole, key)
			m.Role = r.counted(key)
		case "parts":
			r.once(&seen, seenParts, key)
			m.Content = r.nested("parts")
		default:
			r.Skip()
		}
	}
	m.Span = Span{start, r.pos}
	r.message(m)
}

func (r *reader) roleOf(key []byte) Span {
	if r.Peek() != String {
		r.wrong("role", "a string")
		return Span{}
	}
	return r.counted(key)
}

// typeOf reads the type of a part, which is not counted.
func (r *reader) typeOf() Span { return r.text("type") }

// counted reads the string of a member that is counted, or null.
func (r *reader) counted(key []byte) Span {
	if kind := r.Peek(); kind != String && kind != Null {
		r.wrong(string(key), "a string")
		return Span{}
	}
	return r.count(r.textIfString())
}

// textOrSchema reads a member that is counted whatever it is.
func (r *reader) textOrSchema() {
	if r.Peek() == String {
		r.count(r.String())
		return
	}
	r.schema()
}

// content reads a string or an array of parts. A null is told by its span.
func (r *reader) content(member string) Span {
	switch r.Peek() {
	case Null:
		return r.Skip()
	case String:
		return r.count(r.String())
	case Array:
	default:
		r.wrong(member, "a string, an array or null")
		return Span{}
	}
	start := r.pos
	r.push(member)
	r.Array()
	for r.object() {
		r.part()
	}
	r.pop()
	return Span{start, r.pos}
}

// nested is content that may also be a single part.
func (r *reader) nested(member string) Span {
	if r.Peek() != Object {
		return r.content(member)
	}
	start := r.pos
	r.push(member)
	r.part()
	r.pop()
	return Span{start, r.pos}
}

func (r *reader) toolCalls() {
	if !r.isArray("tool_calls") {
		return
	}
	r.push("tool_calls")
	r.Array()
	for r.object() {
		r.toolCall()
	}
	r.pop()
}

func (r *reader) toolCall() {
	seen := 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "function":
			r.once(&seen, seenFunction, key)
			r.call("function", "arguments")
		case "custom":
			r.once(&seen, seenFunctionCall, key)
			r.call("custom", "input")
		default:
			r.Skip()
		}
	}
}

// call reads the name and the arguments of a call, which are counted.
func (r *reader) call(member, arguments string) {
	r.callOf(member, arguments, func(key []byte) { r.counted(key) })
}

// callOf reads the name of a call, and its arguments by read.
func (r *reader) callOf(member, arguments string, read func(key []byte)) {
	if !r.isObject(member) {
		return
	}
	r.push(member)
	seen := 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "name":
			r.once(&seen, seenName, key)
			r.counted(key)
		case arguments:
			r.once(&seen, seenArguments, key)
			read(key)
		default:
			r.Skip()
		}
	}
	r.pop()
}
