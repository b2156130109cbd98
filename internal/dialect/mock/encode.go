package mock

import (
	"strconv"

	"github.com/penstock-gateway/penstock/internal/dialect/openai"
	"github.com/penstock-gateway/penstock/internal/jsonscan"
)

// AppendCompletion appends the whole answer as one JSON text.
func (r *Reply) AppendCompletion(dst []byte) []byte {
	dst = openai.AppendHead(dst, "chat.completion", r.req.Head)
	dst = append(dst, `,"choices":[`...)
	for i := range r.req.N {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"index":`...)
		dst = strconv.AppendInt(dst, i, 10)
		dst = append(dst, `,"message":{"role":"assistant","content":`...)
		dst = jsonscan.AppendString(dst, r.Text)
		dst = append(dst, `},"finish_reason":"`...)
		dst = append(dst, r.Finish...)
		dst = append(dst, `"}`...)
	}
	dst = append(dst, `],`...)
	dst = openai.AppendUsage(dst, r.Usage)
	return append(dst, '}')
}

// AppendEvent appends the next event of the stream: for each choice its role,
// then the text word by word, for each choice its finish_reason, the usage when
// it was asked for, [DONE]. After that more is false and nothing is appended.
func (r *Reply) AppendEvent(dst []byte) (out []byte, more bool) {
	switch r.stage {
	case stageRole:
		dst = r.appendChunk(dst, `{"role":"assistant","content":""}`, "")
		r.nextChoice()
	case stageWords:
		dst = r.appendWord(dst)
	case stageFinish:
		dst = r.appendChunk(dst, `{}`, r.Finish)
		r.nextChoice()
	case stageUsage:
		dst = openai.AppendUsageEvent(dst, r.req.Head, r.Usage)
		r.advance()
	case stageDone:
		dst = append(dst, openai.DoneEvent...)
		r.advance()
	default:
		return dst, false
	}
	return dst, true
}

// nextChoice goes to the next choice, and after the last one to the next stage.
func (r *Reply) nextChoice() {
	if r.choice++; r.choice == r.req.N {
		r.choice = 0
		r.advance()
	}
}

func (r *Reply) advance() {
	r.stage++
	if r.stage == stageWords && r.Text == "" {
		r.stage++
	}
	if r.stage == stageUsage && !r.req.IncludeUsage {
		r.stage++
	}
}

// appendWord appends one word of one choice; the choices take turns.
func (r *Reply) appendWord(dst []byte) []byte {
	end := wordEnd(r.Text, r.word)
	dst = r.openChunk(dst)
	dst = append(dst, `{"content":`...)
	dst = jsonscan.AppendString(dst, r.Text[r.word:end])
	dst = r.closeChunk(append(dst, '}'), "")
	if r.choice++; r.choice < r.req.N {
		return dst
	}
	r.choice, r.word = 0, end
	if end == len(r.Text) {
		r.advance()
	}
	return dst
}

func (r *Reply) appendChunk(dst []byte, delta, finish string) []byte {
	return r.closeChunk(append(r.openChunk(dst), delta...), finish)
}

func (r *Reply) openChunk(dst []byte) []byte {
	dst = append(dst, "data: "...)
	dst = openai.AppendHead(dst, "chat.completion.chunk", r.req.Head)
	dst = append(dst, `,"choices":[{"index":`...)
	dst = strconv.AppendInt(dst, r.choice, 10)
	return append(dst, `,"delta":`...)
}

func (r *Reply) closeChunk(dst []byte, finish string) []byte {
	dst = append(dst, `,"finish_reason":`...)
	if finish == "" {
		dst = append(dst, "null"...)
	} else {
		dst = append(append(append(dst, '"'), finish...), '"')
	}
	return append(dst, "}]}\n\n"...)
}
