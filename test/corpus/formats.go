package corpus

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

func formatKinds() []kind {
	return []kind{
		{"markdown", (*source).markdown},
		{"json", (*source).json},
		{"log", (*source).logLine},
		{"csv", func(s *source) string { return s.phrase() + "," + s.digits() + ",\"" + s.phrase() + "\"\r\n" }},
		{"base64", func(s *source) string { return base64.StdEncoding.EncodeToString(s.bytes(3 + s.IntN(60))) }},
		{"hex", func(s *source) string { return fmt.Sprintf("%x", s.bytes(1+s.IntN(32))) }},
		{"url", func(s *source) string {
			return "https://" + s.identifier() + ".example/" + s.identifier() + "?" + s.identifier() + "=" + s.digits() + "%20" + s.identifier() + "#" + s.identifier() + s.pick(lineEnds)
		}},
	}
}

func (s *source) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.Uint32())
	}
	return b
}

var markdownLines = []string{
	"# $s", "## $s\n", "- $s", "  * [ ] $s", "$n. $s", "> $s", "```go\n$i := $n\n```", "| $i | $n | $s |", "|---|:---:|---:|",
	"**$s** and _$s_, `$i`", "[$s](https://example.org/$i#$i)", "![$i]($i.png)", "---", "$s\\\n$s", "<!-- $s -->", "$s  ", "***$s***", "~~$s~~", "\\$$n = \\frac{$n}{$i}$$", "[^$n]: $s", "====================", "&mdash;",
}

func (s *source) markdown() string { return s.fill(s.pick(markdownLines)) + s.pick(lineEnds) }

func (s *source) json() string {
	value := map[string]any{s.identifier(): s.phrase(), s.identifier(): []any{s.IntN(100000), s.Float64(), nil, s.oneIn(2)}, s.pick(parts): map[string]string{}}
	var b []byte
	if s.oneIn(2) {
		b, _ = json.MarshalIndent(value, "", s.pick([]string{"  ", "    ", "\t"}))
	} else {
		b, _ = json.Marshal(value)
	}
	return string(b) + s.pick([]string{",", "\n", ", ", ""})
}

var logLines = []string{
	"2024-$n-$nT$n:$n:$n.$nZ INFO $i: $s", "$n.$n.$n.$n - - [$n/Oct/2024:$n:$n +0000] \"GET /$i/$i HTTP/1.1\" 200 $n", "E$n $n:$n:$n.$n   $n $i.go:$n] $s err=\"$s\"",
	"\tat org.$i.$i($i.java:$n)", "{\"level\":\"warn\",\"ts\":$n.$n,\"msg\":\"$s\"}", "[$n%] ======>            | $nMB/s", "\x1b[31mERROR\x1b[0m $s", "goroutine $n [running]:", "level=info $i=$n $i=\"$s\"", "$i[$n]: segfault at $n ip 0000$n sp 00007ffc$n",
}

func (s *source) logLine() string {
	line := s.fill(s.pick(logLines))
	if s.oneIn(8) {
		line = strings.ToUpper(line)
	}
	return line + s.pick(lineEnds)
}
