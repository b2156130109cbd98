package proxy

import (
	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/tokens"
)

// count counts the prompt once; hold, mock and record all use this number.
func (r *request) count() *Refusal {
	scratch := r.p.bodies.take(len(r.body.bytes())) // an unescaped text is never longer
	defer r.p.bodies.put(scratch)
	n, exactShape := r.countPrompt(scratch)
	_, exactModel := tokens.ForModel(r.baseModel())
	r.input, r.inexact, r.counted = n, !exactModel || !exactShape, true
	r.leavePlace()
	return nil
}

// baseModel is the upstream's model, by whose rules the prompt is counted; what the
// client asked for where no upstream serves that.
func (r *request) baseModel() string {
	if r.deployment == nil {
		return r.chat.Model
	}
	return r.deployment.BaseModel
}

// counter counts texts as this request's model does.
func (r *request) counter() func([]byte) int {
	encoding, _ := tokens.ForModel(r.baseModel())
	return func(text []byte) int { return r.p.cfg.Tokens.Count(encoding, text) }
}

// heldInput is the input that money is held for: more than was counted where the
// count is an estimate.
func (r *request) heldInput() int64 {
	if !r.inexact {
		return r.input
	}
	permille := r.p.cfg.Config.Settings.EstimatePermille
	return (r.input*permille + 999) / 1000
}

// maxOutput is the most that the deployment answers with.
func maxOutput(d *config.Deployment) int64 {
	if d.MaxOutput > 0 {
		return d.MaxOutput
	}
	return config.DefaultMaxOutput
}
