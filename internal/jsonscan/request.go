package jsonscan

import (
	"bytes"
	"fmt"
)

// chatReader reads a request into a Chat.
type chatReader struct {
	Scanner
	lim  Limits
	chat *Chat

	// Where it is, for the paths in errors: the message, the element of its
	// content or tool_calls where list is not empty, the call in there.
	message int
	list    string
	part    int
	inside  string
}

// request reads the top-level object.
func (r *chatReader) request() {
	if r.Peek() != Object {
		if r.Peek() != Invalid {
			r.fail("", r.pos, "the body must be an object")
			return
		}
		r.unexpected("an object")
		return
	}
	r.Object()
	r.chat.Insert = r.pos
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

// distinct refuses a key that was there before. The search is linear: the
// number of members is limited.
func (r *chatReader) distinct(key []byte, at int) {
	for _, k := range r.chat.members {
		if bytes.Equal(k, key) {
			r.fail(printable(key), at, "must not be given twice")
			return
		}
	}
	if len(r.chat.members) == r.lim.MaxMembers {
		r.fail("", at, "more than %d members", r.lim.MaxMembers)
		return
	}
	r.chat.members = append(r.chat.members, key)
}

// printable shortens a key that a client made up, for a message. The empty key
// is shown by its quotes, since an empty Field means something else.
func printable(key []byte) string {
	const most = 64
	if len(key) == 0 {
		return `""`
	}
	if len(key) > most {
		return string(bytes.ToValidUTF8(key[:most], nil)) + "…"
	}
	return string(key)
}

func (r *chatReader) member(key []byte) {
	c := r.chat
	switch string(key) {
	case "model":
		r.model()
	case "messages":
		r.messages()
	case "stream":
		c.Stream = r.boolean("stream")
	case "stream_options":
		r.streamOptions()
	case "max_tokens":
		c.MaxTokens = r.limit("max_tokens", MaxTokens)
	case "max_completion_tokens":
		c.MaxCompletionTokens = r.limit("max_completion_tokens", MaxTokens)
	case "n":
		if n := r.limit("n", r.lim.MaxN); n.Set {
			c.N = n.Value
		}
	case "user":
		c.User = r.text("user")
	case "mock_response":
		c.MockResponse = r.text("mock_response")
	case "tags":
		r.tags()
	case "metadata":
		r.metadata()
	case "tools", "functions":
		r.schemas(string(key))
	case "response_format":
		r.responseFormat()
	default:
		r.Skip()
	}
}

func (r *chatReader) required() {
	switch {
	case r.err != nil:
	case r.chat.ModelSpan.IsZero():
		r.fail("model", r.pos, "is required")
	case len(r.chat.Messages) == 0:
		r.fail("messages", r.pos, "is required")
	}
}

func (r *chatReader) model() {
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
		r.chat.ModelSpan = span
		var buf []byte
		r.chat.Model = string(Unescaped(r.body, span, &buf))
	}
}

func (r *chatReader) streamOptions() {
	o := &r.chat.StreamOptions
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

// limit reads a positive integer or null. The key's span is found by walking
// back over the colon, which is cheaper than keeping it for each member.
func (r *chatReader) limit(field string, most int64) Int {
	i := Int{Key: r.keyBefore(r.pos)}
	if r.null(&i.Span) {
		return i
	}
	if r.Peek() != Number {
		r.wrong(field, "an integer")
		return Int{}
	}
	start := r.pos
	n, ok := r.Int()
	switch {
	case r.err != nil:
		return Int{}
	case !ok:
		r.fail(field, start, "must be an integer")
	case n < 1 || n > most:
		r.fail(field, start, "must be from 1 to %d", most)
	}
	i.Span, i.Value, i.Set = Span{start, r.pos}, n, true
	return i
}

// keyBefore is the span of the key whose colon ends at pos. Keys that are
// escaped hold no raw quote before their last one, so the search stops right
// for the keys it is used for.
func (r *chatReader) keyBefore(pos int) Span {
	end := bytes.LastIndexByte(r.body[:pos], '"')
	start := bytes.LastIndexByte(r.body[:end], '"')
	return Span{start, end + 1}
}

func (r *chatReader) schemas(field string) {
	if r.null(nil) {
		return
	}
	if r.Peek() != Array {
		r.wrong(field, "an array")
		return
	}
	r.chat.Schemas = append(r.chat.Schemas, r.Skip())
}

func (r *chatReader) responseFormat() {
	if r.null(nil) {
		return
	}
	if r.Peek() != Object {
		r.wrong("response_format", "an object")
		return
	}
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		isSchema := string(key) == "json_schema"
		span := r.Skip()
		if isSchema && r.err == nil {
			r.chat.Schemas = append(r.chat.Schemas, span)
		}
	}
}

func (r *chatReader) metadata() {
	if r.null(nil) {
		return
	}
	if r.Peek() != Object {
		r.wrong("metadata", "an object")
		return
	}
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		if string(key) == "tags" {
			r.tags()
			continue
		}
		r.Skip()
	}
}

// tags takes the strings of an array. Anything else is left alone: providers
// give these members meanings of their own.
func (r *chatReader) tags() {
	if r.Peek() != Array {
		r.Skip()
		return
	}
	r.Array()
	for r.More() {
		if r.Peek() != String {
			r.Skip()
			continue
		}
		if span := r.String(); len(r.chat.Tags) < r.lim.MaxMembers {
			r.chat.Tags = append(r.chat.Tags, span)
		}
	}
}

// null takes a null, if there is one, and notes where it is.
func (r *chatReader) null(span *Span) bool {
	if r.Peek() != Null {
		return false
	}
	at := r.Skip()
	if span != nil {
		*span = at
	}
	return true
}

func (r *chatReader) boolean(field string) bool {
	if r.null(nil) {
		return false
	}
	if r.Peek() != Bool {
		r.wrong(field, "true or false")
		return false
	}
	return r.True()
}

// text reads a string; a null is taken and counts as absent.
func (r *chatReader) text(field string) Span {
	if r.null(nil) {
		return Span{}
	}
	if r.Peek() != String {
		r.wrong(field, "a string")
		return Span{}
	}
	return r.String()
}

// wrong says what the member should have been. A value that is not even JSON
// is told as such.
func (r *chatReader) wrong(field, wanted string) {
	at := r.pos
	if r.Peek() == Invalid {
		r.unexpected("a value")
		return
	}
	if r.Skip(); r.err == nil {
		r.fail(field, at, "must be %s", wanted)
	}
}

// path names a member of what is being read, for an error.
func (r *chatReader) path(member string) string {
	if r.inside != "" {
		member = r.inside + "." + member
	}
	if r.list == "" {
		return fmt.Sprintf("messages[%d].%s", r.message, member)
	}
	return fmt.Sprintf("messages[%d].%s[%d].%s", r.message, r.list, r.part, member)
}
