package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
)

// benchKey is a key with a budget that records are charged to.
type benchKey struct {
	id, alias, entity, user, team string
}

// makeKeys writes keys of a few teams into the database.
func makeKeys(ctx context.Context, url string, n int) ([]benchKey, error) {
	st, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	limit := int64(1e17) // never in the way
	keys := make([]benchKey, n)
	for i := range keys {
		id := fmt.Sprintf("%064x", i+1)
		keys[i] = benchKey{id: id, alias: fmt.Sprintf("service-%d", i), entity: store.KeyEntity(id), user: fmt.Sprintf("user-%d", i%10), team: fmt.Sprintf("team-%d", i%5)}
		if err := st.CreateKey(ctx, store.Key{ID: id, Alias: keys[i].alias, MaxBudget: &limit, CreatedAt: time.Now(), UpdatedAt: time.Now()}); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// workerBatch is how many records a worker puts into a message.
const workerBatch = 500

// batches are n records as a gateway writes them, of today, so that they go into one
// partition: half of them streams, over all keys and four models.
func (w *worker) batches(keys []benchKey, n int, random *rand.Rand) []*ledgerv1.RecordBatch {
	var all []*ledgerv1.RecordBatch
	start := time.Now().UTC().Truncate(24 * time.Hour).Add(time.Hour)
	for len(all)*workerBatch < n {
		b := &ledgerv1.RecordBatch{Holder: w.holder}
		for range min(workerBatch, n-len(all)*workerBatch) {
			w.sent++
			start = start.Add(time.Duration(random.IntN(1000)) * time.Microsecond)
			b.Records = append(b.Records, w.record(keys[random.IntN(len(keys))], start, random))
		}
		all = append(all, b)
	}
	return all
}

func (w *worker) record(k benchKey, start time.Time, random *rand.Rand) *ledgerv1.SpendRecord {
	input, output := int64(50_000+random.IntN(50_000)), int64(random.IntN(1000))
	cost := input*150 + output*600
	model := []string{"gpt-4o", "gpt-4o-mini", "claude-sonnet-4-5", "gemini-2.5-pro"}[random.IntN(4)]
	lease := w.leases[k.entity]
	return &ledgerv1.SpendRecord{
		Seq: w.sent, RequestId: id(random), KeyId: k.id, KeyAlias: k.alias, UserId: k.user, TeamId: k.team, EndUser: customer(random),
		Tags: []string{"production"}, CallType: "chat_completion", RequestedModel: model, Model: model + "-2026-01-01", ModelId: "deployment-1", Provider: "openai",
		ApiBase: "https://llm.example/v1", StartMs: start.UnixMilli(), EndMs: start.Add(3 * time.Second).UnixMilli(), FirstTokenMs: start.Add(time.Second).UnixMilli(),
		Stream: random.IntN(2) == 0, Status: ledgerv1.SpendRecord_STATUS_SUCCESS, HttpStatus: 200,
		Usage: &ledgerv1.Usage{InputTokens: input, OutputTokens: output, CachedTokens: input / 2}, CostNano: cost, HoldNano: 2 * cost,
		Charges:  []*ledgerv1.LeaseCharge{{Lease: &ledgerv1.LeaseRef{Seq: lease.Seq, BudgetId: lease.BudgetId}, CostNano: cost}},
		Attempts: 1, PriceVersion: "2026-01", UpstreamId: "chatcmpl-" + id(random), ClientIp: "10.1.2.3", OutputCap: 1000,
	}
}

// customer names one of a thousand in every fourth record.
func customer(random *rand.Rand) string {
	if n := random.IntN(4000); n < 1000 {
		return fmt.Sprintf("customer-%d", n)
	}
	return ""
}

// id looks like the random ids that gateways and providers give.
func id(random *rand.Rand) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for range 32 {
		b.WriteByte(hex[random.IntN(16)])
	}
	return b.String()
}
