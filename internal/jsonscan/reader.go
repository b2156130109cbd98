package jsonscan

import (
	"bytes"
	"strconv"
)

// reader reads a request into a Request.
type reader struct {
	Scanner
	lim Limits
	req *Request

	given int // how many of the members that hold the prompt were there

	// Where it is, for the paths in errors. Deeper levels are counted and not
	// told.
	steps [32]step
	level int
}

// step is a member of the body, and the element of it where it is an array.
type step struct {
	member string
	index  int // -1 before the first element and in an object
}

func (r *reader) push(member string) {
	if r.level < len(r.steps) {
		r.steps[r.level] = step{member, -1}
	}
	r.level++
}

func (r *reader) pop() { r.level-- }

// more is More for the array that was pushed.
func (r *reader) more() bool {
	if !r.More() {
		return false
	}
	if r.level <= len(r.steps) {
		r.steps[r.level-1].index++
	}
	return true
}

// object is more for arrays that hold nothing but objects.
func (r *reader) object() bool {
	if !r.more() {
		return false
	}
	if r.Peek() != Object {
		r.wrong("", "an object")
		return false
	}
	return true
}

// path names a member of what is being read, or the thing itself, for an error.
func (r *reader) path(member string) string {
	var b []byte
	for _, s := range r.steps[:min(r.level, len(r.steps))] {
		if s.member != "" && len(b) > 0 {
			b = append(b, '.')
		}
		b = append(b, s.member...)
		if s.index >= 0 {
			b = append(b, '[')
			b = strconv.AppendInt(b, int64(s.index), 10)
			b = append(b, ']')
		}
	}
	if member != "" && len(b) > 0 {
		b = append(b, '.')
	}
	return string(append(b, member...))
}

// distinct refuses a key that was there before. The search is linear: the
// number of members is limited.
func (r *reader) distinct(key []byte, at int) {
	for _, k := range r.req.members {
		if bytes.Equal(k, key) {
			r.fail(printable(key), at, "must not be given twice")
			return
		}
	}
	if len(r.req.members) == r.lim.MaxMembers {
		r.fail("", at, "more than %d members", r.lim.MaxMembers)
		return
	}
	r.req.members = append(r.req.members, key)
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

// once refuses a member that came before in the same object. Each member below
// the top level that is read has a bit.
func (r *reader) once(seen *int, bit int, key []byte) {
	if *seen&bit != 0 {
		r.fail(r.path(string(key)), r.pos, "must not be given twice")
	}
	*seen |= bit
}

// wrong says what the member of what is being read, or with no name the thing
// itself, should have been. A value that is not even JSON is told as such.
func (r *reader) wrong(member, wanted string) {
	at := r.pos
	if r.Peek() == Invalid {
		r.unexpected("a value")
		return
	}
	if r.Skip(); r.err == nil {
		r.fail(r.path(member), at, "must be %s", wanted)
	}
}

// isObject tells whether an object comes next; a null is taken, and anything
// else refused.
func (r *reader) isObject(field string) bool {
	if r.null(nil) {
		return false
	}
	if r.Peek() != Object {
		r.wrong(field, "an object")
		return false
	}
	return true
}

// isArray is isObject for arrays.
func (r *reader) isArray(field string) bool {
	if r.null(nil) {
		return false
	}
	if r.Peek() != Array {
		r.wrong(field, "an array")
		return false
	}
	return true
}

// null takes a null, if there is one, and notes where it is.
func (r *reader) null(span *Span) bool {
	if r.Peek() != Null {
		return false
	}
	at := r.Skip()
	if span != nil {
		*span = at
	}
	return true
}

func (r *reader) boolean(field string) bool {
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
func (r *reader) text(field string) Span {
	if r.null(nil) {
		return Span{}
	}
	if r.Peek() != String {
		r.wrong(field, "a string")
		return Span{}
	}
	return r.String()
}

// textIfString is for members that only some providers know: whatever is not a
// string is theirs to judge.
func (r *reader) textIfString() Span {
	isString := r.Peek() == String
	span := r.Skip()
	if !isString {
		return Span{}
	}
	return span
}

// limit reads a positive integer or null. The key's span is found by walking
// back over the colon, which is cheaper than keeping it for each member.
func (r *reader) limit(field string, most int64) Int {
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
func (r *reader) keyBefore(pos int) Span {
	end := bytes.LastIndexByte(r.body[:pos], '"')
	start := bytes.LastIndexByte(r.body[:end], '"')
	return Span{start, end + 1}
}

// Everything that is counted goes through the four below, which hold the limit
// on their number.

func (r *reader) count(text Span) Span {
	if text.IsZero() || r.full() {
		return Span{}
	}
	r.req.Texts = append(r.req.Texts, text)
	return text
}

// schema takes the next value as JSON that is counted as it is written.
func (r *reader) schema() {
	if r.null(nil) {
		return
	}
	if span := r.Skip(); !r.full() {
		r.req.Schemas = append(r.req.Schemas, span)
	}
}

func (r *reader) item(item Item) {
	if !r.full() {
		r.req.Items = append(r.req.Items, item)
	}
}

func (r *reader) message(m Message) {
	if r.err == nil && len(r.req.Messages) >= r.lim.MaxMessages {
		r.fail(r.path(""), r.pos, "is one of more than %d messages", r.lim.MaxMessages)
	}
	if r.err == nil {
		m.EndText = len(r.req.Texts)
		r.req.Messages = append(r.req.Messages, m)
	}
}

// full is also true after an error.
func (r *reader) full() bool {
	q := r.req
	if r.err == nil && len(q.Texts)+len(q.Items)+len(q.Schemas) >= r.lim.MaxTexts {
		r.fail(r.path(""), r.pos, "has more than %d texts and parts before it", r.lim.MaxTexts)
	}
	return r.err != nil
}
