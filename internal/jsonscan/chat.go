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

// Chat is a chat completion request.
type Chat struct{ Request }

// ScanChat validates body and reads it as a chat completion request. The error
// is an *Error.
func ScanChat(body []byte, lim Limits) (*Chat, error) {
	c := new(Chat)
	if err := c.Scan(body, lim); err != nil {
		return nil, err
	}
	return c, nil
}

// Scan is ScanChat into a Chat that may have been used before, see Request.
func (c *Chat) Scan(body []byte, lim Limits) error {
	return c.Request.Scan(body, ChatCompletions, lim)
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
	Encrypted // text that only the provider can read, such as its reasoning
)

// Item is a content part that is counted by a rule, never as text.
type Item struct {
	Kind   ItemKind
	Span   Span // the whole part
	Data   Span // the URL, the data URL or the base64 data: a string, or absent
	Detail Span // an image's detail: a string, or absent
}
