package jsonscan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func scanShape(t testing.TB, shape Shape, body string) *Request {
	t.Helper()
	q, err := Scan([]byte(body), shape, Limits{})
	if err != nil {
		t.Fatalf("%v in %.300s", err, body)
	}
	return q
}

// shaped is a body with a model and these members.
func shaped(members string) string { return `{"model":"m-o",` + members + `}` }

// words are the texts in their order.
func words(body string, q *Request) (all []string) {
	for _, s := range q.Texts {
		all = append(all, string(AppendUnescaped(nil, []byte(body), s)))
	}
	return all
}

func TestInputs(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, value  string
		texts       []string
		ids, inputs int64
	}{
		{"one text", `"Hello!"`, []string{"Hello!"}, 0, 1},
		{"an empty text is the provider's to judge", `""`, []string{""}, 0, 1},
		{"escapes", `"a\n\u00e9"`, []string{"a\né"}, 0, 1},
		{"texts", `["a","b","c"]`, []string{"a", "b", "c"}, 0, 3},
		{"token ids are one input", `[1,2,3]`, nil, 3, 1},
		{"arrays of token ids, one of them empty", `[[1,2],[3],[]]`, nil, 3, 3},
		{"white space", "[ [ 1 , 2 ] ,\n[ 3 ] ]", nil, 3, 2},
	}
	for _, tc := range cases {
		for shape, member := range map[Shape]string{Completions: "prompt", Embeddings: "input", TokenCounter: "prompt"} {
			body := shaped(`"` + member + `":` + tc.value + `,"dimensions":3,"echo":true,"encoding_format":"base64"`)
			q := scanShape(t, shape, body)
			if diff := cmp.Diff(tc.texts, words(body, q)); diff != "" {
				t.Errorf("%s: %s", tc.why, diff)
			}
			if q.TokenIDs != tc.ids || q.Inputs != tc.inputs || q.Inexact || len(q.Messages) != 0 {
				t.Errorf("%s: %d ids, %d inputs, %+v", tc.why, q.TokenIDs, q.Inputs, q)
			}
		}
	}
}

func TestCompletionMembers(t *testing.T) {
	t.Parallel()
	body := shaped(`"prompt":["a","b"],"max_tokens":7,"n":2,"best_of":3,"stream":true,"stream_options":{"include_usage":true},"user":"u","logprobs":5,"logit_bias":{"1":-100},"suffix":"end"`)
	q := scanShape(t, Completions, body)
	if limit, ok := q.OutputCap(); limit != 7 || !ok || q.N != 3 || q.Answers() != 6 {
		t.Errorf("cap %d %v, n %d, %d answers; best_of answers are billed, for each prompt", limit, ok, q.N, q.Answers())
	}
	if !q.Stream || !q.StreamOptions.IncludeUsage || q.User.IsZero() {
		t.Errorf("%+v", q)
	}
	if diff := cmp.Diff([]string{"a", "b", "end"}, words(body, q)); diff != "" || !q.Inexact {
		t.Errorf("a suffix is read in a form that only the provider knows: %s", diff)
	}
	// These are another shape's words and pass untouched.
	q = scanShape(t, Embeddings, shaped(`"input":"a","messages":1,"n":"x","max_tokens":[],"response_format":7`))
	if _, ok := q.OutputCap(); ok || q.N != 1 || q.Answers() != 1 {
		t.Errorf("%+v", q)
	}
}

// items describes the items as "kind data".
func items(body string, q *Request) (all []string) {
	for _, i := range q.Items {
		all = append(all, kindNames[i.Kind]+string(i.Data.Of([]byte(body))))
	}
	return all
}

func schemas(body string, q *Request) (all []string) {
	for _, s := range q.Schemas {
		all = append(all, string(s.Of([]byte(body))))
	}
	return all
}

// what a body of messages or items comes to.
type content struct {
	why      string
	value    string
	texts    []string
	items    []string
	schemas  []string
	messages int
	inexact  bool
}

func (tc content) check(t *testing.T, shape Shape, body string) {
	t.Helper()
	q := scanShape(t, shape, body)
	got := content{tc.why, tc.value, words(body, q), items(body, q), schemas(body, q), len(q.Messages), q.Inexact}
	if diff := cmp.Diff(tc, got, cmp.AllowUnexported(content{}), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestResponsesInput(t *testing.T) {
	t.Parallel()
	cases := []content{
		{why: "a string is one message", value: `"Hello!"`, texts: []string{"Hello!"}, messages: 1},
		{
			why:      "messages without a type, content as a string or in parts",
			value:    `[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"c"}]}]`,
			texts:    []string{"user", "a", "assistant", "b", "developer", "c"},
			messages: 3,
		},
		{
			why:      "null and missing content, and an empty one",
			value:    `[{"role":"assistant","content":null},{"role":"user"},{"role":"user","content":[]}]`,
			texts:    []string{"assistant", "user", "user"},
			messages: 3,
		},
		{
			why:      "calls and what came of them; ids are not read by the model",
			value:    `[{"type":"function_call","id":"x","call_id":"c","name":"f","arguments":"{\"a\":1}","status":"completed"},{"type":"function_call_output","call_id":"c","output":"sunny"},{"type":"custom_tool_call","name":"g","input":"in"},{"type":"custom_tool_call_output","output":[{"type":"input_text","text":"o"}]}]`,
			texts:    []string{"f", `{"a":1}`, "sunny", "g", "in", "o"},
			messages: 4,
		},
		{
			why:      "images, files and audio, whatever else their parts have",
			value:    `[{"role":"user","content":[{"type":"input_image","image_url":"data:A","file_id":null,"detail":"low"},{"type":"input_file","file_data":"data:B","file_url":null,"filename":"f.pdf"},{"type":"input_file","file_id":"f"},{"type":"input_audio","input_audio":{"data":"C","format":"wav"}}]}]`,
			texts:    []string{"user"},
			items:    []string{`image "data:A"`, `file "data:B"`, "file ", `audio "C"`},
			messages: 1,
		},
		{
			why:      "reasoning: the summary is text, what is encrypted is not, and the provider may drop it",
			value:    `[{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"EEEE"}]`,
			texts:    []string{"hm"},
			items:    []string{`encrypted "EEEE"`},
			messages: 1, inexact: true,
		},
		{
			why:      "an item that the provider keeps",
			value:    `[{"type":"item_reference","id":"msg_1"}]`,
			items:    []string{"other "},
			messages: 1, inexact: true,
		},
		{
			why: "the provider's own tools",
			value: `[{"type":"web_search_call","action":{"type":"search","query":"q"}},{"type":"code_interpreter_call","code":"x=1","outputs":null},` +
				`{"type":"file_search_call","queries":["q"],"results":[{"text":"found"}]},{"type":"mcp_call","name":"f","arguments":"{}","output":"o"},` +
				`{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"data:S"}},{"type":"image_generation_call","result":"BASE64"}]`,
			texts:    []string{"x=1", "f", "{}", "o"},
			schemas:  []string{`{"type":"search","query":"q"}`, `["q"]`, `[{"text":"found"}]`},
			items:    []string{`image "data:S"`, `image "BASE64"`},
			messages: 6, inexact: true,
		},
		{why: "the type may come last, and be escaped", value: `[{"output":"o","type":"function_c\u0061ll_output"}]`, texts: []string{"o"}, messages: 1},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			tc.check(t, Responses, shaped(`"input":`+tc.value))
		})
	}
}

func TestResponsesMembers(t *testing.T) {
	t.Parallel()
	body := shaped(`"instructions":"be brief","input":[{"role":"user","content":"a"}],"max_output_tokens":9,"stream":true,"tools":[{"type":"function"}],` +
		`"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},"store":false,"metadata":{"tags":["x"]},"include":[]`)
	q := scanShape(t, Responses, body)
	if limit, ok := q.OutputCap(); limit != 9 || !ok || !q.Stream || q.Inexact || len(q.Tags) != 1 || len(q.Messages) != 2 {
		t.Errorf("%+v", q)
	}
	if key := string(q.MaxTokens.Key.Of([]byte(body))); key != `"max_output_tokens"` {
		t.Errorf("the cap's key is %s", key)
	}
	if diff := cmp.Diff([]string{`[{"type":"function"}]`, `{"type":"object"}`}, schemas(body, q)); diff != "" {
		t.Error(diff)
	}
	for _, members := range []string{
		`"input":"a","previous_response_id":"resp_1"`, `"input":"a","conversation":"conv_1"`, `"input":"a","conversation":{"id":"c"}`,
		`"prompt":{"id":"p","version":"2"}`, `"previous_response_id":"resp_1"`,
	} {
		if q := scanShape(t, Responses, shaped(members)); !q.Inexact {
			t.Errorf("%s: the model reads what is not in the body", members)
		}
	}
	q = scanShape(t, Responses, shaped(`"input":"a","previous_response_id":null,"conversation":null,"prompt":null,"instructions":null,"text":{"format":{"type":"text"}},"max_output_tokens":null`))
	if q.Inexact || len(q.Messages) != 1 || len(q.Schemas) != 0 {
		t.Errorf("null is not given: %+v", q)
	}
}

func TestAnthropicMessages(t *testing.T) {
	t.Parallel()
	cases := []content{
		{why: "a string", value: `[{"role":"user","content":"Hello!"}]`, texts: []string{"user", "Hello!"}, messages: 1},
		{
			why:      "text blocks, with a mark for the cache",
			value:    `[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}]}]`,
			texts:    []string{"user", "a", "b"},
			messages: 1,
		},
		{
			why:      "images inline and by reference",
			value:    `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"image","source":{"type":"url","url":"https://x"}},{"type":"image","source":{"type":"file","file_id":"f"}}]}]`,
			texts:    []string{"user"},
			items:    []string{`image "AAAA"`, `image "https://x"`, "image "},
			messages: 1,
		},
		{
			why:      "documents: inline, plain text, content, by reference; title and context are read by the model",
			value:    `[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"},"title":"t","context":"c"},{"type":"document","source":{"data":"plain","media_type":"text/plain","type":"text"}},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"chunk"},{"type":"image","source":{"type":"base64","data":"BBBB"}}]}},{"type":"document","source":{"type":"content","content":"all"}}]}]`,
			texts:    []string{"user", "t", "c", "plain", "chunk", "all"},
			items:    []string{`file "JVBE"`, `image "BBBB"`},
			messages: 1,
		},
		{
			why: "a tool call's input is counted as written, its result as text, and an image in it never as text",
			value: `[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"city": "Ulm"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"sunny"},{"type":"image","source":{"type":"base64","data":"CCCC"}}]},{"type":"tool_result","tool_use_id":"toolu_2","content":"plain","is_error":true}]}]`,
			texts:    []string{"assistant", "f", "user", "sunny", "plain"},
			items:    []string{`image "CCCC"`},
			schemas:  []string{`{"city": "Ulm"}`},
			messages: 2,
		},
		{
			why:      "thinking, and thinking that only the provider can read",
			value:    `[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"SSSS"},{"type":"redacted_thinking","data":"RRRR"}]}]`,
			texts:    []string{"assistant", "hm"},
			items:    []string{`encrypted "RRRR"`},
			messages: 1,
		},
		{
			why:      "search results, ours and the provider's",
			value:    `[{"role":"user","content":[{"type":"search_result","source":"https://x","title":"t","content":[{"type":"text","text":"found"}]},{"type":"web_search_tool_result","content":[{"type":"web_search_result","url":"u","title":"w","encrypted_content":"EEEE"}]},{"type":"web_search_tool_result","content":{"type":"web_search_tool_result_error","error_code":"e"}}]}]`,
			texts:    []string{"user", "t", "found", "https://x", "w"},
			items:    []string{`encrypted "EEEE"`, "other "},
			messages: 1,
		},
		{why: "null and missing content", value: `[{"role":"user","content":null},{"role":"user"},{"role":"user","content":[]}]`, texts: []string{"user", "user", "user"}, messages: 3},
		{why: "a block nobody knows", value: `[{"role":"user","content":[{"type":"new","blob":"NNNN"}]}]`, texts: []string{"user"}, items: []string{"other "}, messages: 1},
		{why: "a text block that carries data all the same", value: `[{"role":"user","content":[{"type":"text","text":"a","source":{"data":"DDDD"}}]}]`, texts: []string{"user", "a"}, items: []string{`other "DDDD"`}, messages: 1},
		{why: "a document that has text and data", value: `[{"role":"user","content":[{"type":"document","source":{"type":"base64","content":"a","data":"DDDD"}}]}]`, texts: []string{"user", "a"}, items: []string{`file "DDDD"`}, messages: 1},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			tc.check(t, Messages, shaped(`"max_tokens":9,"messages":`+tc.value))
		})
	}
}

func TestAnthropicMembers(t *testing.T) {
	t.Parallel()
	messages := `"messages":[{"role":"user","content":"a"}]`
	body := shaped(`"system":[{"type":"text","text":"s1"},{"type":"text","text":"s2"}],"max_tokens":9,"stream":true,"metadata":{"user_id":"u"},"tools":[{"name":"f","input_schema":{}}],` +
		messages + `,"stop_sequences":["x"],"thinking":{"type":"enabled","budget_tokens":5},"n":"another shape's"`)
	q := scanShape(t, Messages, body)
	if diff := cmp.Diff([]string{"s1", "s2", "user", "a"}, words(body, q)); diff != "" || len(q.Messages) != 2 {
		t.Error(diff, len(q.Messages))
	}
	if m := q.Messages[0]; !m.Role.IsZero() || m.EndText != 2 || q.Messages[1].FirstText != 2 {
		t.Errorf("system: %+v", m)
	}
	if limit, ok := q.OutputCap(); limit != 9 || !ok || !q.Stream || string(q.User.Of([]byte(body))) != `"u"` || len(q.Schemas) != 1 {
		t.Errorf("%+v", q)
	}
	for system, messagesWant := range map[string]int{`null`: 1, `"s"`: 2, `[]`: 2} {
		if q := scanShape(t, Messages, shaped(messages+`,"system":`+system)); len(q.Messages) != messagesWant {
			t.Errorf("system %s: %d messages", system, len(q.Messages))
		}
	}
	if q := scanShape(t, Messages, shaped(messages+`,"output_config":{"format":{"type":"json_schema"}},"metadata":{"user_id":7}`)); len(q.Schemas) != 1 || !q.User.IsZero() {
		t.Errorf("%+v", q)
	}
}

func TestTokenCounter(t *testing.T) {
	t.Parallel()
	cases := []content{
		{why: "a prompt, the others null", value: `"prompt":"a","messages":null,"contents":null`, texts: []string{"a"}},
		{why: "OpenAI's messages", value: `"messages":[{"role":"user","content":"a"}],"prompt":null`, texts: []string{"user", "a"}, messages: 1},
		{
			why:      "Anthropic's messages, with system and tools",
			value:    `"system":"s","tools":[{"name":"f"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":"r"}]}]`,
			texts:    []string{"s", "user", "r"},
			schemas:  []string{`[{"name":"f"}]`},
			messages: 2,
		},
		{
			why: "Gemini's contents",
			value: `"contents":[{"parts":[{"text":"a"}]},{"role":"user","parts":[{"text":"b"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"inline_data":{"mime_type":"audio/wav","data":"BBBB"}},{"fileData":{"fileUri":"gs://x","mimeType":"application/pdf"}}]},` +
				`{"role":"model","parts":[{"functionCall":{"name":"f","args":{"x":1}}}]},{"role":"function","parts":{"functionResponse":{"name":"f","response":{"y":2}}}}]`,
			texts:    []string{"a", "user", "b", "model", "f", "function", "f"},
			items:    []string{`image "AAAA"`, `audio "BBBB"`, "file "},
			schemas:  []string{`{"x":1}`, `{"y":2}`},
			messages: 4,
		},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			tc.check(t, TokenCounter, shaped(tc.value))
		})
	}
}

func TestRefusalsOfShapes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why     string
		shape   Shape
		members string
		field   string
	}{
		{"no prompt", Completions, `"n":1`, "prompt"},
		{"prompt is null", Completions, `"prompt":null`, "prompt"},
		{"prompt is a number", Completions, `"prompt":7`, "prompt"},
		{"prompt is an object", Completions, `"prompt":{}`, "prompt"},
		{"no prompt in it", Completions, `"prompt":[]`, "prompt"},
		{"a null prompt", Completions, `"prompt":["a",null]`, "prompt[1]"},
		{"texts and ids", Completions, `"prompt":["a",1]`, "prompt[1]"},
		{"ids and arrays", Completions, `"prompt":[1,[2]]`, "prompt[1]"},
		{"an object as a prompt", Completions, `"prompt":[{"text":"a"}]`, "prompt[0]"},
		{"a fraction as a token id", Completions, `"prompt":[1,1.5]`, "prompt[1]"},
		{"a negative token id", Completions, `"prompt":[[1],[2,-3]]`, "prompt[1][1]"},
		{"a text among token ids", Completions, `"prompt":[[1,"a"]]`, "prompt[0][1]"},
		{"deeper arrays", Completions, `"prompt":[[[1]]]`, "prompt[0][0]"},
		{"best_of is zero", Completions, `"prompt":"a","best_of":0`, "best_of"},
		{"best_of over the limit", Completions, `"prompt":"a","best_of":129`, "best_of"},
		{"suffix is a number", Completions, `"prompt":"a","suffix":1`, "suffix"},
		{"prompt twice", Completions, `"prompt":"a","prompt":"b"`, "prompt"},
		{"prompt twice, once escaped", Completions, `"prompt":"a","pr\u006fmpt":"b"`, "prompt"},
		{"only a key in other case", Completions, `"Prompt":"a"`, "prompt"},
		{"no input", Embeddings, `"prompt":"a"`, "input"},
		{"input twice", Embeddings, `"input":"a","input":"b"`, "input"},
		{"no input and nothing stored", Responses, `"instructions":"a"`, "input"},
		{"input is a number", Responses, `"input":7`, "input"},
		{"an item is a string", Responses, `"input":["a"]`, "input[0]"},
		{"content is an object", Responses, `"input":[{"role":"user","content":{}}]`, "input[0].content"},
		{"a part's text is a number", Responses, `"input":[{"role":"user","content":[{"type":"input_text","text":1}]}]`, "input[0].content[0].text"},
		{"output is a number", Responses, `"input":[{"type":"function_call_output","output":7}]`, "input[0].output"},
		{"arguments twice", Responses, `"input":[{"arguments":"a","arguments":"b"}]`, "input[0].arguments"},
		{"output twice", Responses, `"input":[{"output":"a","output":"b"}]`, "input[0].output"},
		{"instructions are a list", Responses, `"input":"a","instructions":[]`, "instructions"},
		{"text is a string", Responses, `"input":"a","text":"x"`, "text"},
		{"format is a string", Responses, `"input":"a","text":{"format":"x"}`, "text.format"},
		{"schema twice", Responses, `"input":"a","text":{"format":{"schema":1,"schema":2}}`, "text.format.schema"},
		{"format twice", Responses, `"input":"a","text":{"format":null,"format":{}}`, "text.format"},
		{"prompt is a string", Responses, `"input":"a","prompt":"p"`, "prompt"},
		{"max_output_tokens is a string", Responses, `"input":"a","max_output_tokens":"9"`, "max_output_tokens"},
		{"no messages", Messages, `"system":"s","max_tokens":9`, "messages"},
		{"empty messages", Messages, `"messages":[]`, "messages"},
		{"no role", Messages, `"messages":[{"content":"a"}]`, "messages[0].role"},
		{"system is an object", Messages, `"messages":[{"role":"user"}],"system":{}`, "system"},
		{"a system block is a string", Messages, `"messages":[{"role":"user"}],"system":["s"]`, "system[0]"},
		{"system twice", Messages, `"messages":[{"role":"user"}],"system":"a","system":"b"`, "system"},
		{"data twice", Messages, `"messages":[{"role":"user","content":[{"type":"image","source":{"data":"a","data":"b"}}]}]`, "messages[0].content[0].source.data"},
		{"source twice, once null", Messages, `"messages":[{"role":"user","content":[{"type":"image","source":null,"source":{}}]}]`, "messages[0].content[0].source"},
		{"two carriers of data", Messages, `"messages":[{"role":"user","content":[{"type":"image","source":{},"image_url":"u"}]}]`, "messages[0].content[0].image_url"},
		{"a nested text is a number", Messages, `"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":1}]}]}]`, "messages[0].content[0].content[0].text"},
		{"a tool's input twice", Messages, `"messages":[{"role":"user","content":[{"input":{},"input":{}}]}]`, "messages[0].content[0].input"},
		{"user_id twice", Messages, `"messages":[{"role":"user"}],"metadata":{"user_id":"a","user_id":"b"}`, "metadata.user_id"},
		{"nothing to count", TokenCounter, `"tools":[]`, "messages"},
		{"two of them", TokenCounter, `"prompt":"a","messages":[{"role":"user"}]`, "messages"},
		{"contents is an object", TokenCounter, `"contents":{}`, "contents"},
		{"empty contents", TokenCounter, `"contents":[]`, "contents"},
		{"parts twice", TokenCounter, `"contents":[{"parts":[],"parts":[]}]`, "contents[0].parts"},
		{"broken JSON in what is not read", Embeddings, `"input":"a","x":{"a":tru}`, ""},
		{"invalid UTF-8", Embeddings, "\"input\":\"\xff\"", ""},
		{"too deep", Embeddings, `"input":` + strings.Repeat("[", 64) + strings.Repeat("]", 64), ""},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			body := shaped(tc.members)
			_, err := Scan([]byte(body), tc.shape, Limits{})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%v, want an *Error for %s", err, body)
			}
			if e.Field != tc.field || e.Msg == "" || e.Offset > len(body) || tc.field != "" && !json.Valid([]byte(body)) {
				t.Errorf("%+v, want field %q", e, tc.field)
			}
		})
	}
	if _, err := Scan([]byte(`{"input":"a"}`), Embeddings, Limits{}); err == nil {
		t.Error("no model and accepted")
	}
}

func TestLimitsOfShapes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, members string
		shape        Shape
		lim          Limits
	}{
		{"texts", `"prompt":["a","b","c"]`, Completions, Limits{MaxTexts: 2}},
		{"arrays of ids", `"input":[[1],[2],[3]]`, Embeddings, Limits{MaxTexts: 2}},
		{"items", `"input":[{"role":"user"},{"role":"user"},{"role":"user"}]`, Responses, Limits{MaxMessages: 2}},
		{"system is a message too", `"messages":[{"role":"user"},{"role":"user"}],"system":"s"`, Messages, Limits{MaxMessages: 2}},
		{"inputs of calls", `"messages":[{"role":"user","content":[{"input":1},{"input":1}]}]`, Messages, Limits{MaxTexts: 2}},
		{"contents", `"contents":[{},{},{}]`, TokenCounter, Limits{MaxMessages: 2}},
		{"n", `"prompt":"a","best_of":3`, Completions, Limits{MaxN: 2}},
		{"depth", `"messages":[{"role":"user","content":[{"content":[{"content":[{"text":"a"}]}]}]}]`, Messages, Limits{MaxDepth: 6}},
	}
	for _, tc := range cases {
		body := []byte(shaped(tc.members))
		if _, err := Scan(body, tc.shape, tc.lim); err == nil {
			t.Errorf("%s: over the limit and accepted", tc.why)
		}
		if _, err := Scan(body, tc.shape, Limits{}); err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
	}
	// Deeper than paths are told: refused by its type, and without a panic.
	deep := shaped(`"messages":[{"role":"user","content":` + strings.Repeat(`[{"content":`, 100) + `7` + strings.Repeat(`}]`, 100) + `}]`)
	if _, err := Scan([]byte(deep), Messages, Limits{MaxDepth: 1000}); err == nil {
		t.Error("a number as content is accepted")
	}
}

// A pooled Request carries nothing from one shape into the next.
func TestReuseOverShapes(t *testing.T) {
	t.Parallel()
	var reused Request
	for range 2 {
		for shape, bodies := range shapes {
			for _, text := range bodies {
				body := []byte(text)
				want, err := Scan(body, shape, Limits{})
				if err != nil {
					t.Fatalf("%v in %s", err, body)
				}
				if err := reused.Scan(body, shape, Limits{}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(*want, reused, cmpopts.IgnoreUnexported(Request{}), cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
			}
		}
	}
}

// What is not read passes, whatever it is and whatever numbers are in it.
func TestUnknownMembersPass(t *testing.T) {
	t.Parallel()
	const unknown = `,"seed":9007199254740993,"x_new":{"a":1.0,"b":123456789012345678901234567890,"c":[null,{}],"c":1},"temperature":1e0,"Model":"other","api_base":"http://127.0.0.1:9/"`
	for shape, bodies := range shapes {
		for _, text := range bodies {
			body := strings.TrimSuffix(text, "}") + unknown + "}"
			want, got := scanShape(t, shape, text), scanShape(t, shape, body)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Request{}), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		}
	}
	body := withMessages(`[{"role":"user","content":"<b>&'\"\u2028 é \/"}]`)
	if diff := cmp.Diff([]string{"user", "<b>&'\"\u2028 é /"}, texts(body, scanChat(t, body))); diff != "" {
		t.Error(diff)
	}
}
