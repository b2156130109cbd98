package jsonscan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// generator makes bodies of members that are read, in any order and mixture, so
// that combinations come up that no client would think of.
type generator struct{ *rand.Rand }

var (
	partKeys = strings.Fields("type text thinking refusal content input name title context functionCall function_response " +
		"image_url input_audio file file_data file_url inlineData source detail data encrypted_content other")
	dataKeys    = strings.Fields("type url data file_data detail mimeType content other")
	messageKeys = strings.Fields("name content tool_calls function_call reasoning_content refusal other")
	itemKeys    = strings.Fields("type role content name arguments input output summary encrypted_content result action code queries other")
	typeNames   = strings.Fields("text image image_url input_image input_audio file document tool_use tool_result thinking base64 url other " +
		"message function_call reasoning item_reference computer_screenshot")
)

func (g generator) oneOf(list []string) string { return list[g.IntN(len(list))] }

func (g generator) word() string {
	return g.oneOf([]string{`"a"`, `"b\n"`, `""`, `"\u00e9"`, `null`, `"image/png"`, `"audio/wav"`})
}

// object has some of the keys, each once.
func (g generator) object(keys []string, depth int) string {
	var members []string
	for _, i := range g.Perm(len(keys))[:g.IntN(min(5, len(keys)))] {
		members = append(members, fmt.Sprintf("%q:%s", keys[i], g.member(keys[i], depth)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g generator) member(key string, depth int) string {
	switch {
	case key == "type":
		return `"` + g.oneOf(typeNames) + `"`
	case key == "tool_calls":
		return g.oneOf([]string{`null`, `[]`, `[{"function":{"name":"f","arguments":"{}"}},{"custom":{"input":"i","name":null}}]`})
	case key == "function_call":
		return g.oneOf([]string{`null`, `{}`, `{"name":"f","arguments":"{}"}`})
	case key == "functionCall" || key == "function_response":
		return g.oneOf([]string{`null`, `{"name":"f","args":{"a":1},"response":[2]}`})
	case depth == 0 || g.IntN(3) == 0:
		return g.word()
	case key == "content" || key == "output" || key == "summary":
		return g.oneOf([]string{g.list(partKeys, depth-1), g.object(partKeys, depth-1), g.list(partKeys, depth-1)})
	case key == "input" || key == "arguments" || key == "action":
		return g.oneOf([]string{`{"a":[1,"x"]}`, `[1]`, `2`})
	case key == "text" || key == "role":
		return g.word()
	}
	return g.object(dataKeys, depth-1)
}

func (g generator) list(keys []string, depth int) string {
	var all []string
	for range g.IntN(4) {
		all = append(all, g.object(keys, depth))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func (g generator) messages() string {
	var all []string
	for range 1 + g.IntN(3) {
		all = append(all, strings.Replace(g.object(messageKeys, 3), "{", `{"role":"user",`, 1))
	}
	return strings.ReplaceAll("["+strings.Join(all, ",")+"]", ",}", "}")
}

func (g generator) body() (string, Shape) {
	shape := []Shape{ChatCompletions, Responses, Messages, TokenCounter}[g.IntN(4)]
	switch {
	case shape == Responses:
		return `{"model":"m","input":` + g.list(itemKeys, 3) + `,"instructions":` + g.word() + `}`, shape
	case shape == TokenCounter && g.IntN(2) == 0:
		return `{"model":"m","contents":[{"role":"user","parts":` + g.list(partKeys, 2) + `}]}`, shape
	case shape == ChatCompletions:
		return withMessages(g.messages()), shape
	}
	return `{"system":` + g.member("content", 2) + `,"model":"m","messages":` + g.messages() + `}`, shape
}

func TestAgainstReference(t *testing.T) {
	t.Parallel()
	g := generator{rand.New(rand.NewPCG(1, 2))}
	var q Request
	accepted := 0
	for range 10_000 {
		text, shape := g.body()
		body := []byte(text)
		if !json.Valid(body) {
			t.Fatalf("the generator is wrong: %s", body)
		}
		if q.Scan(body, shape, Limits{}) != nil {
			continue
		}
		accepted++
		if diff := cmp.Diff(reference(t, body, shape), summarize(t, body, &q), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s in %s", diff, body)
		}
	}
	if accepted < 3000 {
		t.Errorf("only %d bodies were accepted: the test proves little", accepted)
	}
}

// Escapes of every kind at every place of a block, with every distance to the
// end of the string and of the body.
func TestBlocks(t *testing.T) {
	t.Parallel()
	g := generator{rand.New(rand.NewPCG(3, 4))}
	pieces := []string{`\n`, `\\`, `\"`, `\/`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\u0000`, "é", "x", "xx", strings.Repeat("y", 40), strings.Repeat("z", 130)}
	for range 20_000 {
		var b strings.Builder
		b.WriteString(`["`)
		b.WriteString(strings.Repeat("p", g.IntN(70)))
		for range g.IntN(20) {
			b.WriteString(g.oneOf(pieces[:1+g.IntN(len(pieces))]))
		}
		end := b.Len() + 1
		b.WriteString(`","`)
		b.WriteString(strings.Repeat(g.oneOf([]string{`\\`, "t"}), g.IntN(200)))
		b.WriteString(`"]`)
		body := []byte(b.String())
		if err := valid(body, 0); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		var want []string
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		if got := AppendUnescaped([]byte("before "), body, Span{1, end}); string(got) != "before "+want[0] {
			t.Fatalf("%q, want %q", got, want[0])
		}
		// One byte that is wrong must be found wherever it stands.
		body[1+g.IntN(end)] = "\x01\x1f\xff\x80\\\""[g.IntN(6)]
		if got, wrong := valid(body, 0), !json.Valid(body) || strings.ContainsRune(strings.ToValidUTF8(string(body), "\x00"), 0); (got != nil) != wrong {
			t.Fatalf("%v, want an error: %v, in %q", got, wrong, body)
		}
	}
}
