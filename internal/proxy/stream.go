package proxy

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/sse"
	"github.com/penstock-gateway/penstock/internal/upstream"
)

// stream is the body of a streamed answer. fasthttp's connection goroutine pulls
// from it, so that no goroutine, pipe or buffer stands between the upstream's
// bytes and the client's.
type stream struct {
	r        *request
	resp     *upstream.Response
	scanner  *sse.Scanner
	observer *openai.Observer
	buf      *[]byte // what is read from the upstream

	out  []byte // what the client gets next
	sent int    // of out
	end  error  // what Read returns once out is drained; nil while more may come
	any  bool   // something was put out
}

// errAborted ends the client's connection without the closing chunk, so that half
// an answer never looks like a whole one.
var errAborted = errors.New("the upstream broke off")

const streamReadSize = 16 << 10

func newStream(r *request, resp *upstream.Response) *stream {
	return &stream{
		r: r, resp: resp, scanner: sse.NewScanner(sse.Config{}), observer: openai.NewObserver(r.counter()),
		buf: r.p.streamBuffers.take(),
	}
}

// answerStream waits for the first event before it commits to status 200: until
// then an upstream's failure is still a status of its own.
func (r *request) answerStream(resp *upstream.Response) {
	s := newStream(r, resp)
	for len(s.out) == 0 && s.end == nil {
		s.fill()
	}
	if refusal := s.failedEarly(); refusal != nil {
		s.release()
		r.ctx.Response.Header.Del("Content-Type")
		r.refuseSettled(refusal)
		return
	}
	r.commonHeaders()
	r.ctx.Response.Header.Set("Cache-Control", "no-cache")
	r.ctx.Response.Header.Set("X-Accel-Buffering", "no")
	r.ctx.SetStatusCode(fasthttp.StatusOK)
	r.ctx.SetBodyStream(s, -1)
}

// failedEarly is the refusal for a stream that failed before anything was written
// by the model.
func (s *stream) failedEarly() *Refusal {
	if e := s.observer.Err(); e != nil && !s.observer.Started() {
		s.settleFailed(e)
		if refusal := s.r.hideError(e.Status); refusal != nil {
			return refusal
		}
		return &Refusal{Status: e.Status, Type: e.Type, Code: e.Code, Param: e.Param, Message: e.Message}
	}
	if s.end == nil || errors.Is(s.end, io.EOF) || s.any {
		return nil
	}
	return upstreamRefusal(s.end)
}

// Read gives the client's next bytes. fasthttp calls it outside of the handler, so that
// a bug of ours must be caught here to end this request only.
func (s *stream) Read(p []byte) (n int, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.r.p.logPanic(cause)
			s.r.abandon()
			s.end = errAborted
			n, err = 0, s.end
		}
	}()
	return s.read(p)
}

func (s *stream) read(p []byte) (int, error) {
	for s.sent == len(s.out) {
		if s.end != nil {
			return 0, s.end
		}
		s.out, s.sent = s.out[:0], 0
		s.fill()
	}
	n := copy(p, s.out[s.sent:])
	s.sent += n
	return n, nil
}

// fill reads once from the upstream and puts out what became complete.
func (s *stream) fill() {
	waiting := time.Now()
	n, err := s.resp.Read(*s.buf)
	s.r.upstream += time.Since(waiting)
	s.scanner.Feed((*s.buf)[:n])
	for ev, ok := s.scanner.Next(); ok && s.end == nil; ev, ok = s.scanner.Next() {
		s.event(ev)
	}
	if s.end != nil {
		return
	}
	if tooLarge := s.scanner.Err(); tooLarge != nil {
		err = tooLarge
	}
	if err == nil {
		return
	}
	if ev, ok := s.scanner.Flush(); ok {
		s.event(ev)
	}
	if s.end == nil {
		s.finish(err)
	}
}

// event decides what the client sees of one event.
func (s *stream) event(ev sse.Event) {
	if !ev.HasData {
		s.put(ev.Raw)
		return
	}
	seen := s.observer.Observe(ev.Data)
	if seen.Content {
		s.r.p.cfg.Metrics.DeliveredOutputTokens.Inc()
		if s.r.firstToken.IsZero() {
			s.r.firstToken = time.Now()
		}
	}
	switch seen.Kind {
	case openai.Done:
		s.finish(io.EOF)
	case openai.UsageOnly:
		if s.r.chat.StreamOptions.IncludeUsage {
			s.putEvent(ev)
		}
	case openai.Failed:
		s.putEvent(ev)
		s.finish(io.EOF) // nothing that follows makes it whole
	default:
		s.putEvent(ev)
	}
}

func (s *stream) put(raw []byte) {
	s.out = append(s.out, raw...)
	s.any = s.any || len(raw) > 0
}

// putEvent also closes an event whose blank line the upstream never sent: client
// libraries hand out an event only at its blank line.
func (s *stream) putEvent(ev sse.Event) {
	s.put(ev.Raw)
	if !ev.Complete {
		s.put([]byte("\n\n"))
	}
}

// finish ends the answer: whole when the upstream said so with [DONE] or a
// finish_reason, otherwise broken off. It books before the last bytes are given
// to the client.
func (s *stream) finish(err error) {
	whole := s.observer.Done() || errors.Is(err, io.EOF) && s.observer.Finished()
	switch {
	case whole && s.observer.Err() == nil:
		s.settleWhole()
		s.end = io.EOF
	case s.r.clientGone() || errors.Is(err, upstream.ErrCanceled):
		s.r.countAttempt("client_closed")
		s.r.settle(s.estimate(ledgerv1.SpendRecord_STATUS_CLIENT_CLOSED, statusClientClosed, "client_closed"))
		s.end = errAborted
	default:
		s.abort(err)
	}
}

func (s *stream) settleWhole() {
	o := outcome{status: ledgerv1.SpendRecord_STATUS_SUCCESS, httpStatus: fasthttp.StatusOK, upstreamID: s.observer.ID()}
	usage, told := s.observer.Usage()
	if told {
		o.usage = usage
	} else {
		o = s.estimate(o.status, o.httpStatus, "")
		if s.r.chat.StreamOptions.IncludeUsage {
			head := openai.Head{ID: s.observer.ID(), Model: s.r.chat.Model, Created: s.r.start.Unix()}
			s.out = openai.AppendUsageEvent(s.out, head, o.usage)
		}
	}
	s.r.countAttempt("ok")
	s.r.settle(o)
	s.put([]byte(openai.DoneEvent))
}

// abort tells the client that the answer is not whole, if it has seen any of it.
func (s *stream) abort(err error) {
	if e := s.observer.Err(); e != nil {
		s.settleFailed(e)
		s.end = errAborted
		return
	}
	refusal := upstreamRefusal(err)
	s.r.countAttempt(refusal.Code)
	s.r.settle(s.estimate(ledgerv1.SpendRecord_STATUS_UPSTREAM_ABORTED, refusal.Status, refusal.Code))
	s.r.p.cfg.Logger.Warn("upstream broke off", "request_id", s.r.id, "model_id", s.r.deployment.ID, "error", err)
	if s.any {
		s.put(refusal.wire().Event())
	}
	s.end = errAborted
	if !errors.Is(err, io.EOF) { // an end that comes too early is not the answer's end
		s.end = errors.Join(errAborted, err)
	}
}

func (s *stream) settleFailed(e *openai.Error) {
	s.r.countAttempt("error_event")
	s.r.settle(s.estimate(ledgerv1.SpendRecord_STATUS_UPSTREAM_ABORTED, e.Status, e.Code))
}

// estimate is the outcome of an answer whose usage never came: the counted prompt
// and the counted text that was delivered.
func (s *stream) estimate(status ledgerv1.SpendRecord_Status, httpStatus int, code string) outcome {
	if s.observer.UsageRejected() {
		s.r.p.cfg.Metrics.UsageRejected.With(s.r.group.Name).Inc()
	}
	return outcome{
		status: status, httpStatus: httpStatus, errorCode: code, upstreamID: s.observer.ID(), estimated: true,
		usage: money.Usage{Input: s.r.input, Output: s.observer.OutputTokens()},
	}
}

// drainTime is how long a finished stream waits for the upstream's own end, which
// keeps the connection usable.
const drainTime = 100 * time.Millisecond

// Close is called by fasthttp when the answer has been written, or could not be.
func (s *stream) Close() error {
	if s.end == nil {
		s.r.call.Cancel() // first: to count what was delivered takes its time
		s.finish(upstream.ErrCanceled)
	}
	if errors.Is(s.end, io.EOF) {
		s.r.call.Deadline = time.Now().Add(drainTime)
		for {
			if _, err := s.resp.Read(*s.buf); err != nil {
				break
			}
		}
	}
	s.release()
	s.r.end()
	return nil
}

func (s *stream) release() {
	s.resp.Close()
	if s.buf != nil {
		s.r.p.streamBuffers.put(s.buf)
		s.buf = nil
	}
}

// bufferPool keeps the read buffers of streams.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) take() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, streamReadSize)
	return &b
}

func (p *bufferPool) put(b *[]byte) { p.pool.Put(b) }
