package openai

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/sse"
	"github.com/penstock-gateway/penstock/internal/tokens"
)

// counter counts in one encoding, as the gateway does.
func counter(t testing.TB, e tokens.Encoding) func([]byte) int {
	t.Helper()
	c, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return func(text []byte) int { return c.Count(e, text) }
}

func chunk(delta, finish string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-o","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

func content(text string) string {
	return chunk(fmt.Sprintf(`{"content":%q}`, text), "null")
}

func event(data string) string { return "data: " + data + "\n\n" }

const usageData = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-o","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`

var s1Usage = money.Usage{Input: 9, Output: 2}

// s1 is a whole stream: role, "Hel", "lo", stop, usage, [DONE].
func s1() []string {
	return []string{
		chunk(`{"role":"assistant","content":""}`, "null"), content("Hel"), content("lo"), chunk(`{}`, `"stop"`), usageData, "[DONE]",
	}
}

func stream(datas []string) string {
	var b strings.Builder
	for _, d := range datas {
		b.WriteString(event(d))
	}
	return b.String()
}

// observe runs a stream through the scanner in chunks and returns what each
// event with data was.
func observe(t testing.TB, o *Observer, stream string, size int) []Event {
	t.Helper()
	s := sse.NewScanner(sse.Config{})
	var seen []Event
	take := func(ev sse.Event) {
		if ev.HasData {
			seen = append(seen, o.Observe(ev.Data))
		}
	}
	for rest := []byte(stream); len(rest) > 0; {
		n := min(size, len(rest))
		s.Feed(rest[:n])
		rest = rest[n:]
		for ev, ok := s.Next(); ok; ev, ok = s.Next() {
			take(ev)
		}
	}
	if ev, ok := s.Flush(); ok {
		take(ev)
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return seen
}

func TestWholeStream(t *testing.T) {
	t.Parallel()
	want := []Event{
		{Kind: Chunk}, {Kind: Chunk, Content: true}, {Kind: Chunk, Content: true}, {Kind: Chunk, Finish: true}, {Kind: UsageOnly}, {Kind: Done},
	}
	for _, size := range []int{1, 2, 3, 7, 1460} {
		o := NewObserver(words)
		if diff := cmp.Diff(want, observe(t, o, stream(s1()), size)); diff != "" {
			t.Error(diff)
		}
		u, ok := o.Usage()
		if u != s1Usage || !ok || !o.Done() || !o.Finished() || !o.Started() || o.ID() != "c1" || o.Model() != "m-o" || o.Deltas() != 2 {
			t.Errorf("%+v %v %+v", u, ok, o)
		}
	}
}

func TestWhereUsageIsFound(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}`
	cases := []struct {
		why  string
		data []string
		hide bool // the last event is only usage
	}{
		{"alone, choices empty", []string{usageData}, true},
		{"alone, choices missing", []string{`{` + usage + `}`}, true},
		{"alone, choices null", []string{`{"choices":null,` + usage + `}`}, true},
		{"before the choices", []string{`{` + usage + `,"choices":[]}`}, true},
		{"with the finish_reason", []string{`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],` + usage + `}`}, false},
		{"with content", []string{`{"choices":[{"index":0,"delta":{"content":"x"}}],` + usage + `}`}, false},
		{"growing from chunk to chunk: the last counts", []string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, usageData}, true},
		{"null in the others", []string{`{"choices":[{"delta":{"content":"x"}}],"usage":null}`, usageData, `{"choices":[{"delta":{}}],"usage":null}`}, false},
		{"nonsense behind it does not undo it", []string{usageData, `{"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":5}}`}, true},
	}
	for _, tc := range cases {
		o := NewObserver(words)
		seen := observe(t, o, stream(tc.data), 100)
		if u, ok := o.Usage(); u != s1Usage || !ok {
			t.Errorf("%s: %+v %v", tc.why, u, ok)
		}
		if got := seen[len(seen)-1].Kind == UsageOnly; got != tc.hide {
			t.Errorf("%s: usage only %v, want %v", tc.why, got, tc.hide)
		}
	}
	// An empty list of choices alone is not usage: Azure's first event is such.
	o := NewObserver(words)
	if ev := o.Observe([]byte(`{"choices":[],"prompt_filter_results":[{}]}`)); ev.Kind != Chunk {
		t.Errorf("kind %d", ev.Kind)
	}
}

func TestStreamShapes(t *testing.T) {
	t.Parallel()
	all := s1()
	split := strings.Replace(event(usageData), `"choices":[],`, "\"choices\":[],\ndata: ", 1)
	cases := []struct{ why, stream string }{
		{"comments, heartbeats, other fields", ": ping\n\n" + event(all[0]) + "\n" + "event: message\nid: 7\nretry: 3000\n" + event(all[1]) +
			"data:" + all[2] + "\n: x\n\n" + stream(all[3:])},
		{"usage over two data lines", stream(all[:4]) + split + stream(all[5:])},
		{"no [DONE]", stream(all[:5])},
		{"no newline behind [DONE]", strings.TrimRight(stream(all), "\n")},
		{"[DONE] without a space, with one behind", stream(all[:5]) + "data:[DONE] \n\n"},
		{"events that are no JSON", event("hello") + event(`{"a":`) + event("1") + stream(all)},
	}
	for _, tc := range cases {
		o := NewObserver(words)
		observe(t, o, tc.stream, 3)
		if u, ok := o.Usage(); u != s1Usage || !ok || !o.Finished() || o.Deltas() != 2 {
			t.Errorf("%s: %+v %v, finished %v, %d deltas", tc.why, u, ok, o.Finished(), o.Deltas())
		}
	}
}

// Without usage the output is counted, from whole texts and not delta by delta.
func TestLocalCount(t *testing.T) {
	t.Parallel()
	call := func(index int, id, function string) string {
		return chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"function":%s}]}`, index, id, function), "null")
	}
	tools := func(second int, id string) []string {
		return []string{
			call(0, `"a"`, `{"name":"f","arguments":""}`), call(second, `"b"`, `{"name":"g","arguments":""}`),
			call(0, id, `{"arguments":"{\"city\":"}`), call(second, `"b"`, `{"arguments":"{\"city\":"}`),
			call(0, `"a"`, `{"arguments":"\"Ulm\"}"}`), call(second, `"b"`, `{"arguments":"\"Bonn\"}"}`),
			chunk(`{}`, `"tool_calls"`),
		}
	}
	cases := []struct {
		why           string
		data          []string
		o200k, cl100k int64
	}{
		{"Hel and lo are Hello", s1()[:4], 1, 1},
		{"fifty words, one text", slicesRepeat(content("word "), 50), 51, 51},
		{"many scripts", []string{content("Größe 你好 "), content("👩‍👩‍👧‍👦")}, 15, 22},
		{"two calls, interleaved: 6 tokens each, 1 for each name", tools(1, "null"), 14, 14},
		{"two calls under one index, told apart by id", tools(0, `"a"`), 14, 14},
		{"reasoning and refusal are output too", []string{chunk(`{"reasoning_content":"Hello"}`, "null"), chunk(`{"refusal":"Hello"}`, "null")}, 2, 2},
		{"choices are texts of their own, the index may stand last", []string{
			`{"choices":[{"delta":{"content":"Hel"},"index":0},{"delta":{"content":"Hel"},"index":1}]}`,
			`{"choices":[{"delta":{"content":"lo"},"index":1},{"delta":{"content":"lo"},"index":0}]}`,
		}, 2, 2},
		{"the old function_call and the old text", []string{chunk(`{"function_call":{"name":"f","arguments":"{}"}}`, "null"), `{"choices":[{"index":0,"text":"Hello"}]}`}, 3, 3},
		{"nothing", s1()[:1], 0, 0},
	}
	o200k, cl100k := counter(t, tokens.O200kBase), counter(t, tokens.CL100kBase)
	o := NewObserver(o200k)
	for _, tc := range cases {
		o.Reset(o200k)
		observe(t, o, stream(tc.data), 1000)
		if got := o.OutputTokens(); got != tc.o200k {
			t.Errorf("%s: %d tokens in o200k, want %d", tc.why, got, tc.o200k)
		}
		o.Reset(cl100k)
		observe(t, o, stream(tc.data), 1000)
		if got := o.OutputTokens(); got != tc.cl100k {
			t.Errorf("%s: %d tokens in cl100k, want %d", tc.why, got, tc.cl100k)
		}
		if _, ok := o.Usage(); ok {
			t.Errorf("%s: usage out of nothing", tc.why)
		}
	}
}

func slicesRepeat(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func TestErrorInAStream(t *testing.T) {
	t.Parallel()
	const quota = `{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}`
	o := NewObserver(words)
	seen := observe(t, o, stream([]string{s1()[0], quota, "[DONE]"}), 10)
	want := []Event{{Kind: Chunk}, {Kind: Failed}, {Kind: Done}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if e := o.Err(); e == nil || e.Status != 429 || e.Code != "insufficient_quota" || o.Started() {
		t.Errorf("%+v, started %v", e, o.Started())
	}
	// "error":null is no error.
	o.Reset(words)
	if ev := o.Observe([]byte(`{"error":null,"choices":[{"delta":{"content":"x"}}]}`)); ev.Kind != Chunk || o.Err() != nil {
		t.Errorf("%+v %v", ev, o.Err())
	}
}

func TestLongDeltas(t *testing.T) {
	t.Parallel()
	letters := func(text []byte) int { return len(text) }
	for _, n := range []int{65_500, 65_537, 1_048_577, 8_388_608} {
		o := NewObserver(letters)
		observe(t, o, stream([]string{content("ab"), content(strings.Repeat("x", n)), content("c"), usageData}), 64<<10)
		if u, ok := o.Usage(); u != s1Usage || !ok || o.Deltas() != 3 {
			t.Errorf("%d bytes: %+v %v", n, u, ok)
		}
		if o.lanes.kept > maxText {
			t.Errorf("%d bytes: %d bytes kept", n, o.lanes.kept)
		}
		// Beyond what is kept the count goes on at the rate of the rest.
		if got := o.OutputTokens(); got < int64(n) || got > int64(n)+16 {
			t.Errorf("%d letters counted as %d", n, got)
		}
	}
	// Nothing kept at all: still never free.
	o := NewObserver(letters)
	o.Observe([]byte(content(strings.Repeat("x", maxText+1))))
	if got := o.OutputTokens(); got < maxText/3 {
		t.Errorf("%d tokens for %d letters", got, maxText+1)
	}
}

// An upstream that opens new calls for ever must not fill the memory.
func TestLanesAreBounded(t *testing.T) {
	t.Parallel()
	o := NewObserver(words)
	for i := range 2000 {
		o.Observe([]byte(chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"i%d","function":{"name":"f ","arguments":"x "}}]}`, i, i), "null")))
	}
	if len(o.lanes.list) > maxLanes || len(o.lanes.calls) > maxLanes {
		t.Errorf("%d lanes, %d calls", len(o.lanes.list), len(o.lanes.calls))
	}
	if got := o.OutputTokens(); got != 4000 {
		t.Errorf("%d words, want 4000", got)
	}
}

// A pooled Observer must know nothing of the last stream.
func TestObserverReset(t *testing.T) {
	t.Parallel()
	o := NewObserver(words)
	observe(t, o, stream(append(s1(), `{"error":"x"}`, `{"usage":[]}`)), 100)
	o.Reset(words)
	if _, ok := o.Usage(); ok || o.Done() || o.Started() || o.Finished() || o.Err() != nil || o.UsageRejected() || o.ID() != "" || o.OutputTokens() != 0 || o.Deltas() != 0 {
		t.Errorf("%+v", o)
	}
	observe(t, o, stream(s1()[:4]), 100)
	if got := o.OutputTokens(); got != 1 {
		t.Errorf("%d words after the reset, want 1", got)
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	o := NewObserver(words)
	data := []byte(content("word "))
	o.Observe(data)
	o.lanes.write(laneKey{}, bytes.Repeat([]byte("x"), 4096), jsonscan.Span{Start: 0, End: 4096}) // room for the text
	if n := testing.AllocsPerRun(50, func() { o.Observe(data) }); n > 0 {
		t.Errorf("%v allocations for a chunk, want 0", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	o := NewObserver(words)
	data := []byte(content("word "))
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		o.Observe(data)
	}
}
