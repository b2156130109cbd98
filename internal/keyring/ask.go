package keyring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// askAgain is the first pause between attempts while a collector restarts; each
// further one is twice as long, so that an outage of the database gathers no storm.
const askAgain = 20 * time.Millisecond

// ask gets the ledger's answer, joining whoever asks already. seen is the cached
// answer that does not do any more, if any.
func (k *Keyring) ask(ctx context.Context, hash [32]byte, seen *entry) (*Key, error) {
	for {
		c, mine, answered := k.cache.join(hash, seen)
		if answered != nil {
			return answered.result()
		}
		if mine {
			go k.answer(c, hash) // not ctx's: others may wait for it
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !k.cache.changed(hash, c) {
			return c.key, c.err
		}
		// The key changed while it was read: what was read may be revoked already.
	}
}

// answer makes a call.
func (k *Keyring) answer(c *call, hash [32]byte) {
	ctx, cancel := context.WithTimeout(k.ctx, k.cfg.LookupTimeout)
	defer cancel()
	asked := k.now()
	resp, err := k.authenticate(ctx, hash)
	var e *entry
	switch {
	case err != nil:
		c.err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	case !resp.GetFound():
		e = &entry{loaded: asked}
	default:
		e = &entry{key: newKey(resp.GetKey()), loaded: asked}
	}
	if e != nil {
		c.key, c.err = e.result()
	}
	k.cache.finish(hash, c, e)
}

// authenticate asks, and asks again while nobody answers: a collector that restarts
// is back within milliseconds. During a known outage it asks once.
func (k *Keyring) authenticate(ctx context.Context, hash [32]byte) (*ledgerv1.AuthenticateResponse, error) {
	for pause := askAgain; ; pause *= 2 {
		resp, err := k.cfg.Client.Authenticate(ctx, &ledgerv1.AuthenticateRequest{KeyHash: hash[:]})
		if status.Code(err) != codes.Unavailable || k.away() {
			return resp, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// away says whether the collector has been silent for longer than a restart takes.
func (k *Keyring) away() bool {
	return !k.live.Load() && k.now()-time.Duration(k.lost.Load()) > k.cfg.LookupTimeout
}

// revalidate has a key asked for again in the background.
func (k *Keyring) revalidate(e *entry, hash [32]byte, now time.Duration) {
	last := e.asked.Load()
	if last > 0 && now-time.Duration(last) < revalidateAway || !e.asked.CompareAndSwap(last, int64(now)) {
		return
	}
	select {
	case k.revalidating <- hash:
	default:
		e.asked.Store(last)
	}
}

// revalidateLoop asks for one key at a time, so that a herd of old keys does not
// fall on a database that has just come back.
func (k *Keyring) revalidateLoop() {
	for {
		select {
		case hash := <-k.revalidating:
			if _, err := k.ask(k.ctx, hash, k.cache.find(hash)); err != nil && !errors.Is(err, ErrUnknown) {
				k.pause(retryPause)
			}
		case <-k.ctx.Done():
			return
		}
	}
}

func (k *Keyring) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-k.ctx.Done():
	}
}
