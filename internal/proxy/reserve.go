package proxy

import (
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/hold"
	"github.com/penstock-gateway/penstock/internal/money"
)

// reserve takes the request's worst case from the budgets of its key. Without the
// client's own output cap the model's maximum is held, or, when that does not fit,
// what the rest affords: the cap that was held is then given to the upstream.
func (r *request) reserve() *Refusal {
	if len(r.key.Entities) == 0 {
		return nil
	}
	price := r.deployment.Price
	if price == nil {
		return &Refusal{Status: fasthttp.StatusForbidden, Type: typePermission, Code: "model_unpriced", Param: "model", NoRetry: true,
			Message: "this key has a budget and the model has no price: give it input_cost_per_token and output_cost_per_token in the configuration"}
	}
	input, n := r.heldInput(), r.chat.N
	limit, given := r.chat.OutputCap()
	want := hold.Want{Entities: r.key.Entities}
	if given {
		want.Amount = price.Hold(input, n, limit)
	} else {
		limit = maxOutput(r.deployment)
		want.Amount = price.Hold(input, n, limit)
		want.Min = price.Hold(input, n, min(limit, r.p.cfg.Config.Settings.FitOutputMin))
	}
	if want.Amount == 0 {
		return nil // a free model needs no budget
	}
	h, err := r.p.cfg.Holds.Hold(r.cancelled, want)
	if err != nil {
		return refuseHold(err, want)
	}
	r.hold, r.outputCap = h, limit
	if h.Amount() < want.Amount {
		r.outputCap = affordable(price, input, n, h.Amount(), limit)
	}
	return nil
}

// affordable is the largest output cap whose hold is at most amount.
func affordable(p *money.Price, input, n, amount, limit int64) int64 {
	low, high := int64(0), limit
	for low < high {
		mid := low + (high-low+1)/2
		if p.Hold(input, n, mid) <= amount {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// heldRetry is what a client is told to wait when the money is only held by
// requests in flight: most of those end within seconds.
const heldRetry = 2 * time.Second

func refuseHold(err error, want hold.Want) *Refusal {
	var refused *hold.Refused
	if !errors.As(err, &refused) {
		return refuseLedger("no money can be held for this request right now; retry shortly")
	}
	switch refused.Outcome {
	case hold.UnknownEntity: // the budget went away and the cached key has not heard yet
		return refuseLedger("the key's budget is being changed; retry shortly")
	case hold.Held:
		return &Refusal{Status: fasthttp.StatusTooManyRequests, Type: typeRateLimit, Code: "budget_held", RetryAfter: heldRetry,
			Message: "the rest of the budget is held by requests in flight; retry shortly"}
	}
	return &Refusal{Status: fasthttp.StatusTooManyRequests, Type: typeBudget, Code: "budget_exceeded", Message: exceeded(refused, want), NoRetry: true}
}

// exceeded begins as LiteLLM's message does, which clients match, and says what can
// be done when there is money left that does not pay this request's worst case.
func exceeded(refused *hold.Refused, want hold.Want) string {
	message := fmt.Sprintf("Budget has been exceeded! Current cost: %s, Max budget: %s",
		money.FormatNano(refused.Spent), money.FormatNano(refused.Limit))
	least := want.Amount
	if want.Min > 0 {
		least = want.Min
	}
	if rest := refused.Limit - refused.Spent; rest > 0 {
		message += fmt.Sprintf("; the rest of %s does not pay this request's worst case of %s, which a lower max_tokens makes smaller",
			money.FormatNano(rest), money.FormatNano(least))
	}
	if !refused.Reset.IsZero() {
		message += "; resets at " + refused.Reset.UTC().Format(time.RFC3339)
	}
	return message
}
