// Package sse cuts an event stream (text/event-stream) into its events as the
// bytes arrive, and keeps each event's bytes as they came, so that a proxy can
// forward them unchanged, read their data, and leave one out.
package sse

import (
	"bytes"
	"errors"
	"fmt"
)

// DefaultMaxEvent is the largest event, in bytes as received, unless a Config
// says otherwise.
const DefaultMaxEvent = 16 << 20

// ErrEventTooLarge is in the error of a stream with an event over the limit.
var ErrEventTooLarge = errors.New("event too large")

// Config of a Scanner.
type Config struct {
	MaxEvent int // largest event in bytes, 0 is DefaultMaxEvent
}

// Event is one block of the stream, up to and with its blank line. Raw and Data
// are valid until the next call of any method.
type Event struct {
	// Raw is the block as it came. The Raws of all events in order are the
	// stream, byte for byte.
	Raw []byte
	// Data is the event's data, several lines joined by one LF. HasData is false
	// for a block that dispatches nothing: comments, a lone blank line.
	Data    []byte
	HasData bool
	// Name is the event field's value, empty for the usual "message".
	Name []byte
	// Complete is false only for what Flush returns: the blank line was missing.
	Complete bool
}

// span is a range relative to the start of the current block.
type span struct{ from, to int }

// Scanner finds the events of one stream. Use:
//
//	s.Feed(chunk)
//	for ev, ok := s.Next(); ok; ev, ok = s.Next() { … }
//	if s.Err() != nil { … }
//
// and at the end of the stream Flush. It must not be used by two goroutines at
// once.
type Scanner struct {
	max int

	// cur is what is not yet scanned through: the caller's chunk as long as whole
	// events fit in it, otherwise own, where the rest is gathered.
	cur      []byte
	borrowed bool
	own      []byte

	start int // of the current block in cur
	line  int // of the current line in cur
	seen  int // cur[line:seen] holds no line end

	begun   bool // past the first line: no byte order mark any more
	swallow bool // the last block ended in a lone CR: an LF that follows belongs to it
	loneCR  bool // the last line of this block ended in a lone CR

	dataLines int
	data      span   // of the first data line
	joined    []byte // all of them, from the second on
	name      span

	err error
}

// NewScanner makes a Scanner for one stream.
func NewScanner(cfg Config) *Scanner {
	if cfg.MaxEvent == 0 {
		cfg.MaxEvent = DefaultMaxEvent
	}
	return &Scanner{max: cfg.MaxEvent}
}

// Feed adds bytes of the stream. The chunk is not copied where it can be
// avoided: it must stay unchanged until Next has returned false.
func (s *Scanner) Feed(chunk []byte) {
	if s.start == len(s.cur) {
		s.rebase(0)
		s.cur, s.borrowed = chunk, true
		return
	}
	s.keep()
	s.own = append(s.own, chunk...)
	s.cur = s.own
}

// keep moves what is left of cur to the start of own.
func (s *Scanner) keep() {
	rest := s.cur[s.start:]
	if s.borrowed || s.start > 0 {
		s.own = append(s.own[:0], rest...)
	}
	s.rebase(s.start)
	s.cur, s.borrowed = s.own, false
}

// rebase moves the offsets when n bytes go away at the front; after a block
// that is all of them.
func (s *Scanner) rebase(n int) {
	if s.start == len(s.cur) {
		s.start, s.line, s.seen = 0, 0, 0
		s.shrink()
		return
	}
	s.start, s.line, s.seen = s.start-n, s.line-n, s.seen-n
}

// shrink lets go of a buffer that one long event has grown.
func (s *Scanner) shrink() {
	const most = 256 << 10
	if cap(s.own) > most {
		s.own = nil
	}
	if cap(s.joined) > most {
		s.joined = nil
	}
}

// Err is the error that ended the stream early, or nil. It wraps
// ErrEventTooLarge.
func (s *Scanner) Err() error { return s.err }

// Next returns the next complete event; ok is false where more bytes are needed
// or Err is set.
func (s *Scanner) Next() (ev Event, ok bool) {
	for s.err == nil {
		end, next := s.lineEnd()
		if next == 0 {
			break
		}
		blank := s.takeLine(s.cur[s.line:end])
		lone := s.cur[end] == '\r' && next == end+1
		s.line, s.seen = next, next
		if blank {
			return s.event(next, lone)
		}
		s.loneCR = lone
	}
	if s.err == nil && len(s.cur)-s.start > s.max {
		s.tooLarge()
	}
	if s.err == nil && s.start < len(s.cur) && s.borrowed {
		s.keep()
	}
	return Event{}, false
}

// lineEnd finds the end of the current line and the start of the one behind it;
// next is 0 while that is not known. A CR at the very end of what has arrived
// may be half of a CRLF, and it has to be known before an event is handed out,
// or the event would depend on how the stream was cut. The exception is a blank
// line behind a line that ended in a lone CR: such a stream has no LFs to wait
// for, and waiting would hold each event back until the next one.
func (s *Scanner) lineEnd() (end, next int) {
	if s.swallow && s.line == s.start && s.line < len(s.cur) {
		s.swallow = false
		if s.cur[s.line] == '\n' {
			s.line++
			s.seen = s.line
		}
	}
	n := indexLineEnd(s.cur[s.seen:])
	if n < 0 {
		s.seen = len(s.cur)
		return 0, 0
	}
	end = s.seen + n
	switch {
	case s.cur[end] == '\n', s.loneCR && end == s.line:
		return end, end + 1
	case end+1 == len(s.cur):
		s.seen = end
		return 0, 0
	case s.cur[end+1] == '\n':
		return end, end + 2
	}
	return end, end + 1
}

// indexLineEnd is the index of the first CR or LF, -1 where there is none. It
// goes by windows, so that a stream full of one of them is not searched to its
// end for the other again and again.
func indexLineEnd(b []byte) int {
	const window = 256
	for at := 0; at < len(b); at += window {
		w := b[at:min(at+window, len(b))]
		lf := bytes.IndexByte(w, '\n')
		if lf >= 0 {
			w = w[:lf]
		}
		if cr := bytes.IndexByte(w, '\r'); cr >= 0 {
			return at + cr
		}
		if lf >= 0 {
			return at + lf
		}
	}
	return -1
}

// takeLine reads one line without its end and tells whether it was blank.
func (s *Scanner) takeLine(line []byte) (blank bool) {
	at := s.line - s.start
	if !s.begun {
		s.begun = true
		if rest, ok := bytes.CutPrefix(line, []byte("\ufeff")); ok {
			line = rest
			at += len("\ufeff")
		}
	}
	if len(line) == 0 {
		return true
	}
	field, value, hasColon := bytes.Cut(line, []byte{':'})
	if hasColon {
		at += len(field) + 1
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
			at++
		}
	} else {
		at += len(line)
	}
	switch string(field) {
	case "data":
		s.takeData(span{at, at + len(value)}, value)
	case "event":
		s.name = span{at, at + len(value)}
	}
	return false
}

func (s *Scanner) takeData(at span, value []byte) {
	switch s.dataLines {
	case 0:
		s.data = at
	case 1:
		first := s.cur[s.start:][s.data.from:s.data.to]
		s.joined = append(append(s.joined[:0], first...), '\n')
		s.joined = append(s.joined, value...)
	default:
		s.joined = append(append(s.joined, '\n'), value...)
	}
	s.dataLines++
}

// event hands out cur[start:next] and starts the next block.
func (s *Scanner) event(next int, lone bool) (Event, bool) {
	raw := s.cur[s.start:next]
	if len(raw) > s.max {
		s.tooLarge()
		return Event{}, false
	}
	ev := Event{
		Raw:      raw,
		HasData:  s.dataLines > 0,
		Name:     raw[s.name.from:s.name.to],
		Complete: true,
	}
	switch s.dataLines {
	case 0:
	case 1:
		ev.Data = raw[s.data.from:s.data.to]
	default:
		ev.Data = s.joined
	}
	s.start = next
	s.swallow, s.loneCR = lone, false
	s.dataLines, s.name = 0, span{}
	return ev, true
}

// Flush returns what is left at the end of the stream as an event that is not
// Complete. The standard would drop it; a provider that forgets the last blank
// line means it.
func (s *Scanner) Flush() (ev Event, ok bool) {
	if s.err != nil || s.start == len(s.cur) {
		return Event{}, false
	}
	line := s.cur[s.line:]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	blank := s.takeLine(line)
	ev, ok = s.event(len(s.cur), false)
	ev.Complete = blank && len(line) < len(s.cur)-s.line
	return ev, ok
}

func (s *Scanner) tooLarge() {
	s.err = fmt.Errorf("cannot read an event of more than %d bytes: %w", s.max, ErrEventTooLarge)
}
