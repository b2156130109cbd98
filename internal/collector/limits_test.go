package collector_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/limit"
	"github.com/penstock-gateway/penstock/internal/store"
)

func (f *faultyStore) SyncLimits(ctx context.Context, s store.LimitSync) (store.LimitResult, error) {
	if err := f.down(); err != nil {
		return store.LimitResult{}, err
	}
	return f.Store.SyncLimits(ctx, s)
}

// Two workers share one key's limits over the socket and the database.
func TestLimits(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *collector.Config) { c.LimitWindow = time.Hour })
	subject := limit.Subject{Name: "key:a", RPM: 5, Parallel: 3}
	var workers []*limit.Manager
	for i := range uint32(2) {
		m := limit.New(limit.Config{Client: b.client, Holder: holder(i)})
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		workers = append(workers, m)
	}
	var passes []*limit.Pass
	var kinds []limit.Kind
	for i := range 8 {
		p, err := workers[i%2].Admit(t.Context(), limit.Want{Subjects: []limit.Subject{subject}})
		var refused *limit.Refused
		switch {
		case errors.As(err, &refused):
			kinds = append(kinds, refused.Kind)
			for _, p := range passes { // make room for the next
				p.Release()
			}
			passes = nil
		case err != nil:
			t.Fatal(err)
		default:
			passes = append(passes, p)
		}
	}
	if want := []limit.Kind{limit.Parallel, limit.RPM, limit.RPM}; !slices.Equal(kinds, want) {
		t.Errorf("refused by %v, want %v: three at once, five in all", kinds, want)
	}
	for _, m := range workers {
		if err := m.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Callers that send nonsense are told so, and an absent database is not an answer.
func TestLimitsBadCalls(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	good := func() *ledgerv1.LimitsRequest {
		return &ledgerv1.LimitsRequest{
			Holder: holder(0), Seq: 1,
			Meters: []*ledgerv1.LimitMeter{{Subject: "key:a", Kind: ledgerv1.LimitKind_LIMIT_KIND_REQUESTS, Limit: 5}},
			Wants:  []*ledgerv1.LimitWant{{Needs: []*ledgerv1.LimitNeed{{Amount: 1}}}},
		}
	}
	for why, spoil := range map[string]func(*ledgerv1.LimitsRequest){
		"no holder":              func(r *ledgerv1.LimitsRequest) { r.Holder = nil },
		"no number":              func(r *ledgerv1.LimitsRequest) { r.Seq = 0 },
		"no meter":               func(r *ledgerv1.LimitsRequest) { r.Meters = nil },
		"no subject":             func(r *ledgerv1.LimitsRequest) { r.Meters[0].Subject = "" },
		"a long subject":         func(r *ledgerv1.LimitsRequest) { r.Meters[0].Subject = strings.Repeat("x", 600) },
		"no kind":                func(r *ledgerv1.LimitsRequest) { r.Meters[0].Kind = 0 },
		"a meter twice":          func(r *ledgerv1.LimitsRequest) { r.Meters = append(r.Meters, r.Meters[0]) },
		"a negative charge":      func(r *ledgerv1.LimitsRequest) { r.Meters[0].Charge = -1 },
		"a negative wish":        func(r *ledgerv1.LimitsRequest) { r.Meters[0].DesiredCalm = -1 },
		"a negative need":        func(r *ledgerv1.LimitsRequest) { r.Wants[0].Needs[0].Amount = -1 },
		"a need of no meter":     func(r *ledgerv1.LimitsRequest) { r.Wants[0].Needs[0].Meter = 1 },
		"a need twice":           func(r *ledgerv1.LimitsRequest) { r.Wants[0].Needs = append(r.Wants[0].Needs, r.Wants[0].Needs[0]) },
		"more used than granted": func(r *ledgerv1.LimitsRequest) { r.Meters[0].Returns = []*ledgerv1.PermitReturn{{Granted: 1, Used: 2}} },
		"a request for ever":     func(r *ledgerv1.LimitsRequest) { r.LongestMs = 1 << 60 },
	} {
		r := good()
		spoil(r)
		_, err := b.client.Limits(t.Context(), r)
		wantCode(t, why, err, codes.InvalidArgument)
	}
	b.faults.set(func(f *faultyStore) { f.away = store.ErrUnavailable })
	_, err := b.client.Limits(t.Context(), good())
	wantCode(t, "the database is away", err, codes.Unavailable)
	b.faults.heal()
	resp, err := b.client.Limits(t.Context(), good())
	if err != nil || !resp.GetVerdicts()[0].GetGranted() || resp.GetWindowMs() != 60_000 {
		t.Errorf("%v, %v; want one request", resp, err)
	}
}

// A key brings its limits with it.
func TestKeyLimits(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for settings, want := range map[string]string{
		`{"rpm_limit": 60, "tpm_limit": 100000, "max_parallel_requests": 4}`: "rpm 60 tpm 100000 parallel 4",
		`{"rpm_limit": 0, "tpm_limit": null}`:                                "rpm -1 tpm 0 parallel 0",
		`{"tpm_limit": 1e300}`:                                               "rpm 0 tpm 1000000000000000 parallel 0",
		`{"metadata": {"rpm_limit": 5}}`:                                     "none",
		`{"rpm_limit": "many"}`:                                              "none",
	} {
		id := sha256.Sum256([]byte(settings))
		if err := b.store.CreateKey(t.Context(), store.Key{ID: fmt.Sprintf("%x", id), SettingsJSON: settings}); err != nil {
			t.Fatal(err)
		}
		resp, err := b.client.Authenticate(t.Context(), &ledgerv1.AuthenticateRequest{KeyHash: id[:]})
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		if l := resp.GetKey().GetLimits(); len(l) == 1 && l[0].GetName() == fmt.Sprintf("key:%x", id) {
			got = fmt.Sprintf("rpm %d tpm %d parallel %d", l[0].GetRpm(), l[0].GetTpm(), l[0].GetParallel())
		}
		if got != want {
			t.Errorf("%s: %s, want %s", settings, got, want)
		}
	}
}
