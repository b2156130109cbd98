package anthropic

import (
	"strings"

	"github.com/penstock-gateway/penstock/internal/dialect/prompt"
)

// imageRule is how large an image may be before the provider scales it down,
// and the most it then costs. An image costs a token for each patch of 28
// pixels, by the present rule, or for each 750 pixels, by the one before; the
// dearer of the two is taken.
type imageRule struct {
	edge int64 // the longer side in pixels
	most int64 // tokens
}

var (
	standard = imageRule{edge: 1568, most: 1600}
	// highResolution came with Opus 4.7 and is what newer models do.
	highResolution = imageRule{edge: 2576, most: 4784}
)

// standardModels begin with one of these behind "claude-". What is not known is
// taken as a newer model, which costs more.
var standardModels = [...]string{
	"instant", "2", "3", "4-", "haiku-4",
	"sonnet-4@", "sonnet-4-0", "sonnet-4-2", "sonnet-4-5", "sonnet-4-6",
	"opus-4@", "opus-4-0", "opus-4-1", "opus-4-2", "opus-4-5", "opus-4-6",
}

func imageRuleOf(model string) imageRule {
	_, name, _ := strings.Cut(model, "claude-")
	for _, m := range standardModels {
		if strings.HasPrefix(name, m) {
			return standard
		}
	}
	return highResolution
}

// tokens counts an image, which is never fetched: where its size is not known
// it costs the most that an image can.
func (r imageRule) tokens(width, height int64) int64 {
	if width == 0 || height == 0 {
		return r.most
	}
	if longer := max(width, height); longer > r.edge {
		width, height = prompt.Ceil(width*r.edge, longer), prompt.Ceil(height*r.edge, longer)
	}
	const patch, pixels = 28, 750
	return min(r.most, max(prompt.Ceil(width, patch)*prompt.Ceil(height, patch), prompt.Ceil(width*height, pixels)))
}
