package main

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/penstock-gateway/penstock/internal/tokens"
	"github.com/penstock-gateway/penstock/internal/tokens/tokenstest"
	"github.com/penstock-gateway/penstock/test/corpus"
)

// The test's own program stands in for node, when its first argument is one of these
// scripts.
const (
	honest = "fake:honest" // counts like the reference
	lies   = "fake:lies"   // counts one too many where a text begins with an A
	dies   = "fake:dies"   // fails at the first question
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "fake:") {
		fake(os.Args[1], os.Args[2:])
		return
	}
	goleak.VerifyTestMain(m)
}

func fake(script string, names []string) {
	references := make(map[string]*tokenstest.Reference)
	for {
		var header [8]byte
		if _, err := io.ReadFull(os.Stdin, header[:]); err != nil {
			return
		}
		if script == dies {
			os.Exit(3)
		}
		texts := make([]byte, binary.LittleEndian.Uint32(header[:])-4)
		if _, err := io.ReadFull(os.Stdin, texts); err != nil {
			os.Exit(1)
		}
		name := names[binary.LittleEndian.Uint32(header[4:])]
		if references[name] == nil {
			references[name], _ = tokenstest.New(name)
		}
		var counts []byte
		for len(texts) > 0 {
			n := binary.LittleEndian.Uint32(texts)
			text := texts[4 : 4+n]
			texts = texts[4+n:]
			count := references[name].Count(text)
			if script == lies && len(text) > 0 && text[0] == 'A' {
				count++
			}
			counts = binary.LittleEndian.AppendUint32(counts, uint32(count))
		}
		if _, err := os.Stdout.Write(counts); err != nil {
			os.Exit(1)
		}
	}
}

func runFake(t *testing.T, script string, arguments ...string) (string, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse(append([]string{"-node", program, "-script", script, "-encodings", "r50k_base", "-suites", "strings", "-seed", "1"}, arguments...))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = run(context.Background(), o, &out)
	return out.String(), err
}

func TestEqualCountsPass(t *testing.T) {
	t.Parallel()
	out, err := runFake(t, honest, "-strings", "2500", "-reference", "1")
	if err != nil {
		t.Fatal(err)
	}
	// Three batches, each with a text of its texts joined.
	for _, line := range []string{"2503 strings compared, 0 differ", "suites: 2 passed, 0 failed"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in:\n%s", line, out)
		}
	}
}

// A comparison that cannot fail proves nothing.
func TestOneTokenTooManyFails(t *testing.T) {
	t.Parallel()
	out, err := runFake(t, lies, "-strings", "2500", "-reference", "1", "-show", "4")
	if err == nil {
		t.Errorf("no error, and the output is:\n%s", out)
	}
	for _, part := range []string{"r50k_base: \"A", "-seed ", "the original counts", "; ours ", "the reference ", "more differences are not shown", "suites: 0 passed, 2 failed"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in:\n%s", part, out)
		}
	}
}

// Nothing compared is no success either.
func TestDeadOracleFails(t *testing.T) {
	t.Parallel()
	if out, err := runFake(t, dies, "-strings", "10"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v, want one with the exit status; the output is:\n%s", err, out)
	}
}

func TestUnknownFlagsAreNamed(t *testing.T) {
	t.Parallel()
	for knob, arguments := range map[string][]string{
		"-suites":    {"-suites", "string"},
		"-encodings": {"-encodings", "o300k_base"},
		"-strings":   {"-strings", "0"},
	} {
		if _, err := parse(arguments); err == nil || !strings.Contains(err.Error(), knob) {
			t.Errorf("%v: error %v, want one that names %s", arguments, err, knob)
		}
	}
}

func TestEveryCodePointIsAskedForInEachContext(t *testing.T) {
	t.Parallel()
	for _, context := range contexts() {
		if !strings.ContainsRune(context, placeholder) {
			t.Errorf("context %q has no place for a code point", context)
		}
	}
	texts := 0
	for b := range codePointBatches(tokens.O200kBase) {
		all := b.texts()
		texts += len(all)
		if len(all) > 0 && !utf8.Valid(all[len(all)-1]) {
			t.Fatalf("%q is not valid", all[len(all)-1])
		}
	}
	if want := (utf8.MaxRune + 1 - 0x800) * len(contexts()); texts != want {
		t.Errorf("%d texts, want %d", texts, want)
	}
	if got, want := string(inContext("a·'s·", '漢')), "a漢's漢"; got != want {
		t.Errorf("%q in its context, want %q", got, want)
	}
}

func TestEveryCombination(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for b := range combinationBatches(tokens.O200kBase) {
		for _, text := range b.texts() {
			seen[string(text)] = true
		}
	}
	// A blank and a letter among them.
	for _, text := range []string{" ", " a", "B", "漢", "\r\n/a", " \x00েন", "\n\n\n\n", "😀😀😀😀a"} {
		if !seen[text] {
			t.Errorf("%q is not asked for", text)
		}
	}
	// 25 to the power of 1 to 4, and with the letter those of 4 that do not end in it again.
	n := len(representatives) + 1
	if want := n + n*n + n*n*n + n*n*n*n + n*n*n*n; n != 25 || len(seen) != want {
		t.Errorf("%d texts of %d characters, want %d", len(seen), n, want)
	}
}

// What a difference is repeated by.
func TestOriginNamesTheText(t *testing.T) {
	t.Parallel()
	b := codePointBatch(tokens.O200kBase, 0x1f00)
	at := 3*len(contexts()) + 1
	if got, text := b.origin(at), string(b.texts()[at]); !strings.Contains(got, "U+1F03") || text != "\u1f03\u1f03a" {
		t.Errorf("%q is said of %q", got, text)
	}
	c := corpus.New(nil)
	s := stringBatch(tokens.O200kBase, c, 70, 5)
	if got, text := s.origin(2), s.texts()[2]; !strings.Contains(got, "-seed 72") || string(text) != string(c.Text(72)) {
		t.Errorf("%q is said of %q", got, text)
	}
}
