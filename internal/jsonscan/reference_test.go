package jsonscan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// summaryOf is what a request comes to, in an order that does not depend on the
// order of members.
type summaryOf struct {
	Texts, Schemas, Items []string
	Messages, Names       int
	TokenIDs, Inputs, N   int64
	Inexact               bool
}

// summarize tells what a scan has found.
func summarize(t testing.TB, body []byte, q *Request) summaryOf {
	t.Helper()
	s := summaryOf{Messages: len(q.Messages), Names: q.Names, TokenIDs: q.TokenIDs, Inputs: q.Inputs, N: q.N, Inexact: q.Inexact}
	for _, span := range q.Texts {
		text := string(AppendUnescaped(nil, body, span))
		var want string
		if err := json.Unmarshal(span.Of(body), &want); err != nil || text != want {
			t.Fatalf("text %q, want %q, %v", text, want, err)
		}
		s.Texts = append(s.Texts, text)
	}
	for _, span := range q.Schemas {
		s.Schemas = append(s.Schemas, canonical(decode(t, span.Of(body))))
	}
	for _, item := range q.Items {
		data := ""
		if !item.Data.IsZero() {
			data = string(AppendUnescaped(nil, body, item.Data))
		}
		if !json.Valid(item.Span.Of(body)) {
			t.Fatalf("an item is %q", item.Span.Of(body))
		}
		s.Items = append(s.Items, kindNames[item.Kind]+data)
	}
	s.sort()
	return s
}

var kindNames = [...]string{Other: "other ", Image: "image ", Audio: "audio ", File: "file ", Encrypted: "encrypted "}

func (s *summaryOf) sort() {
	slices.Sort(s.Texts)
	slices.Sort(s.Schemas)
	slices.Sort(s.Items)
}

func decode(t testing.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %.200q", err, raw)
	}
	return v
}

func canonical(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

type object = map[string]any

// reference reads a body that the scanner has accepted by encoding/json's maps,
// slowly and without spans.
func reference(t testing.TB, body []byte, shape Shape) summaryOf {
	t.Helper()
	top := decode(t, body).(object)
	s := summaryOf{Inputs: 1, N: 1}
	s.schema(top["tools"])
	switch shape {
	case ChatCompletions:
		s.schema(top["functions"])
		if format, ok := top["response_format"].(object); ok {
			s.schema(format["json_schema"])
		}
		s.messages(top["messages"])
		s.answers(top["n"])
	case Completions:
		s.inputs(top["prompt"])
		s.Inexact = s.text(top["suffix"])
		s.answers(top["n"])
		s.answers(top["best_of"])
	case Embeddings:
		s.inputs(top["input"])
	case Responses:
		s.responses(top)
	case Messages:
		s.schema(top["output_format"])
		s.schema(top["output_config"])
		s.system(top["system"])
		s.messages(top["messages"])
	case TokenCounter:
		s.inputs(top["prompt"])
		s.system(top["system"])
		s.messages(top["messages"])
		s.contents(top["contents"])
	}
	s.sort()
	return s
}

func (s *summaryOf) text(v any) bool {
	text, ok := v.(string)
	if ok {
		s.Texts = append(s.Texts, text)
	}
	return ok
}

func (s *summaryOf) schema(v any) {
	if v != nil {
		s.Schemas = append(s.Schemas, canonical(v))
	}
}

func (s *summaryOf) textOrSchema(v any) {
	if !s.text(v) {
		s.schema(v)
	}
}

func (s *summaryOf) item(kind ItemKind, data any) {
	text, _ := data.(string)
	s.Items = append(s.Items, kindNames[kind]+text)
}

func (s *summaryOf) answers(v any) {
	if n, ok := v.(json.Number); ok {
		i, _ := n.Int64()
		s.N = max(s.N, i)
	}
}

func (s *summaryOf) inputs(v any) {
	if s.text(v) {
		return
	}
	list, _ := v.([]any)
	for _, e := range list {
		switch e := e.(type) {
		case string:
			s.text(e)
		case json.Number:
			s.TokenIDs++
		case []any:
			s.TokenIDs += int64(len(e))
		}
	}
	if len(list) > 0 {
		if _, ok := list[0].(json.Number); !ok {
			s.Inputs = int64(len(list))
		}
	}
}

func (s *summaryOf) messages(v any) {
	list, _ := v.([]any)
	for _, e := range list {
		m := e.(object)
		s.Messages++
		s.text(m["role"])
		if s.text(m["name"]) {
			s.Names++
		}
		s.content(m["content"])
		s.text(m["reasoning_content"])
		s.text(m["refusal"])
		s.call(m["function_call"], "arguments")
		calls, _ := m["tool_calls"].([]any)
		for _, c := range calls {
			s.call(c.(object)["function"], "arguments")
			s.call(c.(object)["custom"], "input")
		}
	}
}

func (s *summaryOf) call(v any, arguments string) {
	if call, ok := v.(object); ok {
		s.text(call["name"])
		s.text(call[arguments])
	}
}

func (s *summaryOf) system(v any) {
	if v != nil {
		s.Messages++
		s.content(v)
	}
}

func (s *summaryOf) contents(v any) {
	list, _ := v.([]any)
	for _, e := range list {
		s.Messages++
		s.text(e.(object)["role"])
		s.content(e.(object)["parts"])
	}
}

func (s *summaryOf) responses(top object) {
	if top["previous_response_id"] != nil || top["conversation"] != nil {
		s.Inexact = true
	}
	if top["prompt"] != nil {
		s.Inexact = true
		s.item(Other, nil)
	}
	if options, ok := top["text"].(object); ok {
		if format, ok := options["format"].(object); ok {
			s.schema(format["schema"])
		}
	}
	for _, v := range []any{top["instructions"], top["input"]} {
		if s.text(v) {
			s.Messages++
		}
	}
	list, _ := top["input"].([]any)
	for _, e := range list {
		s.inputItem(e.(object))
	}
}

func (s *summaryOf) inputItem(m object) {
	s.Messages++
	before := len(s.Texts) + len(s.Items) + len(s.Schemas)
	for _, key := range []string{"role", "name"} {
		s.text(m[key])
	}
	for _, key := range []string{"content", "output", "summary"} {
		s.content(m[key])
	}
	for _, key := range []string{"arguments", "input", "action", "code", "outputs", "queries", "results", "tools"} {
		s.textOrSchema(m[key])
	}
	if _, ok := m["encrypted_content"].(string); ok {
		s.item(Encrypted, m["encrypted_content"])
	}
	if _, ok := m["result"].(string); ok {
		s.item(Image, m["result"])
	}
	plain := []any{nil, "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"}
	if !slices.Contains(plain, m["type"]) {
		s.Inexact = true
		if before == len(s.Texts)+len(s.Items)+len(s.Schemas) {
			s.item(Other, nil)
		}
	}
}

func (s *summaryOf) content(v any) {
	switch v := v.(type) {
	case string:
		s.text(v)
	case object:
		s.part(v)
	case []any:
		for _, p := range v {
			s.part(p.(object))
		}
	}
}

func (s *summaryOf) part(p object) {
	words := false
	for _, key := range []string{"text", "thinking", "refusal"} {
		if _, ok := p[key]; ok {
			words = true
			s.text(p[key])
		}
	}
	if v, ok := p["content"]; ok {
		words = true
		s.content(v)
	}
	if v, ok := p["input"]; ok {
		words = true
		s.schema(v)
	}
	for _, key := range []string{"name", "title", "context"} {
		s.text(p[key])
	}
	for key, object := range map[string]string{"functionCall": "args", "function_call": "args", "functionResponse": "response", "function_response": "response"} {
		if v, ok := p[key]; ok {
			words = true
			s.geminiCall(v, object)
		}
	}
	s.carried(p, words)
}

func (s *summaryOf) geminiCall(v any, member string) {
	if call, ok := v.(object); ok {
		s.text(call["name"])
		s.schema(call[member])
	}
}

// carried tells what item a part is, if it is one.
func (s *summaryOf) carried(p object, words bool) {
	kind, carries, holdsText := Other, false, false
	var data any // a string, or nil
	for _, key := range []string{"image_url", "input_audio", "file", "file_data", "fileData", "file_url", "inlineData", "inline_data", "source"} {
		v := p[key]
		carries = carries || v != nil
		if text, ok := v.(string); ok && key != "source" {
			data = text
		}
		o, ok := v.(object)
		if !ok {
			continue
		}
		if c, ok := o["content"]; ok {
			s.content(c)
			words, holdsText = true, true
		}
		inline, given := o["data"].(string)
		if file, ok := o["file_data"].(string); ok && !given {
			inline, given = file, true
		}
		switch {
		case o["type"] == "text":
			if given {
				s.text(inline)
			}
			words, holdsText = true, true
		case given:
			data = inline
		default:
			data = onlyString(o["url"])
		}
		for _, key := range []string{"mimeType", "mime_type"} {
			if media, ok := o[key]; ok {
				kind = File
				text, _ := media.(string)
				if strings.HasPrefix(text, "image/") {
					kind = Image
				} else if strings.HasPrefix(text, "audio/") {
					kind = Audio
				}
			}
		}
	}
	_, quoted := p["source"].(string)
	s.decide(p, kind, data, words && (!carries || holdsText || quoted), holdsText)
}

func onlyString(v any) any {
	if _, ok := v.(string); !ok {
		return nil
	}
	return v
}

func (s *summaryOf) decide(p object, kind ItemKind, data any, isWords, holdsText bool) {
	switch p["type"] {
	case "image_url", "image", "input_image", "computer_screenshot":
		kind = Image
	case "input_audio", "audio":
		kind = Audio
	case "file", "input_file", "document":
		kind = File
	}
	sealed, hasSealed := p["data"].(string)
	if text, ok := p["encrypted_content"].(string); ok {
		sealed, hasSealed = text, true
	}
	if kind == Other {
		s.text(p["source"])
		if hasSealed {
			s.item(Encrypted, sealed)
			isWords = true
		}
	} else {
		isWords = holdsText
		if data == nil {
			data = onlyString(p["source"])
		}
		if data == nil && hasSealed {
			data = sealed
		}
	}
	if !isWords || data != nil {
		s.item(kind, data)
	}
}
