package jsonscan

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bodySize is what a prompt of 100K tokens comes to.
const bodySize = 450_000

// source is the text of real files, repeated to size.
func source(b *testing.B, pattern string, size int) string {
	b.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		b.Fatal(pattern, err)
	}
	var all []byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, text...)
	}
	return string(bytes.Repeat(all, size/len(all)+1)[:size])
}

// split is a chat of n messages that hold text between them.
func split(text string, n int) []byte {
	var all []string
	for i := range n {
		part := text[len(text)*i/n : len(text)*(i+1)/n]
		all = append(all, `{"role":"user","content":`+string(AppendString(nil, part))+`}`)
	}
	return []byte(withMessages(`[` + strings.Join(all, ",") + `]`))
}

// BenchmarkScanChat is what admission does to a body before it counts: read it
// and unescape each text.
func BenchmarkScanChat(b *testing.B) {
	prose := source(b, "../../LICENSE", bodySize)
	code := source(b, "../*/*.go", bodySize*9/10) // escapes make it longer
	paragraphs := strings.ReplaceAll(source(b, "../../LICENSE", bodySize*105/100), "\n   ", " ")
	chinese := strings.Repeat("网关在转发请求之前会先计算令牌数量。", bodySize/54)
	for _, bench := range []struct {
		name string
		body []byte
	}{
		{"prose/1", split(prose, 1)},
		{"prose/200", split(prose, 200)},
		{"paragraphs/1", split(paragraphs, 1)},
		{"code/1", split(code, 1)},
		{"code/200", split(code, 200)},
		{"chinese/1", split(chinese, 1)},
		{"ascii escapes/1", split(strings.Repeat("\n", bodySize/2), 1)},
		{"unicode escapes/1", []byte(withMessages(`[{"role":"user","content":"` + strings.Repeat(`\u4f60\u597d`, bodySize/12) + `"}]`))},
	} {
		var c Chat
		var buf []byte
		scan := func(b *testing.B, each func(Span)) {
			b.SetBytes(int64(len(bench.body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Scan(bench.body, Limits{}); err != nil {
					b.Fatal(err)
				}
				for _, s := range c.Texts {
					each(s)
				}
			}
		}
		b.Run(bench.name+"/scan", func(b *testing.B) { scan(b, func(Span) {}) })
		b.Run(bench.name+"/scan+unescape", func(b *testing.B) {
			scan(b, func(s Span) { Unescaped(bench.body, s, &buf) })
		})
	}
}
