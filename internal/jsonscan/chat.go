package jsonscan

// Limits bound what one body may make the scanner do and keep. Zero values are
// the defaults.
type Limits struct {
	MaxDepth    int   // nested arrays and objects, default 64
	MaxMembers  int   // members of the top-level object, default 256
	MaxMessages int   // default 16,384
	MaxTexts    int   // texts and content parts over all messages, default 131,072
	MaxN        int64 // the largest n, default 128
}

// MaxTokens is the largest output cap that is accepted. It keeps the sums of
// caps and counts far away from overflow.
const MaxTokens = 1 << 31

func (l Limits) withDefaults() Limits {
	if l.MaxDepth == 0 {
		l.MaxDepth = DefaultMaxDepth
	}
	if l.MaxMembers == 0 {
		l.MaxMembers = 256
	}
	if l.MaxMessages == 0 {
		l.MaxMessages = 16_384
	}
	if l.MaxTexts == 0 {
		l.MaxTexts = 131_072
	}
	if l.MaxN == 0 {
		l.MaxN = 128
	}
	return l
}

// Chat is what a gateway needs to know of a chat completion request. Spans
// refer to the body that was scanned. A member that is null counts as not
// given; its span then covers the null, so that it can be replaced.
type Chat struct {
	Model     string // unescaped, never empty
	ModelSpan Span
	Insert    int // just behind the opening '{': where new members, each with a comma behind it, may be put

	Stream        bool
	StreamOptions StreamOptions

	MaxTokens           Int
	MaxCompletionTokens Int
	N                   int64 // 1 unless given

	User         Span   // a string, or absent
	MockResponse Span   // a string, or absent
	Tags         []Span // the strings of tags and metadata.tags
	Schemas      []Span // tools, functions and response_format.json_schema as written

	Messages []Message
	Texts    []Span // every string that is counted, over all messages in order
	Items    []Item // every content part that is not text
	Names    int    // messages that carry a name

	members [][]byte
}

// StreamOptions is the member of that name.
type StreamOptions struct {
	Span             Span // an object or null
	Object           bool // false where it is absent or null
	Empty            bool // it is {}
	IncludeUsage     bool
	IncludeUsageSpan Span // the value of include_usage
}

// Int is an output cap: its key and value as written.
type Int struct {
	Key, Span Span
	Value     int64
	Set       bool // false where it is absent or null
}

// Message is one element of messages. Its texts are
// Chat.Texts[FirstText:EndText], the role and the name among them.
type Message struct {
	Span, Role, Name, Content Span // Name and Content may be absent or null
	FirstText, EndText        int
}

// ItemKind is what a content part carries instead of text.
type ItemKind uint8

// Other is a part of a type that is not known here.
const (
	Other ItemKind = iota
	Image
	Audio
	File
)

// Item is a content part that is counted by a rule, never as text.
type Item struct {
	Kind   ItemKind
	Span   Span // the whole part
	Data   Span // the URL or the base64 data: a string, or absent
	Detail Span // an image's detail: a string, or absent
}

// OutputCap is the output cap that the client gave, ok false where it gave
// none. Where both members are given it is the larger: upstreams differ in
// which one they obey.
func (c *Chat) OutputCap() (limit int64, ok bool) {
	return max(c.MaxTokens.Value, c.MaxCompletionTokens.Value), c.MaxTokens.Set || c.MaxCompletionTokens.Set
}

// ScanChat validates body and reads it as a chat completion request. The error
// is an *Error.
func ScanChat(body []byte, lim Limits) (*Chat, error) {
	c := new(Chat)
	if err := c.Scan(body, lim); err != nil {
		return nil, err
	}
	return c, nil
}

// Scan is ScanChat into a Chat that may have been used before: its slices are
// reused, so that a pooled Chat costs one allocation, for the model's name. It
// must not be used by two goroutines at once. After an error its fields mean
// nothing.
func (c *Chat) Scan(body []byte, lim Limits) error {
	c.Reset()
	r := chatReader{lim: lim.withDefaults(), chat: c}
	r.Scanner = NewScanner(body, r.lim.MaxDepth)
	r.request()
	r.End()
	return r.Err()
}

// Reset forgets the last body and keeps the memory.
func (c *Chat) Reset() {
	clear(c.members)
	*c = Chat{
		N:        1,
		Tags:     c.Tags[:0],
		Schemas:  c.Schemas[:0],
		Messages: c.Messages[:0],
		Texts:    c.Texts[:0],
		Items:    c.Items[:0],
		members:  c.members[:0],
	}
}
