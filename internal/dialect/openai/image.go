package openai

import (
	"strings"

	"github.com/penstock-gateway/penstock/internal/dialect/prompt"
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
		return prompt.Ceil(mostPatches*r.factor, 100)
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
	width, height := prompt.PNGSize(item.Data.Of(body))
	if width == 0 || height == 0 {
		return r.most()
	}
	if r.factor > 0 {
		patches := min(mostPatches, prompt.Ceil(width, 32)*prompt.Ceil(height, 32))
		return prompt.Ceil(patches*r.factor, 100)
	}
	return r.base + tiles(width, height)*r.tile
}

// tiles works in integers, rounding sizes up.
func tiles(width, height int64) int64 {
	const square, side, tile = 2048, 768, 512
	if longer := max(width, height); longer > square {
		width, height = prompt.Ceil(width*square, longer), prompt.Ceil(height*square, longer)
	}
	if shorter := min(width, height); shorter > side {
		width, height = prompt.Ceil(width*side, shorter), prompt.Ceil(height*side, shorter)
	}
	return min(mostTiles, prompt.Ceil(width, tile)*prompt.Ceil(height, tile))
}
