package jsonscan

import "bytes"

// part is an element of a message's content. All dialects' parts are read
// alike: what a part is can be told only at its end, since its type may come
// last, and upstreams are lenient towards each other's forms.
type part struct {
	item   Item
	kind   Span // the type
	source Span // where it is a string: data, or the words of a search result
	sealed Span // data, or text that only the provider can read
	seen   int

	carries   bool // one of the members that carry data was not null
	words     bool // it has text, so that it is known even if its type is not
	holdsText bool // what is a file by its type holds nothing but counted text
}

func (r *reader) part() {
	var p part
	start := r.pos
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		if !r.partWords(&p, key) && !r.partData(&p, key) {
			r.Skip()
		}
	}
	if r.err != nil {
		return
	}
	p.item.Span = Span{start, r.pos}
	r.whatPart(&p)
}

// whatPart decides what has been read.
func (r *reader) whatPart(p *part) {
	if !p.kind.IsZero() {
		if kind := r.itemKind(p.kind); kind != Other || p.item.Kind == Other {
			p.item.Kind = kind
		}
	}
	isWords := p.words && (!p.carries || p.holdsText || !p.source.IsZero())
	if p.item.Kind == Other {
		r.count(p.source)
		if !p.sealed.IsZero() {
			r.item(Item{Kind: Encrypted, Span: p.sealed, Data: p.sealed})
			isWords = true
		}
	} else {
		isWords = p.holdsText
		for _, data := range [...]Span{p.source, p.sealed} {
			if p.item.Data.IsZero() {
				p.item.Data = data
			}
		}
	}
	if !isWords || !p.item.Data.IsZero() {
		r.item(p.item)
	}
}

// partWords reads the members that are counted as they stand.
func (r *reader) partWords(p *part, key []byte) bool {
	switch string(key) {
	case "type":
		r.once(&p.seen, seenType, key)
		p.kind = r.typeOf()
	case "text":
		r.once(&p.seen, seenText, key)
		r.counted(key)
		p.words = true
	case "thinking":
		r.once(&p.seen, seenReasoning, key)
		r.count(r.textIfString())
		p.words = true
	case "refusal":
		r.once(&p.seen, seenRefusal, key)
		r.count(r.textIfString())
		p.words = true
	case "content":
		r.once(&p.seen, seenContent, key)
		r.nested("content")
		p.words = true
	case "input":
		r.once(&p.seen, seenInput, key)
		r.schema()
		p.words = true
	case "name":
		r.once(&p.seen, seenName, key)
		r.count(r.textIfString())
	case "title":
		r.once(&p.seen, seenTitle, key)
		r.count(r.textIfString())
	case "context":
		r.once(&p.seen, seenContext, key)
		r.count(r.textIfString())
	case "functionCall", "function_call":
		r.once(&p.seen, seenFunctionCall, key)
		r.geminiCall(string(key), "args")
		p.words = true
	case "functionResponse", "function_response":
		r.once(&p.seen, seenResponse, key)
		r.geminiCall(string(key), "response")
		p.words = true
	default:
		return false
	}
	return true
}

// partData reads the members that carry an image, audio or a file.
func (r *reader) partData(p *part, key []byte) bool {
	switch string(key) {
	case "data", "encrypted_content":
		r.once(&p.seen, seenData, key)
		if sealed := r.textIfString(); !sealed.IsZero() {
			p.sealed = sealed
		}
		return true
	case "detail":
		r.once(&p.seen, seenDetail, key)
		if detail := r.textIfString(); !detail.IsZero() {
			p.item.Detail = detail
		}
		return true
	}
	bit := carrier(key)
	if bit == 0 {
		return false
	}
	r.once(&p.seen, bit, key)
	if r.null(nil) {
		return true
	}
	if p.carries {
		r.fail(r.path(string(key)), r.pos, "must not be given beside other data")
	}
	p.carries = true
	switch kind := r.Peek(); {
	case kind == String && bit == seenSource:
		p.source = r.String()
	case kind == String:
		p.item.Data = r.String()
	case kind == Object:
		r.push(string(key))
		r.data(p)
		r.pop()
	default:
		r.Skip()
	}
	return true
}

// carrier is the bit of a member that carries data; 0 for all others.
func carrier(key []byte) int {
	switch string(key) {
	case "image_url":
		return seenImageURL
	case "input_audio":
		return seenInputAudio
	case "file":
		return seenFile
	case "file_data", "fileData":
		return seenFileData
	case "file_url":
		return seenFileURL
	case "inlineData", "inline_data":
		return seenInlineData
	case "source":
		return seenSource
	}
	return 0
}

// data reads the object in which a part carries a URL or base64.
func (r *reader) data(p *part) {
	var url, data, file, kind Span
	seen := 0
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "type":
			r.once(&seen, seenType, key)
			kind = r.textIfString()
		case "url":
			r.once(&seen, seenURL, key)
			url = r.textIfString()
		case "data":
			r.once(&seen, seenData, key)
			data = r.textIfString()
		case "file_data":
			r.once(&seen, seenFileData, key)
			file = r.textIfString()
		case "detail":
			r.once(&seen, seenDetail, key)
			p.item.Detail = r.textIfString()
		case "mimeType", "mime_type":
			r.once(&seen, seenMediaType, key)
			p.item.Kind = r.mediaKind(r.textIfString())
		case "content":
			r.once(&seen, seenContent, key)
			r.nested("content")
			p.words, p.holdsText = true, true
		default:
			r.Skip()
		}
	}
	if data.IsZero() {
		data = file
	}
	switch {
	case r.means(kind, "text"):
		r.count(data)
		p.words, p.holdsText = true, true
	case data.IsZero():
		p.item.Data = url
	default:
		p.item.Data = data
	}
}

// geminiCall reads a call or its answer: a name, and an object that is counted
// as it is written.
func (r *reader) geminiCall(member, object string) {
	r.callOf(member, object, func([]byte) { r.schema() })
}

func (r *reader) itemKind(kind Span) ItemKind {
	var buf []byte
	switch string(Unescaped(r.body, kind, &buf)) {
	case "image_url", "image", "input_image", "computer_screenshot":
		return Image
	case "input_audio", "audio":
		return Audio
	case "file", "input_file", "document":
		return File
	}
	return Other
}

// mediaKind is the kind of an item by its MIME type. What is neither image nor
// audio is a file.
func (r *reader) mediaKind(media Span) ItemKind {
	if media.IsZero() {
		return File
	}
	var buf []byte
	text := Unescaped(r.body, media, &buf)
	switch {
	case bytes.HasPrefix(text, []byte("image/")):
		return Image
	case bytes.HasPrefix(text, []byte("audio/")):
		return Audio
	}
	return File
}

// means tells whether the string at s is word.
func (r *reader) means(s Span, word string) bool {
	if s.IsZero() {
		return false
	}
	var buf []byte
	return string(Unescaped(r.body, s, &buf)) == word
}
