package fakeupstream

import (
	"context"
	"io"
	"net/http"
)

// writer sends events and remembers the first failure.
type writer struct {
	out     io.Writer
	control *http.ResponseController
	paced   bool // each event leaves by itself, as a provider's do
	pending []byte
	err     error
}

// pendingBytes is what an answer without a pace collects before it is written: a write
// per event would be most of this program's time.
const pendingBytes = 16 << 10

func (w *writer) event(b []byte) {
	w.pending = append(w.pending, b...)
	if w.paced || len(w.pending) >= pendingBytes {
		w.flush()
	}
}

func (w *writer) flush() {
	if w.err != nil {
		return
	}
	_, w.err = w.out.Write(w.pending)
	w.pending = w.pending[:0]
	if z, ok := w.out.(interface{ Flush() error }); ok && w.err == nil { // a compressor holds bytes back too
		w.err = z.Flush()
	}
	if err := w.control.Flush(); w.err == nil {
		w.err = err
	}
}

// stream answers with events: role, deltas, finish reason, usage when asked, [DONE].
func (c *chat) stream(ctx context.Context, rw http.ResponseWriter, out io.Writer) {
	w := &writer{out: out, control: http.NewResponseController(rw), paced: c.mode.Pace > 0}
	shape := c.newShape()
	w.event(shape.event(`{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}`))
	broken := c.entry.CompletionTokens / 2
	for i := range c.entry.CompletionTokens {
		if i == broken && c.breaks(w, shape) {
			w.flush()
			if c.mode.Fault == FaultResetMid || c.mode.Fault == FaultStall {
				c.breakOff(ctx, rw)
			}
			return
		}
		if !pause(ctx, c.mode.Pace) {
			return
		}
		w.event(shape.delta(i, c.mode.DeltaBytes))
		if w.err != nil {
			return
		}
		c.entry.SentTokens++
	}
	c.end(w, shape)
	c.entry.Complete = w.err == nil && ctx.Err() == nil
}

// breaks does what a fault does in the middle; true: the answer is over.
func (c *chat) breaks(w *writer, shape *shape) bool {
	switch c.mode.Fault {
	case FaultResetMid, FaultStall:
		return true
	case FaultInvalidJSON:
		cut := shape.delta(0, 0)
		w.event(append(cut[:len(cut)/2:len(cut)/2], "\n\n"...)) // and goes on, as if nothing had been
		return false
	case FaultErrorEnvelope:
		b := append([]byte("data: "), errorEnvelope(http.StatusInternalServerError, "the fake provider was told to fail in the stream")...)
		w.event(append(b, "\n\n"...))
		return true
	}
	return false
}

// end sends what comes after the deltas.
func (c *chat) end(w *writer, shape *shape) {
	w.event(shape.event(`{"index":0,"delta":{},"logprobs":null,"finish_reason":"` + c.finishReason() + `"}`))
	if c.includeUsage && c.mode.Fault != FaultNoUsage {
		b := append([]byte(nil), shape.head...)
		b = append(b, `],"usage":`...)
		b = c.appendUsage(b)
		w.event(append(b, "}\n\n"...))
	}
	if c.mode.Fault != FaultNoDone {
		w.event([]byte("data: [DONE]\n\n"))
	}
	w.flush()
}

// shape is what all events of one answer have in common.
type shape struct {
	head []byte // `data: {…"choices":[`
	tail string
	buf  []byte // reused for each event
}

func (c *chat) newShape() *shape {
	s := &shape{head: c.appendHead([]byte("data: "), "chat.completion.chunk"), tail: "]}\n\n"}
	if c.includeUsage {
		s.tail = "],\"usage\":null}\n\n" // as the real API does once usage was asked for
	}
	return s
}

// event is valid until the next call.
func (s *shape) event(choice string) []byte {
	s.buf = append(append(append(s.buf[:0], s.head...), choice...), s.tail...)
	return s.buf
}

// delta is valid until the next call.
func (s *shape) delta(i, size int) []byte {
	s.buf = append(append(s.buf[:0], s.head...), `{"index":0,"delta":{"content":"`...)
	s.buf = appendText(s.buf, i, size)
	s.buf = append(append(s.buf, `"},"logprobs":null,"finish_reason":null}`...), s.tail...)
	return s.buf
}
