package keyring

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func hashOf(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

func row(secret string) *ledgerv1.Key {
	h := hashOf(secret)
	return &ledgerv1.Key{Id: hex.EncodeToString(h[:]), Alias: secret, MaxBudgetNano: -1}
}

// withRing runs one test on an empty ledger and a started Keyring.
func withRing(t *testing.T, set func(*Config), test func(t *testing.T, l *ledgertest.Ledger, k *Keyring)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := ledgertest.New(ledgertest.Config{})
		cfg := Config{Client: l.Client(), Holder: &ledgerv1.Holder{PodUid: "pod"}}
		if set != nil {
			set(&cfg)
		}
		k := New(cfg)
		if err := k.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = k.Stop(context.Background()) })
		synctest.Wait()
		test(t, l, k)
		if err := l.Err(); err != nil {
			t.Error(err)
		}
	})
}

// put changes keys and waits until the Keyring has heard of it.
func put(l *ledgertest.Ledger, rows ...*ledgerv1.Key) {
	for _, r := range rows {
		l.PutKey(r)
	}
	synctest.Wait()
}

func lookup(t *testing.T, k *Keyring, secret string) error {
	t.Helper()
	key, err := k.Lookup(t.Context(), hashOf(secret))
	if (key == nil) == (err == nil) || key != nil && key.Alias != secret {
		t.Fatalf("Lookup(%q) = %v, %v", secret, key, err)
	}
	return err
}

func TestHitAsksNobody(t *testing.T) {
	withRing(t, nil, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		put(l, row("sk-a"))
		var all sync.WaitGroup
		for range 50 { // at once: one question serves them all
			all.Go(func() {
				if err := lookup(t, k, "sk-a"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for range 100 {
			_ = lookup(t, k, "sk-a")
			time.Sleep(10 * time.Second)
		}
		if n := l.Calls("Authenticate"); n != 1 {
			t.Errorf("%d questions for one key, want 1", n)
		}
	})
}

func TestUnknownKeyIsRememberedBriefly(t *testing.T) {
	withRing(t, nil, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		for range 3 {
			if err := lookup(t, k, "sk-a"); !errors.Is(err, ErrUnknown) {
				t.Errorf("unknown key: %v", err)
			}
		}
		if n := l.Calls("Authenticate"); n != 1 {
			t.Errorf("%d questions, want 1: a guesser must not reach the database each time", n)
		}
		time.Sleep(2 * time.Second)
		_ = lookup(t, k, "sk-a")
		if n := l.Calls("Authenticate"); n != 2 {
			t.Errorf("%d questions, want 2 after NegativeTTL", n)
		}
		put(l, row("sk-a"))
		if err := lookup(t, k, "sk-a"); err != nil {
			t.Errorf("a fresh key must not stay unknown: %v", err)
		}
	})
}

func TestRevokedThroughChanges(t *testing.T) {
	withRing(t, nil, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		put(l, row("sk-a"), row("sk-b"))
		_, _ = lookup(t, k, "sk-a"), lookup(t, k, "sk-b")
		blocked := row("sk-a")
		blocked.Blocked = true
		l.PutKey(blocked)
		l.DeleteKey(row("sk-b").GetId())
		synctest.Wait()
		if key, err := k.Lookup(t.Context(), hashOf("sk-a")); err != nil || !key.Blocked {
			t.Errorf("blocked key: %+v, %v", key, err)
		}
		if err := lookup(t, k, "sk-b"); !errors.Is(err, ErrUnknown) {
			t.Errorf("deleted key: %v", err)
		}
	})
}

// An outage neither locks out who is known nor calls anybody unknown.
func TestLedgerAway(t *testing.T) {
	withRing(t, func(c *Config) { c.StaleFor = 10 * time.Minute }, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		put(l, row("sk-a"))
		_ = lookup(t, k, "sk-a")
		l.GoAway()
		for range 9 {
			time.Sleep(time.Minute)
			if err := lookup(t, k, "sk-a"); err != nil {
				t.Errorf("a cached key must keep working: %v", err)
			}
		}
		start := time.Now()
		if err := lookup(t, k, "sk-b"); !errors.Is(err, ErrUnavailable) || time.Since(start) > 0 {
			t.Errorf("not known here, in a known outage: %v after %v", err, time.Since(start))
		}
		time.Sleep(2 * time.Minute)
		if err := lookup(t, k, "sk-a"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("beyond StaleFor: %v", err)
		}
		l.ComeBack()
		time.Sleep(time.Second)
		if err := lookup(t, k, "sk-a"); err != nil {
			t.Errorf("after the outage: %v", err)
		}
	})
}

func TestRestartOfCollectorIsWaitedOut(t *testing.T) {
	withRing(t, nil, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		put(l, row("sk-a"))
		l.GoAway()
		go func() {
			time.Sleep(100 * time.Millisecond)
			l.ComeBack()
		}()
		if err := lookup(t, k, "sk-a"); err != nil {
			t.Errorf("a first lookup during a restart: %v", err)
		}
	})
}

// What changed while nobody listened is told when the stream is back, or everything
// is forgotten.
func TestNoChangeIsMissedOverABreak(t *testing.T) {
	for _, forget := range []string{"changes are kept", "changes are gone"} {
		t.Run(forget, func(t *testing.T) {
			withRing(t, nil, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
				put(l, row("sk-a"))
				l.PutKey(row("sk-b"))
				synctest.Wait()
				_, _ = lookup(t, k, "sk-a"), lookup(t, k, "sk-b")
				l.GoAway()
				synctest.Wait()
				l.DeleteKey(row("sk-a").GetId())
				if forget == "changes are gone" {
					l.ForgetChanges()
				}
				if err := lookup(t, k, "sk-a"); err != nil {
					t.Errorf("serving while away: %v", err)
				}
				l.ComeBack()
				time.Sleep(lastRetry)
				if err := lookup(t, k, "sk-a"); !errors.Is(err, ErrUnknown) {
					t.Errorf("revoked during the break: %v", err)
				}
				questions := l.Calls("Authenticate")
				_ = lookup(t, k, "sk-b")
				want := map[string]int{"changes are kept": 0, "changes are gone": 1}[forget]
				if n := l.Calls("Authenticate") - questions; n != want {
					t.Errorf("%d questions for a key that did not change, want %d", n, want)
				}
			})
		})
	}
}

// deaf is a ledger whose changes cannot be heard.
type deaf struct{ ledgerv1.LedgerClient }

func (deaf) Changes(context.Context, *ledgerv1.ChangesRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[ledgerv1.ChangesResponse], error) {
	return nil, errors.New("no changes")
}

func TestKeysInUseAreAskedAgainWhileNothingIsHeard(t *testing.T) {
	set := func(c *Config) { c.Client = deaf{c.Client} }
	withRing(t, set, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		put(l, row("sk-a"))
		_ = lookup(t, k, "sk-a")
		l.DeleteKey(row("sk-a").GetId())
		time.Sleep(revalidateAway)
		if err := lookup(t, k, "sk-a"); err != nil {
			t.Errorf("asked in the background, not in the way: %v", err)
		}
		synctest.Wait()
		if err := lookup(t, k, "sk-a"); !errors.Is(err, ErrUnknown) {
			t.Errorf("after the background question: %v", err)
		}
	})
}

// slowAnswer delays answers on their way back.
type slowAnswer struct {
	ledgerv1.LedgerClient
	answered chan struct{}
	release  chan struct{}
}

func (s *slowAnswer) Authenticate(ctx context.Context, in *ledgerv1.AuthenticateRequest, opts ...grpc.CallOption) (*ledgerv1.AuthenticateResponse, error) {
	resp, err := s.LedgerClient.Authenticate(ctx, in, opts...)
	s.answered <- struct{}{}
	<-s.release
	return resp, err
}

// A row read before a change must neither be cached nor used after it.
func TestChangeDuringALookup(t *testing.T) {
	slow := &slowAnswer{}
	set := func(c *Config) {
		slow.LedgerClient = c.Client
		slow.answered, slow.release = make(chan struct{}, 10), make(chan struct{}, 10)
		c.Client = slow
	}
	withRing(t, set, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		put(l, row("sk-a"))
		result := make(chan error)
		for range 2 {
			go func() { result <- lookup(t, k, "sk-a") }()
		}
		<-slow.answered // the old row is on its way
		l.DeleteKey(row("sk-a").GetId())
		synctest.Wait() // the change has arrived
		slow.release <- struct{}{}
		slow.release <- struct{}{} // of the second question
		for range 2 {
			if err := <-result; !errors.Is(err, ErrUnknown) {
				t.Errorf("a key that was deleted meanwhile: %v", err)
			}
		}
	})
}

func TestGoneClientDoesNotEndTheQuestion(t *testing.T) {
	withRing(t, nil, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		put(l, row("sk-a"))
		l.SetPlan(func(string) ledgertest.Fault { return ledgertest.Fault{Delay: time.Second} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := k.Lookup(ctx, hashOf("sk-a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the client's own end: %v", err)
		}
		time.Sleep(time.Second)
		if err := lookup(t, k, "sk-a"); err != nil || l.Calls("Authenticate") != 1 {
			t.Errorf("%v after %d questions", err, l.Calls("Authenticate"))
		}
	})
}

func TestMasterKey(t *testing.T) {
	withRing(t, func(c *Config) { c.MasterHash = hashOf("sk-master") }, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		key, err := k.Lookup(t.Context(), hashOf("sk-master"))
		if err != nil || key.ID != MasterID || len(key.Entities) != 0 || key.MaxBudget != -1 || !key.Allows("any/model") {
			t.Errorf("master: %+v, %v", key, err)
		}
		if l.Calls("Authenticate") != 0 {
			t.Error("the master key needs no ledger")
		}
		if _, err := k.Lookup(t.Context(), [32]byte{}); !errors.Is(err, ErrUnknown) {
			t.Errorf("a zero hash is no key: %v", err)
		}
	})
	t.Run("none configured", func(t *testing.T) {
		k := New(Config{Client: ledgertest.New(ledgertest.Config{}).Client()})
		if _, err := k.Lookup(t.Context(), [32]byte{}); !errors.Is(err, ErrUnknown) {
			t.Errorf("without a master key nothing is one: %v", err)
		}
	})
}

// Both halves of the cache are bounded, and a guesser does not push keys out.
func TestCacheIsBounded(t *testing.T) {
	withRing(t, func(c *Config) { c.MaxKeys = 128 }, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		for i := range 1000 {
			secret := fmt.Sprint("sk-", i)
			if i%2 == 0 {
				put(l, row(secret))
			}
			_ = lookup(t, k, secret)
		}
		synctest.Wait()
		known, unknown := 0, 0
		for i := range k.cache.shard {
			known += len(k.cache.shard[i].entries)
			unknown += len(k.cache.shard[i].unknown)
		}
		if known == 0 || known > 128 || unknown == 0 || unknown > 128 {
			t.Errorf("%d known and %d unknown are cached, want at most 128 each", known, unknown)
		}
	})
}

func TestStopEndsLookups(t *testing.T) {
	withRing(t, nil, func(t *testing.T, l *ledgertest.Ledger, k *Keyring) {
		l.GoAway()
		go func() { _ = k.Stop(context.Background()) }()
		if err := lookup(t, k, "sk-a"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a lookup at the end: %v", err)
		}
	})
}

func BenchmarkLookupHit(b *testing.B) {
	l := ledgertest.New(ledgertest.Config{})
	l.PutKey(row("sk-a"))
	k := New(Config{Client: l.Client(), MasterHash: hashOf("sk-master")})
	hash, ctx := hashOf("sk-a"), b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := k.Lookup(ctx, hash); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
