package proxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/penstock-gateway/penstock/internal/keyring"
)

// maxKeyLength bounds what is hashed; keys made here have 51 characters.
const maxKeyLength = 512

// One body for every key that is not known, whatever is wrong with it: an answer
// must not tell a guesser how near it came.
var errUnknownKey = refuseAuth("invalid_api_key", "unknown API key; create one with POST /key/generate")

// credential finds the client's key where the OpenAI, Anthropic and Azure clients
// put it.
func credential(h *fasthttp.RequestHeader) []byte {
	if v := h.Peek("Authorization"); len(v) > 0 {
		if len(v) > 7 && bytes.EqualFold(v[:7], []byte("Bearer ")) {
			return bytes.TrimSpace(v[7:])
		}
		return nil
	}
	for _, name := range [...]string{"x-api-key", "api-key", "x-litellm-api-key"} {
		if v := h.Peek(name); len(v) > 0 {
			return bytes.TrimPrefix(v, []byte("Bearer "))
		}
	}
	return nil
}

// authenticate finds the key that the request may act as.
func (r *request) authenticate() (refusal *Refusal) {
	r.key, refusal = r.p.identify(r.cancelled, &r.ctx.Request.Header)
	return refusal
}

// identify finds the key of a request. A key that is unknown is 401; a ledger that
// cannot be asked is 503, never 401.
func (p *Proxy) identify(ctx context.Context, h *fasthttp.RequestHeader) (*keyring.Key, *Refusal) {
	secret := credential(h)
	if len(secret) == 0 && len(h.Peek("Authorization")) > 0 {
		return nil, refuseAuth("missing_api_key", "no API key: the Authorization header is not 'Bearer <key>'")
	}
	if len(secret) == 0 {
		return nil, refuseAuth("missing_api_key", "no API key: send Authorization: Bearer <key>")
	}
	if len(secret) > maxKeyLength {
		return nil, errUnknownKey
	}
	key, err := p.cfg.Keys.Lookup(ctx, sha256.Sum256(secret))
	switch {
	case errors.Is(err, keyring.ErrUnknown):
		return nil, errUnknownKey
	case err != nil:
		return nil, refuseLedger("the key cannot be checked right now; retry shortly")
	case key.Blocked:
		return nil, refuseAuth("blocked_api_key", "this API key is blocked")
	case key.Expired(time.Now()):
		return nil, refuseAuth("expired_api_key", "this API key has expired")
	}
	return key, nil
}
