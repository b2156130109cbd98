// Package keyring tells a worker what a virtual key may do: a cache of keys that is
// filled from the ledger, emptied by its stream of changes, and outlives an outage
// of the database for a bounded time.
package keyring

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// ErrUnknown means that the ledger was asked and has no such key.
var ErrUnknown = errors.New("unknown key")

// ErrUnavailable means that the ledger could not be asked and the cache does not
// know. It says nothing about the key.
var ErrUnavailable = errors.New("cannot look up the key: ledger unavailable")

// Config describes a Keyring. Client and Holder are required.
type Config struct {
	Client ledgerv1.LedgerClient
	Holder *ledgerv1.Holder
	// MasterHash is the SHA-256 of the master key; zero: there is none.
	MasterHash [32]byte
	// MaxKeys bounds the cache; default 100,000. Beyond it, keys that were not used
	// for long make room.
	MaxKeys int
	// StaleFor is how long a cached key serves after it was last known to be right,
	// when the collector or its database is away; default 1 h.
	StaleFor time.Duration
	// NegativeTTL is how long an unknown key is remembered as unknown; default 2 s.
	NegativeTTL time.Duration
	// LookupTimeout bounds one question to the ledger; default 3 s.
	LookupTimeout time.Duration
	// OnChange is called when the key with this SHA-256 has changed, OnChangeAll when any
	// may have: their budgets may have changed with them. Optional; must not block.
	OnChange    func(hash [32]byte)
	OnChangeAll func()
	Logger      *slog.Logger
}

const (
	// revalidateAway is the age at which a key in use is asked for again, in the
	// background, while no changes are heard.
	revalidateAway = 10 * time.Second
	// retryPause is the pause after a background question that got no answer.
	retryPause = time.Second
	// maxRevalidating bounds the keys that wait for a background question; a key that
	// finds no room tries again at its next use.
	maxRevalidating = 256
)

// Keyring looks keys up. Its methods may be called from several goroutines at once.
type Keyring struct {
	cfg    Config
	base   time.Time
	master *Key
	cache  cache

	// The stream of changes.
	live     atomic.Bool  // it is open and has told its position
	heard    atomic.Int64 // when it last spoke, since base; what is cached was right then
	lost     atomic.Int64 // when it broke, since base
	position int64        // only used by follow

	revalidating chan [32]byte
	cancel       context.CancelFunc
	ctx          context.Context // of questions to the ledger; ends with Stop
	loops        sync.WaitGroup
}

// New returns a Keyring that is not started. It can look up keys already then, and
// hears of no change.
func New(cfg Config) *Keyring {
	if cfg.MaxKeys <= 0 {
		cfg.MaxKeys = 100_000
	}
	setDefault(&cfg.StaleFor, time.Hour)
	setDefault(&cfg.NegativeTTL, 2*time.Second)
	setDefault(&cfg.LookupTimeout, 3*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.OnChange == nil {
		cfg.OnChange = func([32]byte) {}
	}
	if cfg.OnChangeAll == nil {
		cfg.OnChangeAll = func() {}
	}
	k := &Keyring{cfg: cfg, base: time.Now(), master: newMaster(), revalidating: make(chan [32]byte, maxRevalidating)}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.cache.init(cfg.MaxKeys)
	return k
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// Start begins to follow changes and returns at once: a worker starts without its
// collector. Stop ends the Keyring, the context does not.
func (k *Keyring) Start(context.Context) error {
	k.loops.Go(k.followLoop)
	k.loops.Go(k.revalidateLoop)
	return nil
}

// Stop ends all work. Lookups that wait are answered with ErrUnavailable.
func (k *Keyring) Stop(context.Context) error {
	k.cancel()
	k.loops.Wait()
	return nil
}

// Lookup returns the key with this SHA-256: from the cache without asking anybody,
// else from the ledger, once for all who ask at the same time. Whether the key is
// blocked or expired is for the caller to see. Errors: [ErrUnknown],
// [ErrUnavailable], or ctx's own.
func (k *Keyring) Lookup(ctx context.Context, hash [32]byte) (*Key, error) {
	if k.cfg.MasterHash != [32]byte{} && subtle.ConstantTimeCompare(hash[:], k.cfg.MasterHash[:]) == 1 {
		return k.master, nil
	}
	now := k.now()
	e := k.cache.find(hash)
	if e != nil {
		switch age := k.age(e, now); {
		case e.key == nil && now-e.loaded < k.cfg.NegativeTTL:
			return nil, ErrUnknown
		case e.key == nil || age >= k.cfg.StaleFor:
		default:
			e.touch(now)
			if age >= k.revalidateAge() {
				k.revalidate(e, hash, now)
			}
			return e.key, nil
		}
	}
	return k.ask(ctx, hash, e)
}

// age is how long ago e was last known to be right: when it was loaded, or when the
// stream of changes last spoke without naming it.
func (k *Keyring) age(e *entry, now time.Duration) time.Duration {
	return now - max(e.loaded, time.Duration(k.heard.Load()))
}

// revalidateAge is the age at which a key in use is asked for again in the background.
func (k *Keyring) revalidateAge() time.Duration {
	if k.live.Load() {
		return k.cfg.StaleFor / 2
	}
	return min(k.cfg.StaleFor/2, revalidateAway)
}

func (k *Keyring) now() time.Duration { return time.Since(k.base) }
