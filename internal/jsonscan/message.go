package jsonscan

import "fmt"

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
	seenData
	seenArguments
	seenFunction
	seenDetail
)

func (r *chatReader) messages() {
	if r.Peek() != Array {
		r.wrong("messages", "an array")
		return
	}
	at := r.pos
	r.Array()
	for ; r.More(); r.message++ {
		if r.message == r.lim.MaxMessages {
			r.fail("messages", r.pos, "more than %d messages", r.lim.MaxMessages)
			return
		}
		if r.Peek() != Object {
			r.wrong(fmt.Sprintf("messages[%d]", r.message), "an object")
			return
		}
		r.oneMessage()
	}
	if r.err == nil && r.message == 0 {
		r.fail("messages", at, "must not be empty")
	}
}

func (r *chatReader) oneMessage() {
	m := Message{FirstText: len(r.chat.Texts)}
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
				r.chat.Names++
			}
		case "content":
			r.once(&seen, seenContent, key)
			m.Content = r.content()
		case "tool_calls":
			r.once(&seen, seenCalls, key)
			r.toolCalls()
		case "function_call":
			r.once(&seen, seenFunctionCall, key)
			r.call("function_call", "arguments")
		case "reasoning_content":
			r.once(&seen, seenReasoning, key)
			r.countedIfString()
		case "refusal":
			r.once(&seen, seenRefusal, key)
			r.countedIfString()
		default:
			r.Skip()
		}
	}
	if r.err == nil && seen&seenRole == 0 {
		r.fail(r.path("role"), start, "is required")
	}
	m.Span = Span{start, r.pos}
	m.EndText = len(r.chat.Texts)
	r.chat.Messages = append(r.chat.Messages, m)
}

// once refuses a member that came before in the same object.
func (r *chatReader) once(seen *int, bit int, key []byte) {
	if *seen&bit != 0 {
		r.fail(r.path(string(key)), r.pos, "must not be given twice")
	}
	*seen |= bit
}

func (r *chatReader) roleOf(key []byte) Span {
	if r.Peek() != String {
		r.wrong(r.path("role"), "a string")
		return Span{}
	}
	return r.counted(key)
}

// typeOf reads the type of a part, which is not counted.
func (r *chatReader) typeOf() Span {
	if kind := r.Peek(); kind != String && kind != Null {
		r.wrong(r.path("type"), "a string")
		return Span{}
	}
	return r.text("type")
}

// counted reads the string of a member that is counted, or null.
func (r *chatReader) counted(key []byte) Span {
	switch r.Peek() {
	case Null:
		r.Skip()
		return Span{}
	case String:
		return r.count(r.String())
	}
	r.wrong(r.path(string(key)), "a string")
	return Span{}
}

// countedIfString is for members that only some providers know: whatever is
// not a string is theirs to judge.
func (r *chatReader) countedIfString() {
	if r.Peek() == String {
		r.count(r.String())
		return
	}
	r.Skip()
}

func (r *chatReader) count(text Span) Span {
	if r.full() || r.err != nil {
		return Span{}
	}
	r.chat.Texts = append(r.chat.Texts, text)
	return text
}

func (r *chatReader) full() bool {
	full := len(r.chat.Texts)+len(r.chat.Items) >= r.lim.MaxTexts
	if full {
		r.fail("messages", r.pos, "more than %d texts and parts", r.lim.MaxTexts)
	}
	return full
}

func (r *chatReader) content() Span {
	switch r.Peek() {
	case Null:
		return r.Skip()
	case String:
		return r.count(r.String())
	case Array:
	default:
		r.wrong(r.path("content"), "a string, an array or null")
		return Span{}
	}
	start := r.pos
	r.Array()
	for r.part = 0; r.More(); r.part++ {
		if r.Peek() != Object {
			r.wrong(fmt.Sprintf("messages[%d].content[%d]", r.message, r.part), "an object")
			return Span{}
		}
		r.list = "content"
		r.onePart()
	}
	r.list = ""
	return Span{start, r.pos}
}

// onePart reads a content part. What it is can be told only at its end: the
// type may come last.
func (r *chatReader) onePart() {
	var item Item
	var kind Span
	start, seen := r.pos, 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "type":
			r.once(&seen, seenType, key)
			kind = r.typeOf()
		case "text":
			r.once(&seen, seenText, key)
			r.counted(key)
		case "thinking":
			r.once(&seen, seenReasoning, key)
			r.countedIfString()
		case "refusal":
			r.once(&seen, seenRefusal, key)
			r.countedIfString()
		case "image_url", "input_audio", "file":
			r.once(&seen, seenData, key)
			r.data(&item)
		default:
			r.Skip()
		}
	}
	if r.err != nil {
		return
	}
	item.Kind = r.itemKind(kind)
	const words = seenText | seenReasoning | seenRefusal
	if item.Kind == Other && seen&words != 0 && seen&seenData == 0 || r.full() {
		return
	}
	item.Span = Span{start, r.pos}
	r.chat.Items = append(r.chat.Items, item)
}

// data reads what an image, audio or file part carries: a URL or base64, in an
// object or, as some clients write it, directly.
func (r *chatReader) data(item *Item) {
	switch r.Peek() {
	case String:
		item.Data = r.String()
		return
	case Object:
	default:
		r.Skip()
		return
	}
	seen := 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		isString := r.Peek() == String
		span := r.Skip()
		switch string(key) {
		case "url", "data", "file_data":
			r.once(&seen, seenData, key)
			if isString {
				item.Data = span
			}
		case "detail":
			r.once(&seen, seenDetail, key)
			if isString {
				item.Detail = span
			}
		}
	}
}

func (r *chatReader) itemKind(kind Span) ItemKind {
	if kind.IsZero() {
		return Other
	}
	var buf []byte
	switch string(Unescaped(r.body, kind, &buf)) {
	case "image_url", "image", "input_image":
		return Image
	case "input_audio", "audio":
		return Audio
	case "file", "input_file", "document":
		return File
	}
	return Other
}

func (r *chatReader) toolCalls() {
	if r.null(nil) {
		return
	}
	if r.Peek() != Array {
		r.wrong(r.path("tool_calls"), "an array")
		return
	}
	r.Array()
	for r.part = 0; r.More(); r.part++ {
		if r.Peek() != Object {
			r.wrong(fmt.Sprintf("messages[%d].tool_calls[%d]", r.message, r.part), "an object")
			return
		}
		r.list = "tool_calls"
		r.toolCall()
	}
	r.list = ""
}

func (r *chatReader) toolCall() {
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
func (r *chatReader) call(member, arguments string) {
	if r.null(nil) {
		return
	}
	if r.Peek() != Object {
		r.wrong(r.path(member), "an object")
		return
	}
	r.inside = member
	seen := 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "name":
			r.once(&seen, seenName, key)
			r.counted(key)
		case arguments:
			r.once(&seen, seenArguments, key)
			r.counted(key)
		default:
			r.Skip()
		}
	}
	r.inside = ""
}
