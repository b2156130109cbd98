package openai

import (
	"bytes"
	"hash/maphash"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/money"
)

// EventKind says what one event of a stream is.
type EventKind uint8

// Unknown events are passed on: they are no JSON object, or JSON that is broken.
const (
	Unknown   EventKind = iota
	Chunk               // a part of the answer
	UsageOnly           // usage without any choice: for a client that asked for it
	Failed              // an error envelope in a stream that began with 200
	Done                // [DONE]
)

// Event is what one event was.
type Event struct {
	Kind    EventKind
	Content bool // it carries something the model wrote
	Finish  bool // it carries a finish_reason
}

// Observer watches the events of one answer's stream: it knows what the client
// has been sent, and what it cost. It keeps the model's text, up to 512 KiB, for
// the case that usage never comes. It must not be used by two goroutines at once.
type Observer struct {
	id       string
	model    string
	usage    money.Usage
	report   Report
	rejected bool
	err      *Error

	started  bool
	finished bool
	done     bool
	deltas   int64

	lanes  lanes
	reader chunkReader // kept here so that an event costs no allocation
}

// NewObserver makes an Observer for one stream. count counts the tokens of a
// text in the encoding of the answer's model.
func NewObserver(count func(text []byte) int) *Observer {
	return &Observer{lanes: lanes{count: count, seed: maphash.MakeSeed()}}
}

// Reset makes the Observer ready for another stream and keeps its memory.
func (o *Observer) Reset(count func(text []byte) int) {
	o.lanes.reset(count)
	*o = Observer{lanes: o.lanes}
}

// ID is the answer's id, empty until an event has told it.
func (o *Observer) ID() string { return o.id }

// Model is the name that the upstream answers under.
func (o *Observer) Model() string { return o.model }

// Usage is the last usage that could be believed; ok is false where there was
// none, and the answer is booked by OutputTokens.
func (o *Observer) Usage() (u money.Usage, ok bool) { return o.usage, o.report == Reported }

// UsageRejected tells whether a usage came that could not be believed.
func (o *Observer) UsageRejected() bool { return o.rejected }

// Err is the error envelope that came, or nil.
func (o *Observer) Err() *Error { return o.err }

// Started tells whether anything that the model wrote has come.
func (o *Observer) Started() bool { return o.started }

// Finished tells whether a finish_reason has come: an answer without [DONE] or
// usage is then still whole.
func (o *Observer) Finished() bool { return o.finished }

// Done tells whether [DONE] has come.
func (o *Observer) Done() bool { return o.done }

// Deltas is the number of events that carried text: a cheap measure of progress
// while the stream runs, near the number of tokens for most upstreams.
func (o *Observer) Deltas() int64 { return o.deltas }

// OutputTokens counts everything that the model has written so far. It costs
// time: call it at the end, when Usage has nothing.
func (o *Observer) OutputTokens() int64 { return o.lanes.tokens() }

// Observe reads the data of one event, its lines joined. The data is not kept.
func (o *Observer) Observe(data []byte) Event {
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		o.done = true
		return Event{Kind: Done}
	}
	o.reader = chunkReader{Scanner: jsonscan.NewScanner(data, 0), observer: o, data: data}
	defer func() { o.reader = chunkReader{} }()
	r := &o.reader
	if r.Peek() != jsonscan.Object {
		return Event{}
	}
	r.chunk()
	if r.End(); r.Err() != nil && r.err == nil {
		return Event{}
	}
	return o.take(r)
}

// take draws the conclusions from an event that has been read.
func (o *Observer) take(r *chunkReader) Event {
	if r.content {
		o.started = true
		o.deltas++
	}
	o.finished = o.finished || r.finish
	switch r.report {
	case Reported:
		o.usage, o.report = r.usage, Reported
	case Rejected:
		o.rejected = true
	}
	ev := Event{Kind: Chunk, Content: r.content, Finish: r.finish}
	switch {
	case r.err != nil:
		o.err = r.err
		ev.Kind = Failed
	case r.report != NoReport && r.choices == 0:
		ev.Kind = UsageOnly
	}
	return ev
}

// chunkReader reads one event into an Observer.
type chunkReader struct {
	jsonscan.Scanner
	observer *Observer
	data     []byte

	choices int
	choice  int64 // index of the choice being read
	content bool
	finish  bool
	usage   money.Usage
	report  Report
	err     *Error
}

func (r *chunkReader) chunk() {
	o := r.observer
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "id":
			r.nameOnce(&o.id)
		case "model":
			r.nameOnce(&o.model)
		case "usage":
			r.usage, r.report = readUsage(&r.Scanner)
		case "error":
			r.err = readError(&r.Scanner, r.data)
		case "choices":
			r.elements(r.oneChoice)
		default:
			r.Skip()
		}
	}
}

// nameOnce takes a name that every chunk repeats.
func (r *chunkReader) nameOnce(name *string) {
	if *name != "" {
		r.Skip()
		return
	}
	*name = word(&r.Scanner, r.data)
}

// elements reads an array of objects; anything else is skipped.
func (r *chunkReader) elements(one func()) {
	if r.Peek() != jsonscan.Array {
		r.Skip()
		return
	}
	r.Array()
	for r.More() {
		if r.Peek() != jsonscan.Object {
			r.Skip()
			continue
		}
		one()
	}
}

// oneChoice takes the index wherever it stands: the delta is read when the
// choice has been seen whole.
func (r *chunkReader) oneChoice() {
	r.choices++
	r.choice = 0
	var delta, legacy jsonscan.Span
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		kind := r.Peek()
		switch string(key) {
		case "index":
			r.choice = r.integer()
		case "delta":
			delta = r.Skip()
		case "text":
			legacy = r.Skip()
		case "finish_reason":
			r.finish = r.finish || kind == jsonscan.String
			r.Skip()
		default:
			r.Skip()
		}
	}
	if !delta.IsZero() {
		r.within(delta, r.delta)
	}
	if !legacy.IsZero() {
		r.within(legacy, func() { r.text(laneContent, 0) })
	}
}

// within reads a value that was skipped before.
func (r *chunkReader) within(span jsonscan.Span, read func()) {
	outer := r.Scanner
	r.Scanner = jsonscan.NewScanner(r.data[:span.End], 0)
	r.Seek(span.Start)
	read()
	r.Scanner = outer
}

func (r *chunkReader) integer() int64 {
	if r.Peek() != jsonscan.Number {
		r.Skip()
		return 0
	}
	n, _ := r.Int()
	return n
}

func (r *chunkReader) delta() {
	if r.Peek() != jsonscan.Object {
		r.Skip()
		return
	}
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "content":
			r.text(laneContent, 0)
		case "reasoning_content", "reasoning":
			r.text(laneReasoning, 0)
		case "refusal":
			r.text(laneRefusal, 0)
		case "tool_calls":
			r.elements(r.toolCall)
		case "function_call":
			if r.Peek() == jsonscan.Object {
				r.function(0)
				continue
			}
			r.Skip()
		default:
			r.Skip()
		}
	}
}

// toolCall finds out which call a fragment belongs to before it takes the
// fragment: by index, and by id where a provider repeats an index.
func (r *chunkReader) toolCall() {
	var id, function jsonscan.Span
	index := int64(0)
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		kind := r.Peek()
		switch string(key) {
		case "index":
			index = r.integer()
		case "id":
			if span := r.Skip(); kind == jsonscan.String {
				id = span
			}
		case "function", "custom":
			if span := r.Skip(); kind == jsonscan.Object {
				function = span
			}
		default:
			r.Skip()
		}
	}
	call := r.observer.lanes.call(r.choice, index, id.Of(r.data))
	if !function.IsZero() {
		r.within(function, func() { r.function(call) })
	}
}

func (r *chunkReader) function(call int) {
	r.Object()
	for key, ok := r.Key(); ok; key, ok = r.Key() {
		switch string(key) {
		case "name":
			r.text(laneName, call)
		case "arguments", "input":
			r.text(laneArguments, call)
		default:
			r.Skip()
		}
	}
}

// text takes a string that the model wrote.
func (r *chunkReader) text(kind laneKind, call int) {
	if r.Peek() != jsonscan.String {
		r.Skip()
		return
	}
	span := r.String()
	if span.Len() <= len(`""`) {
		return
	}
	r.content = true
	r.observer.lanes.write(laneKey{r.choice, call, kind}, r.data, span)
}
