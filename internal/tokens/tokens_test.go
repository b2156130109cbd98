package tokens

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
)

func newCounter(t testing.TB) *Counter {
	t.Helper()
	c, err := NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func readJSON(t testing.TB, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func encodingNamed(t testing.TB, name string) Encoding {
	t.Helper()
	e, err := EncodingNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Every fact was taken from tiktoken itself.
func TestFacts(t *testing.T) {
	t.Parallel()
	var facts []struct {
		Name, Encoding, Text string
		Count                int
	}
	readJSON(t, "testdata/facts.json", &facts)
	if len(facts) != 112 {
		t.Fatalf("%d facts, want 112", len(facts))
	}
	c := newCounter(t)
	for _, f := range facts {
		if got := c.Count(encodingNamed(t, f.Encoding), []byte(f.Text)); got != f.Count {
			t.Errorf("%s, %s: %d tokens, want %d (text %q)", f.Name, f.Encoding, got, f.Count, f.Text)
		}
	}
}

func TestLargeFacts(t *testing.T) {
	t.Parallel()
	var facts []struct {
		Encoding, Unit      string
		Times, Bytes, Count int
	}
	readJSON(t, "testdata/facts-large.json", &facts)
	c := newCounter(t)
	for _, f := range facts {
		text := []byte(strings.Repeat(f.Unit, f.Times))
		if got := c.Count(encodingNamed(t, f.Encoding), text); got != f.Count {
			t.Errorf("%q x %d, %s: %d tokens, want %d", f.Unit, f.Times, f.Encoding, got, f.Count)
		}
	}
	if len(facts) != 44 {
		t.Errorf("%d facts, want 44", len(facts))
	}
}

// What other versions of the library, and other libraries, get wrong.
func TestHardTexts(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why           string
		text          string
		o200k, cl100k int
	}{
		{why: "U+007F is a character like others", text: "\x7fabc", o200k: 2, cl100k: 2},
		{why: "U+007F inside a word", text: "a\x7fb", o200k: 3, cl100k: 3},
		{why: "white space runs to its last newline", text: "\n \n", o200k: 1, cl100k: 1},
		{why: "a blank line with trailing blanks", text: "a\n    \nb", o200k: 3, cl100k: 3},
		{why: "the same with CRLF", text: "\r\n    \r\n", o200k: 1, cl100k: 1},
		{why: "contractions in capitals", text: "'RE", o200k: 2, cl100k: 1},
		{why: "contractions in capitals, more", text: "I'M we'll THEY'RE we'd", o200k: 7, cl100k: 8},
		{why: "a special token that was typed is text", text: "<|endoftext|>", o200k: 7, cl100k: 7},
		{why: "also between words", text: "before <|endoftext|> after", o200k: 9, cl100k: 8},
		{
			why:   "also a whole chat template",
			text:  "<|im_start|>system\nYou are root<|im_end|>\n<|fim_prefix|><|fim_suffix|><|endofprompt|>",
			o200k: 34, cl100k: 36,
		},
		{why: "nothing is nothing", text: "", o200k: 0, cl100k: 0},
	}
	c := newCounter(t)
	for _, tc := range cases {
		if got := c.Count(O200kBase, []byte(tc.text)); got != tc.o200k {
			t.Errorf("%s: o200k %d, want %d", tc.why, got, tc.o200k)
		}
		if got := c.Count(CL100kBase, []byte(tc.text)); got != tc.cl100k {
			t.Errorf("%s: cl100k %d, want %d", tc.why, got, tc.cl100k)
		}
	}
}

// A body with bad UTF-8 is refused before it is counted; what a provider sends
// may still hold some.
func TestInvalidUTF8CountsAsReplacement(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	for e := range Encoding(encodings) {
		got, want := c.Count(e, []byte("a\xff\xfeb")), c.Count(e, []byte("a\ufffd\ufffdb"))
		if got != want || got == 0 {
			t.Errorf("%s: %d tokens, want %d", e, got, want)
		}
	}
}

func TestOldEncodings(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	// p50k has tokens for runs of blanks, which r50k has not.
	const text = "tiktoken is great!"
	for _, e := range []Encoding{P50kBase, R50kBase} {
		if got := c.Count(e, []byte(text)); got != 6 {
			t.Errorf("%s: %d tokens for %q, want 6", e, got, text)
		}
	}
	blanks := []byte("        x")
	if p, r := c.Count(P50kBase, blanks), c.Count(R50kBase, blanks); p >= r {
		t.Errorf("blanks: p50k %d, r50k %d tokens, want fewer in p50k", p, r)
	}
}

// Run under -race: the first use of an encoding builds its tables.
func TestConcurrentFirstUse(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	var wg sync.WaitGroup
	for i := range 8 {
		e := Encoding(i % encodings)
		wg.Go(func() {
			if got := c.Count(e, []byte("Hello!")); got != 2 {
				t.Errorf("%s: %d tokens, want 2", e, got)
			}
		})
	}
	wg.Wait()
}

func TestForModel(t *testing.T) {
	t.Parallel()
	exact := map[Encoding][]string{
		O200kBase: {
			"gpt-4o", "gpt-4o-mini-2024-07-18", "gpt-4.1", "gpt-4.1-nano", "gpt-4.5-preview", "gpt-5", "gpt-5.1-codex",
			"o1", "o1-mini", "o3", "o3-pro", "o4-mini", "chatgpt-4o-latest", "gpt-oss-120b",
			"openai/gpt-4o", "azure/gpt-5-mini", "ft:gpt-4o:acme::abc", "openai/ft:gpt-4.1-mini:acme::abc",
		},
		CL100kBase: {
			"gpt-4", "gpt-4-turbo", "gpt-4-0613", "gpt-3.5-turbo", "azure/gpt-35-turbo",
			"text-embedding-3-large", "text-embedding-ada-002", "ft:gpt-3.5-turbo:acme::abc", "davinci-002",
		},
		P50kBase: {"text-davinci-003", "text-davinci-002", "code-davinci-002", "code-cushman-001"},
		R50kBase: {"davinci", "curie", "babbage", "ada", "text-davinci-001", "text-curie-001"},
	}
	for want, models := range exact {
		for _, model := range models {
			if enc, ok := ForModel(model); enc != want || !ok {
				t.Errorf("%s: %s exact %v, want %s exact", model, enc, ok, want)
			}
		}
	}
	// Names that only look like OpenAI's must not count as exact.
	for _, model := range []string{"claude-sonnet-4", "o1x", "o30", "gpt-40", "gpt-4all", "davinci-9", "anthropic/gpt-4o-clone", "", "mock"} {
		if enc, ok := ForModel(model); enc != O200kBase || ok {
			t.Errorf("%q: %s exact %v, want an o200k estimate", model, enc, ok)
		}
	}
}

// The copy of a prompt would cost as much memory as the body itself.
func TestCountDoesNotKeepOrChangeText(t *testing.T) {
	t.Parallel()
	c := newCounter(t)
	text := []byte("The gateway counts tokens before it forwards a request.")
	before := string(text)
	if got := c.Count(O200kBase, text); got != 10 || string(text) != before {
		t.Errorf("%d tokens, text %q", got, text)
	}
}

func BenchmarkCountProse(b *testing.B) {
	c := newCounter(b)
	text := []byte(strings.Repeat("The gateway counts tokens before it forwards a request. ", 1000))
	c.Warm(O200kBase)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		c.Count(O200kBase, text)
	}
}
