package jsonscan

// Shape is which endpoint's body is read. Shapes share one reader: they differ
// in the top-level members that are read and in what must be there.
type Shape uint8

const (
	// ChatCompletions is OpenAI's /v1/chat/completions.
	ChatCompletions Shape = iota
	// Completions is OpenAI's /v1/completions: prompt is a string, an array of
	// strings, an array of token ids, or an array of arrays of token ids.
	Completions
	// Embeddings is OpenAI's /v1/embeddings: input as prompt above.
	Embeddings
	// Responses is OpenAI's /v1/responses and /v1/responses/input_tokens: input is
	// a string or an array of items.
	Responses
	// Messages is Anthropic's /v1/messages and /v1/messages/count_tokens.
	Messages
	// TokenCounter is LiteLLM's /utils/token_counter: exactly one of prompt (as
	// above), messages (OpenAI's or Anthropic's) and contents (Gemini's), with
	// tools and system where there are some.
	TokenCounter
)

// Request is what a gateway needs to know of a request, whatever its shape.
// Spans refer to the body that was scanned. A member that is null counts as not
// given; its span then covers the null, so that it can be replaced.
type Request struct {
	Shape Shape

	Model     string // unescaped, never empty
	ModelSpan Span
	Insert    int // just behind the opening '{': where new members, each with a comma behind it, may be put

	Stream        bool
	StreamOptions StreamOptions

	MaxTokens           Int   // max_tokens; max_output_tokens of Responses
	MaxCompletionTokens Int   // ChatCompletions only
	N                   int64 // 1 unless given; the larger of n and best_of

	User         Span   // a string, or absent; metadata.user_id of Messages
	MockResponse Span   // a string, or absent
	Tags         []Span // the strings of tags and metadata.tags

	// Messages are the elements that cost an overhead: those of messages, input or
	// contents, and system or instructions, or an input that is one string, as an
	// element without a role. Completions and Embeddings have none.
	Messages []Message
	Names    int    // messages that carry a name
	Texts    []Span // every string that is counted, in order
	Schemas  []Span // JSON that is counted as it is written: tools, schemas, a tool call's arguments where they are an object
	Items    []Item // every content part that is counted by a rule instead of as text
	TokenIDs int64  // token ids that were given instead of texts
	Inputs   int64  // the prompts of Completions, the inputs of Embeddings; otherwise 1

	// Inexact is true where the model reads more than the body holds or reads it
	// in a form that only the provider knows: a previous response, a
	// conversation, a stored prompt, a suffix, items of server-side tools.
	Inexact bool

	members   [][]byte
	lastModel string // the name is the same most of the time
}

// Scan validates body and reads it as a request of that shape. The error is an
// *Error.
func Scan(body []byte, shape Shape, lim Limits) (*Request, error) {
	r := new(Request)
	if err := r.Scan(body, shape, lim); err != nil {
		return nil, err
	}
	return r, nil
}

// Scan is Scan into a Request that may have been used before: its slices are
// reused, so that a pooled Request costs no allocation unless the model changes.
// It must not be used by two goroutines at once. After an error its fields mean
// nothing.
func (q *Request) Scan(body []byte, shape Shape, lim Limits) error {
	q.Reset()
	q.Shape = shape
	r := reader{lim: lim.withDefaults(), req: q}
	r.Scanner = NewScanner(body, r.lim.MaxDepth)
	r.request()
	r.End()
	return r.Err()
}

// Reset forgets the last body and keeps the memory.
func (q *Request) Reset() {
	clear(q.members)
	*q = Request{
		N:        1,
		Inputs:   1,
		Tags:     q.Tags[:0],
		Schemas:  q.Schemas[:0],
		Messages: q.Messages[:0],
		Texts:    q.Texts[:0],
		Items:    q.Items[:0],
		members:  q.members[:0],

		lastModel: q.lastModel,
	}
}

// OutputCap is the output cap of one answer that the client gave, ok false
// where it gave none. Where two members are given it is the larger: upstreams
// differ in which one they obey.
func (q *Request) OutputCap() (limit int64, ok bool) {
	return max(q.MaxTokens.Value, q.MaxCompletionTokens.Value), q.MaxTokens.Set || q.MaxCompletionTokens.Set
}

// Answers is how many answers of the output cap the request can cause: n, for
// each prompt where there are several.
func (q *Request) Answers() int64 { return q.N * q.Inputs }
