package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runCount runs the command with args over stdin.
func runCount(stdin string, args ...string) (string, error) {
	root := newRoot()
	var out bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"count"}, args...))
	err := root.Execute()
	return out.String(), err
}

func TestCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hello, crlf := filepath.Join(dir, "hello.txt"), filepath.Join(dir, "crlf.txt")
	for file, text := range map[string]string{hello: "Hello, world", crlf: "\r\n    \r\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const body = `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello!"}]}`
	for _, c := range []struct {
		why, stdin string
		args       []string
		want       string
	}{
		{"standard input", "Hello!", nil, "2\n"},
		{"nothing", "", nil, "0\n"},
		{"a file", "", []string{hello}, "3\n"},
		{"line ends as they are", "", []string{crlf}, "1\n"},
		{"a dash among files", "Hello!", []string{hello, "-"}, "        3 " + hello + "\n        2 -\n        5 total\n"},
		{"another encoding", "'RE", []string{"--encoding", "cl100k_base"}, "1\n"},
		{"by a model", "'RE", []string{"--model", "gpt-4"}, "1\n"},
		{"special tokens are text", "<|endoftext|>", nil, "7\n"},
		{"a request", body, []string{"--chat"}, "9\n"},
		{"JSON", "Hello!", []string{"--json", "--model", "claude-sonnet-4"}, `{"file":"-","tokens":2,"bytes":6,"encoding":"o200k_base","exact":false}` + "\n"},
	} {
		if got, err := runCount(c.stdin, c.args...); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.why, got, err, c.want)
		}
	}
	for _, c := range []struct {
		why, stdin string
		args       []string
		want       string
	}{
		{"an unknown encoding", "x", []string{"--encoding", "gpt2"}, "o200k_base, cl100k_base, p50k_base, r50k_base"},
		{"both a model and an encoding", "x", []string{"--encoding", "r50k_base", "--model", "gpt-4"}, "none of the others can be"},
		{"a file that is not there", "", []string{filepath.Join(dir, "none")}, "cannot count"},
		{"a request that is none", `{"model":"gpt-4o"}`, []string{"--chat"}, "messages"},
	} {
		if _, err := runCount(c.stdin, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to name %q", c.why, err, c.want)
		}
	}
}
