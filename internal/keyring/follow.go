package keyring

import (
	"context"
	"encoding/hex"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 500 * time.Millisecond // so that a revocation still comes within a second
)

// followLoop follows changes for as long as the Keyring runs.
func (k *Keyring) followLoop() {
	retry := firstRetry
	for k.ctx.Err() == nil {
		err := k.follow()
		if k.ctx.Err() != nil {
			return
		}
		if k.live.Swap(false) {
			retry = firstRetry
			k.lost.Store(int64(k.now()))
			k.cfg.Logger.Warn("key changes are not heard; serving cached keys", "error", err, "at_most", k.cfg.StaleFor.String())
		}
		k.pause(retry)
		retry = min(2*retry, lastRetry)
	}
}

// follow reads one stream of changes until it breaks. It continues after the last
// position seen, so that no change is missed over a break; where the ledger cannot
// tell (a first stream, an older position than it keeps), every key is forgotten.
func (k *Keyring) follow() error {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	after := k.position
	stream, err := k.cfg.Client.Changes(ctx, &ledgerv1.ChangesRequest{Holder: k.cfg.Holder, After: after})
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		resp, err := stream.Recv()
		if err != nil {
			return err
		}
		k.apply(resp, first && after == 0)
	}
}

func (k *Keyring) apply(resp *ledgerv1.ChangesResponse, all bool) {
	if all || resp.GetAll() {
		k.forgetAll()
	}
	for _, id := range resp.GetKeyIds() {
		raw, err := hex.DecodeString(id)
		if err != nil || len(raw) != 32 {
			k.cfg.Logger.Warn("a change names no key; forgetting every key", "id_bytes", len(id))
			k.forgetAll()
			continue
		}
		k.cache.forget([32]byte(raw))
		k.cfg.OnChange([32]byte(raw))
	}
	k.position = resp.GetPosition()
	k.heard.Store(int64(k.now()))
	k.live.Store(true)
}

func (k *Keyring) forgetAll() {
	k.cache.forgetAll()
	k.cfg.OnChangeAll()
}
