package openai

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/tokens"
)

func chat(messages string) string { return `{"model":"m-o","messages":` + messages + `}` }

// user is a chat of one user message with this content.
func user(content string) string { return chat(`[{"role":"user","content":` + content + `}]`) }

func TestCountPrompt(t *testing.T) {
	t.Parallel()
	description := strings.Repeat("word ", 80)
	tools := `[` + strings.Repeat(`{"type":"function","function":{"name":"f","description":"`+description+`"}},`, 49) +
		`{"type":"function","function":{"name":"f","description":"` + description + `"}}]`
	cases := []struct {
		why           string
		body          string
		o200k, cl100k int64
		exact         bool
	}{
		{"3 a message, role, content, 3 for the reply", user(`"Hello!"`), 9, 9, true},
		{"the same in parts", user(`[{"type":"text","text":"Hello!"}]`), 9, 9, true},
		{"escaped text is counted as what it means", user(`"\u0048ello!"`), 9, 9, true},
		{"empty content", user(`""`), 7, 7, true},
		{"a name is 1 and its tokens", chat(`[{"role":"user","name":"ada","content":"Hello!"}]`), 11, 11, true},
		{
			"null content and calls in the history",
			chat(`[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":null},{"role":"user","content":"Bye"}]`),
			17, 18, true,
		},
		{"developer", chat(`[{"role":"developer","content":"You are a helpful assistant."},{"role":"user","content":"Hello!"}]`), 19, 19, true},
		{"system", chat(`[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"Hello!"}]`), 19, 19, true},
		{"a special token that was typed", user(`"<|endoftext|>"`), 14, 14, true},
		{
			"calls: name 1, arguments 6", chat(`[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"city\":\"Ulm\"}"}}]}]`),
			14, 14, true,
		},
	}
	o200k, cl100k := counter(t, tokens.O200kBase), counter(t, tokens.CL100kBase)
	var buf []byte
	for _, tc := range cases {
		c := scan(t, tc.body)
		got := CountPrompt([]byte(tc.body), c, "m-o", o200k, &buf)
		if got.Tokens != tc.o200k || got.Exact != tc.exact || got.Items != 0 {
			t.Errorf("%s: %+v, want %d in o200k", tc.why, got, tc.o200k)
		}
		if got := CountPrompt([]byte(tc.body), c, "m-o", cl100k, &buf); got.Tokens != tc.cl100k {
			t.Errorf("%s: %+v, want %d in cl100k", tc.why, got, tc.cl100k)
		}
	}
	with := strings.Replace(user(`"Hello!"`), `"messages"`, `"tools":`+tools+`,"messages"`, 1)
	got := CountPrompt([]byte(with), scan(t, with), "m-o", o200k, &buf)
	if got.Tokens < 4000 || got.Exact {
		t.Errorf("50 tools: %+v, want at least their descriptions, not exact", got)
	}
}

// png is a data URL of a PNG's first bytes, all that is ever looked at.
func png(width, height uint32) string {
	head := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(head[16:], width)
	binary.BigEndian.PutUint32(head[20:], height)
	head = append(head, make([]byte, 9)...)
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(head)
}

func TestImages(t *testing.T) {
	t.Parallel()
	url := func(url, detail string) string {
		if detail != "" {
			detail = `,"detail":"` + detail + `"`
		}
		return `{"type":"image_url","image_url":{"url":"` + url + `"` + detail + `}}`
	}
	cases := []struct {
		why, model, part string
		want             int64
	}{
		{"1024 x 1024 is four tiles", "gpt-4o", url(png(1024, 1024), ""), 765},
		{"auto is not low", "gpt-4o", url(png(1024, 1024), "auto"), 765},
		{"high", "gpt-4o", url(png(1024, 1024), "high"), 765},
		{"low is the base", "gpt-4o", url(png(1024, 1024), "low"), 85},
		{"2048 x 4096 is six tiles", "gpt-4o", url(png(2048, 4096), "high"), 1105},
		{"4096 x 4096 is four", "gpt-4o", url(png(4096, 4096), "high"), 765},
		{"one pixel is one tile", "gpt-4o", url(png(1, 1), ""), 255},
		{"the scheme in capitals", "gpt-4o", url(strings.Replace(png(1, 1), "data:image/png;base64", "DATA:IMAGE/PNG;BASE64", 1), ""), 255},
		{"mini", "openai/gpt-4o-mini", url(png(1024, 1024), "high"), 25501},
		{"mini at low detail", "gpt-4o-mini-2024-07-18", url(png(1024, 1024), "low"), 2833},
		{"an unknown model is taken as a tile model", "m-o", url(png(1024, 1024), ""), 765},
		{"patches", "gpt-4.1-mini", url(png(1024, 1024), "low"), 1659},
		{"patches are bounded", "gpt-4.1-mini", url(png(4096, 4096), ""), 2489},
		{"a URL is never fetched: the most an image can cost", "gpt-4o", url("http://169.254.169.254/x.png", ""), 1445},
		{"a URL at low detail", "gpt-4o", url("https://example.com/x.png", "low"), 85},
		{"another format", "gpt-4o", url("data:image/jpeg;base64,/9j/4AAQSkZJRgABAQ", ""), 1445},
		{"no PNG in it", "gpt-4o", url("data:image/png;base64,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", ""), 1445},
		{"broken base64", "gpt-4o", url("data:image/png;base64,####################################", ""), 1445},
		{"too short", "gpt-4o", url("data:image/png;base64,AAAA", ""), 1445},
		{"no size", "gpt-4o", url(png(0, 7), ""), 1445},
		{"an absurd size", "gpt-4o", url(png(1<<31, 1<<31), ""), 1445},
		{"a long strip", "gpt-4o", url(png(1_000_000, 1), ""), 85 + 4*170},
		{"no URL at all", "gpt-4o", `{"type":"image_url"}`, 1445},
		{"audio by its length", "gpt-4o-audio", `{"type":"input_audio","input_audio":{"data":"` + strings.Repeat("A", 4000) + `"}}`, 7},
		{"a file by reference", "gpt-4o", `{"type":"file","file":{"file_id":"f"}}`, 4096},
		{"a large file", "gpt-4o", `{"type":"file","file":{"file_data":"` + strings.Repeat("A", 80_000) + `"}}`, 15000},
		{"a part nobody knows", "gpt-4o", `{"type":"new"}`, 14},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			body := user(`[` + tc.part + `]`)
			var buf []byte
			got := CountPrompt([]byte(body), scan(t, body), tc.model, words, &buf)
			if got.Items != tc.want || got.Exact || got.Tokens != 3+1+3+tc.want {
				t.Errorf("%+v, want %d for the item", got, tc.want)
			}
		})
	}
}

// Two megabytes of base64 must not become tokens, wherever they stand.
func TestInlineDataIsNeverText(t *testing.T) {
	t.Parallel()
	payload := strings.Repeat("ABCD", 1<<19)
	image := `{"type":"image_url","image_url":{"url":"%s` + payload + `","detail":"low"}}`
	hello := `[{"type":"text","text":"Hello!"},%s]`
	o200k := counter(t, tokens.O200kBase)
	counted := 0
	count := func(text []byte) int {
		counted += len(text)
		return o200k(text)
	}
	for _, body := range []string{
		user(fmt.Sprintf(hello, fmt.Sprintf(image, "data:image/png;base64,"))),
		user(fmt.Sprintf(hello, fmt.Sprintf(image, "DATA:IMAGE/PNG;BASE64,"))),
		strings.Replace(user(fmt.Sprintf(hello, fmt.Sprintf(image, "data:image/png;base64,"))), `"user"`, `"tool"`, 1),
	} {
		counted = 0
		var buf []byte
		got := CountPrompt([]byte(body), scan(t, body), "gpt-4o", count, &buf)
		if got.Tokens != 94 {
			t.Errorf("%d tokens, want 94", got.Tokens)
		}
		if counted > 20 || cap(buf) > 100 {
			t.Errorf("%d bytes were counted as text, %d copied", counted, cap(buf))
		}
	}
	audio := user(fmt.Sprintf(hello, `{"type":"input_audio","input_audio":{"data":"`+payload+`","format":"wav"}}`))
	var buf []byte
	if got := CountPrompt([]byte(audio), scan(t, audio), "gpt-4o", count, &buf); got.Tokens > 4000 {
		t.Errorf("audio: %d tokens", got.Tokens)
	}
}
