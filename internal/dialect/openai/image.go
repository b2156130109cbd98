package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/penstock-gateway/penstock/internal/jsonscan"
)

// imageRule is how a family of models counts an image. Tile models: a base plus
// so much for each tile of 512 pixels, after the image was fitted into a square
// of 2048 and its shorter side brought down to 768; the base alone at low
// detail. Patch models: patches of 32 pixels, at most 1536, times a factor.
type imageRule struct {
	family     string
	base, tile int64
	factor     int64 // in hundredths; 0 for tile models
}

// imageRules are the provider's published figures; the first family whose name
// the model begins with holds.
var imageRules = [...]imageRule{
	{family: "gpt-4o-mini", base: 2833, tile: 5667},
	{family: "gpt-4.1-mini", factor: 162},
	{family: "gpt-4.1-nano", factor: 246},
	{family: "gpt-5-mini", factor: 162},
	{family: "gpt-5-nano", factor: 246},
	{family: "o4-mini", factor: 172},
	{family: "gpt-5", base: 70, tile: 140},
	{family: "o1", base: 75, tile: 150},
	{family: "o3", base: 75, tile: 150},
	{family: "", base: 85, tile: 170}, // gpt-4o, gpt-4.1, gpt-4.5 and whatever is not known
}

const (
	mostTiles   = 8 // 2048 x 768
	mostPatches = 1536
)

func imageRuleOf(model string) imageRule {
	model = model[strings.LastIndexByte(model, '/')+1:]
	for _, r := range imageRules {
		if strings.HasPrefix(model, r.family) {
			return r
		}
	}
	return imageRules[len(imageRules)-1]
}

func (r imageRule) most() int64 {
	if r.factor > 0 {
		return ceilDiv(mostPatches*r.factor, 100)
	}
	return r.base + mostTiles*r.tile
}

// tokens counts an image. Its size is known where it is an inline PNG; a URL is
// never fetched and, like any other format, taken at the most an image can
// cost. Detail auto is taken as high.
func (r imageRule) tokens(body []byte, item jsonscan.Item, buf *[]byte) int64 {
	if r.factor == 0 && !item.Detail.IsZero() && string(jsonscan.Unescaped(body, item.Detail, buf)) == "low" {
		return r.base
	}
	if item.Data.IsZero() {
		return r.most()
	}
	width, height := pngSize(item.Data.Of(body))
	if width == 0 || height == 0 {
		return r.most()
	}
	if r.factor > 0 {
		patches := min(mostPatches, ceilDiv(width, 32)*ceilDiv(height, 32))
		return ceilDiv(patches*r.factor, 100)
	}
	return r.base + tiles(width, height)*r.tile
}

// tiles works in integers, rounding sizes up.
func tiles(width, height int64) int64 {
	const square, side, tile = 2048, 768, 512
	if longer := max(width, height); longer > square {
		width, height = ceilDiv(width*square, longer), ceilDiv(height*square, longer)
	}
	if shorter := min(width, height); shorter > side {
		width, height = ceilDiv(width*side, shorter), ceilDiv(height*side, shorter)
	}
	return min(mostTiles, ceilDiv(width, tile)*ceilDiv(height, tile))
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// pngSize reads width and height from a JSON string that holds a PNG as a data
// URL; 0, 0 for anything else. Only the first bytes are looked at, and sizes
// beyond 1,000,000 pixels are not believed.
func pngSize(quoted []byte) (width, height int64) {
	const header = 24 // signature, then the IHDR chunk up to the height
	const encoded = header / 3 * 4
	const scheme = "data:image/png;base64,"
	head := quoted[1:min(len(quoted), 1+len(scheme)+encoded)]
	if len(head) < len(scheme)+encoded || !bytes.EqualFold(head[:len(scheme)], []byte(scheme)) {
		return 0, 0
	}
	var raw [header]byte
	if _, err := base64.StdEncoding.Decode(raw[:], head[len(scheme):]); err != nil {
		return 0, 0
	}
	if string(raw[:8]) != "\x89PNG\r\n\x1a\n" || string(raw[12:16]) != "IHDR" {
		return 0, 0
	}
	const most = 1_000_000
	w, h := binary.BigEndian.Uint32(raw[16:]), binary.BigEndian.Uint32(raw[20:])
	if w > most || h > most {
		return 0, 0
	}
	return int64(w), int64(h)
}
