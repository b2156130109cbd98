package jsonscan

// inputs reads what Completions and Embeddings take: a string, an array of
// strings, an array of token ids, or an array of arrays of token ids.
func (r *reader) inputs(field string) {
	switch r.Peek() {
	case Null:
		r.Skip()
		return
	case String:
		r.count(r.String())
		r.given++
		return
	case Array:
	default:
		r.wrong(field, "a string, an array of strings or an array of token ids")
		return
	}
	r.given++
	at := r.pos
	r.push(field)
	r.Array()
	n, first := 0, Invalid
	for ; r.more(); n++ {
		kind := r.Peek()
		if n == 0 {
			first = kind
		}
		r.oneInput(kind, first)
	}
	r.pop()
	switch {
	case r.err != nil:
	case n == 0:
		r.fail(field, at, "must not be empty")
	case first == Number:
	case n > r.lim.MaxTexts:
		r.fail(field, at, "has more than %d elements", r.lim.MaxTexts)
	default:
		r.req.Inputs = int64(n)
	}
}

// oneInput reads an element, which must be of the kind of the first one.
func (r *reader) oneInput(kind, first Kind) {
	switch {
	case kind != first:
		r.wrong("", "of the same type as the elements before")
	case kind == String:
		r.count(r.String())
	case kind == Number:
		r.tokenID()
	case kind == Array:
		r.push("")
		r.Array()
		for r.more() {
			r.tokenID()
		}
		r.pop()
	default:
		r.wrong("", "a string, a token id or an array of token ids")
	}
}

func (r *reader) tokenID() {
	if r.Peek() != Number {
		r.wrong("", "a token id")
		return
	}
	at := r.pos
	if n, ok := r.Int(); !ok || n < 0 {
		r.fail(r.path(""), at, "must be a token id")
	}
	r.req.TokenIDs++
}
