package openai

import (
	"hash/maphash"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
)

const (
	// maxText is how much of an answer's text is kept, over all lanes. It is more
	// than any model writes into one answer today; what goes beyond is counted at
	// the rate of what was kept.
	maxText = 512 << 10
	// maxLanes bounds what an upstream can make an Observer keep. What is beyond
	// goes into the last lane: such a count is an estimate.
	maxLanes = 256
	// maxIdle is the text buffer that a lane may take into its next stream.
	maxIdle = 64 << 10
)

type laneKind uint8

const (
	laneContent laneKind = iota
	laneReasoning
	laneRefusal
	laneName
	laneArguments
)

// laneKey names one text of an answer. The deltas of several interleave.
type laneKey struct {
	choice int64
	call   int
	kind   laneKind
}

type lane struct {
	key  laneKey
	text []byte
}

// lanes puts deltas together before they are counted: tokens run across them,
// so that the sum over single deltas would be too large. Nothing is counted
// while the stream runs, because usage nearly always comes.
type lanes struct {
	count func(text []byte) int
	seed  maphash.Seed
	list  []lane
	calls []toolCall
	kept  int64 // bytes over all lanes
	lost  int64 // bytes beyond maxText
}

// toolCall tells calls apart that share an index.
type toolCall struct {
	choice, index int64
	id            uint64
}

func (l *lanes) reset(count func(text []byte) int) {
	for i := range l.list {
		if t := l.list[i].text; cap(t) > maxIdle {
			l.list[i].text = nil
		} else {
			l.list[i].text = t[:0]
		}
	}
	l.count, l.kept, l.lost = count, 0, 0
	l.list, l.calls = l.list[:0], l.calls[:0]
}

// call numbers the calls of an answer. A fragment without an id belongs to the
// latest call of its index; an id that is new there begins another.
func (l *lanes) call(choice, index int64, id []byte) int {
	hash := uint64(0)
	if len(id) > len(`""`) {
		hash = maphash.Bytes(l.seed, id)
	}
	for i := len(l.calls) - 1; i >= 0; i-- {
		c := &l.calls[i]
		if c.choice == choice && c.index == index && (hash == 0 || c.id == hash || c.id == 0) {
			if c.id == 0 {
				c.id = hash
			}
			return i
		}
	}
	if len(l.calls) == maxLanes {
		return maxLanes - 1
	}
	l.calls = append(l.calls, toolCall{choice, index, hash})
	return len(l.calls) - 1
}

func (l *lanes) write(key laneKey, body []byte, span jsonscan.Span) {
	if l.kept+int64(span.Len()) > maxText {
		l.lost += int64(span.Len())
		return
	}
	to := l.find(key)
	before := len(to.text)
	to.text = jsonscan.AppendUnescaped(to.text, body, span)
	l.kept += int64(len(to.text) - before)
}

func (l *lanes) find(key laneKey) *lane {
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.list[i].key == key {
			return &l.list[i]
		}
	}
	switch {
	case len(l.list) == maxLanes:
		return &l.list[maxLanes-1]
	case len(l.list) < cap(l.list): // the text buffer of an earlier stream may stand there
		l.list = l.list[:len(l.list)+1]
	default:
		l.list = append(l.list, lane{})
	}
	last := &l.list[len(l.list)-1]
	last.key = key
	return last
}

// tokens counts each text as a whole. Where nothing was kept, three bytes are a
// token, which few texts exceed.
func (l *lanes) tokens() int64 {
	var n int64
	for i := range l.list {
		n += int64(l.count(l.list[i].text))
	}
	switch {
	case l.lost == 0:
		return n
	case l.kept == 0:
		return (l.lost + 2) / 3
	}
	return n + (l.lost*n+l.kept-1)/l.kept
}
