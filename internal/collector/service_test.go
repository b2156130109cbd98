package collector_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/store"
)

// holder is the n-th worker of the pod.
func holder(n uint32) *ledgerv1.Holder {
	return &ledgerv1.Holder{PodUid: "pod-1", Index: n, Epoch: []byte("0123456789abcdef")}
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	hash := b.key("sk-one", 1_000)
	got, err := b.client.Authenticate(t.Context(), &ledgerv1.AuthenticateRequest{KeyHash: hash})
	if err != nil || !got.GetFound() {
		t.Fatalf("%v %v", got, err)
	}
	id := hex.EncodeToString(hash)
	k := got.GetKey()
	if k.GetId() != id || k.GetAlias() != "sk-one" || k.GetMaxBudgetNano() != 1_000 ||
		len(k.GetEntities()) != 1 || k.GetEntities()[0].GetName() != "key:"+id || !k.GetEntities()[0].GetBudgeted() {
		t.Errorf("key %v", k)
	}
	got, err = b.client.Authenticate(t.Context(), &ledgerv1.AuthenticateRequest{KeyHash: make([]byte, 32)})
	if err != nil || got.GetFound() {
		t.Errorf("an unknown key is an answer: %v %v", got, err)
	}
	b.faults.set(func(f *faultyStore) { f.away = store.ErrUnavailable })
	_, err = b.client.Authenticate(t.Context(), &ledgerv1.AuthenticateRequest{KeyHash: hash})
	wantCode(t, "never unknown because the database is away", err, codes.Unavailable)
	b.faults.set(func(f *faultyStore) { f.away = errors.New("a bug") })
	_, err = b.client.Authenticate(t.Context(), &ledgerv1.AuthenticateRequest{KeyHash: hash})
	wantCode(t, "a failure without a meaning", err, codes.Internal)
}

// lease takes money for one holder and returns the lease.
func (b *bundle) lease(h *ledgerv1.Holder, hash []byte, seq uint64, amount int64) *ledgerv1.LeaseRef {
	b.t.Helper()
	if _, err := b.client.Heartbeat(b.t.Context(), &ledgerv1.HeartbeatRequest{Holder: h}); err != nil {
		b.t.Fatal(err)
	}
	resp, err := b.client.Grant(b.t.Context(), grant(h, seq, "key:"+hex.EncodeToString(hash), amount))
	if err != nil || len(resp.GetLeases()) != 1 {
		b.t.Fatalf("no lease: %v %v", resp, err)
	}
	l := resp.GetLeases()[0]
	return &ledgerv1.LeaseRef{Seq: l.GetSeq(), BudgetId: l.GetBudgetId()}
}

func grant(h *ledgerv1.Holder, seq uint64, entity string, amount int64) *ledgerv1.GrantRequest {
	return &ledgerv1.GrantRequest{Holder: h, Seq: seq, Wants: []*ledgerv1.Want{{Entities: []string{entity}, AmountNano: amount}}}
}

func TestMoneyGoesRound(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, h, hash := t.Context(), holder(1), b.key("sk-one", 1_000)
	entity := "key:" + hex.EncodeToString(hash)

	early, err := b.client.Grant(ctx, grant(h, 1, entity, 400))
	if err != nil || early.GetStatus() != ledgerv1.GrantResponse_STATUS_RENEW_FIRST {
		t.Fatalf("a holder that is not known must renew first: %v %v", early, err)
	}
	beat, err := b.client.Heartbeat(ctx, &ledgerv1.HeartbeatRequest{Holder: h, SentMonotonicNs: 42})
	if err != nil || beat.GetSentMonotonicNs() != 42 || beat.GetTtlMs() != 60_000 || beat.GetFenced() {
		t.Fatalf("heartbeat: %v %v", beat, err)
	}
	ref := b.lease(h, hash, 1, 400)
	again, err := b.client.Grant(ctx, grant(h, 1, entity, 400))
	if err != nil || again.GetStatus() != ledgerv1.GrantResponse_STATUS_REPLAYED || len(again.GetLeases()) != 1 {
		t.Fatalf("a repeated grant leases nothing new: %v %v", again, err)
	}
	refused, err := b.client.Grant(ctx, grant(h, 2, entity, 700))
	if err != nil || refused.GetResults()[0].GetOutcome() != ledgerv1.WantResult_OUTCOME_HELD {
		t.Fatalf("600 are free, 700 are wanted: %v %v", refused, err)
	}
	if r := refused.GetResults()[0]; r.GetRefusedEntity() != entity || r.GetLimitNano() != 1_000 {
		t.Errorf("the refusal does not say why: %v", r)
	}

	ret := &ledgerv1.ReturnRequest{Holder: h, Leases: []*ledgerv1.ReturnLease{{Lease: ref, AfterSeq: 1}}}
	back, err := b.client.Return(ctx, ret)
	if err != nil || len(back.GetPending()) != 1 || len(back.GetClosed()) != 0 {
		t.Fatalf("the record is not in yet: %v %v", back, err)
	}
	if _, err := b.client.Trim(ctx, &ledgerv1.TrimRequest{Holder: h, Leases: []*ledgerv1.TrimLease{{Lease: ref, ToNano: 300}}}); err != nil {
		t.Fatal(err)
	}
	s := b.open()
	s.send(records(h, 1, 1, &ledgerv1.LeaseCharge{Lease: ref, CostNano: 250}))
	s.wantAck(1)
	s.close()
	back, err = b.client.Return(ctx, ret)
	if err != nil || len(back.GetClosed()) != 1 || len(back.GetPending()) != 0 {
		t.Fatalf("the record is in: %v %v", back, err)
	}
	if k, err := b.store.Key(ctx, hex.EncodeToString(hash)); err != nil || k.Spend != 250 {
		t.Errorf("spend %d %v, want 250", k.Spend, err)
	}
	b.lease(h, hash, 3, 750) // all that is left is free again
}

func TestInvalidCalls(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	ctx, ok := t.Context(), holder(1)
	entity := []string{"key:x"}
	for why, h := range map[string]*ledgerv1.Holder{
		"no holder":         nil,
		"no pod":            {Epoch: ok.Epoch},
		"short epoch":       {PodUid: "p", Epoch: []byte("short")},
		"separator in pod":  {PodUid: "a/b", Epoch: ok.Epoch},
		"line break in pod": {PodUid: "a\nb", Epoch: ok.Epoch},
		"pod without end":   {PodUid: strings.Repeat("p", 300), Epoch: ok.Epoch},
	} {
		_, err := b.client.Heartbeat(ctx, &ledgerv1.HeartbeatRequest{Holder: h})
		wantCode(t, "heartbeat: "+why, err, codes.InvalidArgument)
		_, err = b.client.Grant(ctx, grant(h, 1, "key:x", 1))
		wantCode(t, "grant: "+why, err, codes.InvalidArgument)
		_, err = b.client.Return(ctx, &ledgerv1.ReturnRequest{Holder: h})
		wantCode(t, "return: "+why, err, codes.InvalidArgument)
		_, err = b.client.Trim(ctx, &ledgerv1.TrimRequest{Holder: h})
		wantCode(t, "trim: "+why, err, codes.InvalidArgument)
		s := b.open()
		s.send(records(h, 1, 1))
		s.wantEnd("record: "+why, codes.InvalidArgument)
	}
	for _, n := range []int{0, 31, 33} {
		_, err := b.client.Authenticate(ctx, &ledgerv1.AuthenticateRequest{KeyHash: make([]byte, n)})
		wantCode(t, fmt.Sprintf("hash of %d bytes", n), err, codes.InvalidArgument)
	}
	for why, g := range map[string]*ledgerv1.GrantRequest{
		"number 0":           grant(ok, 0, "key:x", 1),
		"number too large":   grant(ok, math.MaxUint64, "key:x", 1),
		"no wants":           {Holder: ok, Seq: 1},
		"an empty want":      {Holder: ok, Seq: 1, Wants: []*ledgerv1.Want{nil}},
		"an empty entity":    grant(ok, 1, "", 1),
		"negative amount":    grant(ok, 1, "key:x", -1),
		"absurd amount":      grant(ok, 1, "key:x", math.MaxInt64),
		"negative wish":      {Holder: ok, Seq: 1, Wants: []*ledgerv1.Want{{Entities: entity, AmountNano: 1, DesiredNano: -1}}},
		"least above amount": {Holder: ok, Seq: 1, Wants: []*ledgerv1.Want{{Entities: entity, AmountNano: 1, MinAmountNano: 2}}},
	} {
		_, err := b.client.Grant(ctx, g)
		wantCode(t, "grant: "+why, err, codes.InvalidArgument)
	}
	for why, l := range map[string]*ledgerv1.TrimLease{
		"no lease":  {ToNano: 1},
		"below 0":   {Lease: &ledgerv1.LeaseRef{Seq: 1, BudgetId: 1}, ToNano: -1},
		"too large": {Lease: &ledgerv1.LeaseRef{Seq: math.MaxUint64, BudgetId: 1}},
	} {
		_, err := b.client.Trim(ctx, &ledgerv1.TrimRequest{Holder: ok, Leases: []*ledgerv1.TrimLease{l}})
		wantCode(t, "trim: "+why, err, codes.InvalidArgument)
	}
	_, err := b.client.Return(ctx, &ledgerv1.ReturnRequest{Holder: ok, Leases: []*ledgerv1.ReturnLease{nil}})
	wantCode(t, "return of nothing", err, codes.InvalidArgument)
	if n := b.c.Stats().Refused; n == 0 {
		t.Error("refusals are not counted")
	}
}
