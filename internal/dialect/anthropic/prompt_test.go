package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
)

// words stands for an encoding: the arithmetic around the texts is the point.
func words(text []byte) int { return len(bytes.Fields(text)) }

func count(t testing.TB, model, members string) (tokens, items int64) {
	t.Helper()
	body := []byte(`{"model":"m",` + members + `}`)
	r, err := jsonscan.Scan(body, jsonscan.Messages, jsonscan.Limits{})
	if err != nil {
		t.Fatalf("%v in %.300s", err, body)
	}
	var buf []byte
	size := CountMessages(body, r, model, words, &buf)
	if size.Exact {
		t.Errorf("%.300s: the provider's tokenizer is not public: never exact", body)
	}
	return size.Tokens, size.Items
}

func user(content string) string { return `"messages":[{"role":"user","content":` + content + `}]` }

func TestCountMessages(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why, members string
		want         int64
	}{
		{"3, the role, the text, 3 for the reply", user(`"two words"`), 3 + 1 + 2 + 3},
		{"the same in blocks", user(`[{"type":"text","text":"two"},{"type":"text","text":"words"}]`), 9},
		{"system is a message", `"system":"be brief",` + user(`"two words"`), 9 + 3 + 1 + 2},
		{"system in blocks", `"system":[{"type":"text","text":"be brief"}],` + user(`"two words"`), 15},
		{"system that is null", `"system":null,` + user(`"two words"`), 9},
		{"null content", `"messages":[{"role":"user","content":null}]`, 3 + 1 + 3},
		{"a tool call: its name, its input as written", user(`[{"type":"tool_use","id":"t","name":"f","input":{"a": 1}}]`), 3 + 1 + 1 + 2 + 3},
		{"a result", user(`[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"two words"}]}]`), 9},
		{"tools are never free", `"tools":[{"name":"f", "input_schema":{}}],` + user(`"two words"`), 9 + 2},
		{"thinking", user(`[{"type":"thinking","thinking":"two words","signature":"x y z"}]`), 9},
		{"a document that is text", user(`[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"two words"}}]`), 9},
	}
	for _, tc := range cases {
		if got, items := count(t, "claude-sonnet-4-5", tc.members); got != tc.want || items != 0 {
			t.Errorf("%s: %d (%d for items), want %d", tc.why, got, items, tc.want)
		}
	}
}

// png is the start of a PNG, all that is ever looked at, in base64.
func png(width, height uint32) string {
	head := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), make([]byte, 17)...)
	binary.BigEndian.PutUint32(head[16:], width)
	binary.BigEndian.PutUint32(head[20:], height)
	return base64.StdEncoding.EncodeToString(head)
}

func TestImages(t *testing.T) {
	t.Parallel()
	inline := func(data string) string {
		return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}`
	}
	const old, recent = "claude-sonnet-4-5-20250929", "claude-opus-4-8"
	cases := []struct {
		why, model, block string
		want              int64
	}{
		{"200 x 200: 54 by pixels, 64 by patches, the dearer", old, inline(png(200, 200)), 64},
		{"1000 x 1000: 1334 by pixels, 1296 by patches", old, inline(png(1000, 1000)), 1334},
		{"one pixel", old, inline(png(1, 1)), 1},
		{"1092 x 1092 is as large as it may be", old, inline(png(1092, 1092)), 1590},
		{"larger than that is scaled down", old, inline(png(4000, 3000)), 1600},
		{"a long strip is fitted by its longer side", old, inline(png(15680, 100)), 56},
		{"newer models see more", recent, inline(png(1092, 1092)), 1590},
		{"up to a limit", recent, inline(png(4000, 3000)), 4784},
		{"1920 x 1080 on a newer model", recent, inline(png(1920, 1080)), 2765},
		{"a model nobody knows is taken as a newer one", "m", inline(png(4000, 3000)), 4784},
		{"Bedrock's name", "us.anthropic.claude-3-5-sonnet-20240620-v1:0", inline(png(4000, 3000)), 1600},
		{"Vertex' name", "claude-opus-4@20250514", inline(png(4000, 3000)), 1600},
		{"the name before there were versions behind it", "anthropic/claude-4-opus-20250514", inline(png(4000, 3000)), 1600},
		{"a URL is never fetched: the most", old, `{"type":"image","source":{"type":"url","url":"http://169.254.169.254/x.png"}}`, 1600},
		{"a file that the provider has: the most", old, `{"type":"image","source":{"type":"file","file_id":"f"}}`, 1600},
		{"another format: the most", recent, inline("/9j/4AAQSkZJRgABAQAAAAAAAAAAAAAAAAAAAAAA"), 4784},
		{"no source: the most", old, `{"type":"image"}`, 1600},
		{"in a tool's result", old, `{"type":"tool_result","content":[` + inline(png(200, 200)) + `]}`, 64},
		{"OpenAI's form of it", old, `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png(200, 200) + `"}}`, 64},
		{"a small document", old, `{"type":"document","source":{"type":"base64","data":"JVBE"}}`, 4096},
		{"a block nobody knows", old, `{"type":"new"}`, 14},
	}
	for _, tc := range cases {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			if got, items := count(t, tc.model, user(`[`+tc.block+`]`)); items != tc.want || got != 3+1+3+tc.want {
				t.Errorf("%d in all, %d for the item, want %d", got, items, tc.want)
			}
		})
	}
}

// Two megabytes of base64 must not become tokens, wherever they stand.
func TestInlineDataIsNeverText(t *testing.T) {
	t.Parallel()
	payload := strings.Repeat("ABCD", 1<<19)
	image := `{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"` + payload + `"}}`
	for _, block := range []string{
		image,
		`{"source":{"data":"` + payload + `","media_type":"image/jpeg","type":"base64"},"type":"image"}`,
		`{"type":"tool_result","tool_use_id":"t","content":[` + image + `]}`,
		`{"type":"document","source":{"type":"content","content":[` + image + `]}}`,
		`{"type":"new","source":{"type":"base64","data":"` + payload + `"}}`,
	} {
		if got, items := count(t, "claude-3-haiku", user(`[`+block+`]`)); got > 2000 || items > 1600 {
			t.Errorf("%d tokens, %d for the item, in %.100s", got, items, block)
		}
	}
}
