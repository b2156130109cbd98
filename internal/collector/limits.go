package collector

import (
	"context"
	"encoding/json"
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/ledger"
	"github.com/penstock-gateway/penstock/internal/store"
)

// DefaultLimitWindow is what rpm and tpm are counted over. All collectors of a database
// must use the same.
const DefaultLimitWindow = time.Minute

// Bounds of a call about limits.
const (
	maxMeters   = 10_000
	maxReturned = 100_000
	maxCount    = int64(1e15)
	maxUse      = int64(time.Hour / time.Millisecond)
	maxLongest  = int64(24 * time.Hour / time.Millisecond)
)

func (s service) Limits(ctx context.Context, req *ledgerv1.LimitsRequest) (*ledgerv1.LimitsResponse, error) {
	return answer(ctx, s.c, "Limits", func(ctx context.Context) (*ledgerv1.LimitsResponse, error) {
		sync, err := decodeLimits(req)
		if err != nil {
			return nil, err
		}
		sync.Window = ledger.Window{Length: s.c.cfg.LimitWindow}
		result, err := s.c.cfg.Store.SyncLimits(ctx, sync)
		if err != nil {
			return nil, err
		}
		return encodeLimits(sync, result), nil
	})
}

func decodeLimits(req *ledgerv1.LimitsRequest) (store.LimitSync, error) {
	holder, err := holderID(req.GetHolder())
	if err != nil {
		return store.LimitSync{}, err
	}
	switch n := len(req.GetMeters()); {
	case req.GetSeq() == 0 || req.GetSeq() > maxSeq:
		return store.LimitSync{}, invalidf("seq of a call must lie between 1 and %d", maxSeq)
	case n == 0 || n > maxMeters:
		return store.LimitSync{}, invalidf("a call has 1 to %d meters, not %d", maxMeters, n)
	case len(req.GetWants()) > maxWants:
		return store.LimitSync{}, invalidf("a call has at most %d wants, not %d", maxWants, len(req.GetWants()))
	case outside(req.GetUseMs(), maxUse), outside(req.GetLongestMs(), maxLongest):
		return store.LimitSync{}, invalidf("use_ms lies between 0 and %d, longest_ms between 0 and %d", maxUse, maxLongest)
	}
	s := store.LimitSync{Seq: req.GetSeq()}
	s.Holder, s.Use, s.Longest = string(holder), duration(req.GetUseMs()), duration(req.GetLongestMs())
	if s.Asks, err = decodeMeters(req.GetMeters()); err != nil {
		return store.LimitSync{}, err
	}
	s.Wants, err = decodeLimitWants(req.GetWants(), len(s.Asks))
	return s, err
}

func decodeMeters(meters []*ledgerv1.LimitMeter) ([]ledger.LimitAsk, error) {
	type name struct {
		subject string
		kind    ledgerv1.LimitKind
	}
	seen := make(map[name]bool, len(meters))
	asks := make([]ledger.LimitAsk, len(meters))
	for i, m := range meters {
		n := name{store.CleanText(m.GetSubject()), m.GetKind()}
		switch {
		case n.subject == "" || len(n.subject) > maxEntity:
			return nil, invalidf("meters[%d]: a subject has 1 to %d bytes", i, maxEntity)
		case n.kind < ledgerv1.LimitKind_LIMIT_KIND_REQUESTS || n.kind > ledgerv1.LimitKind_LIMIT_KIND_PARALLEL:
			return nil, invalidf("meters[%d]: unknown kind %d", i, n.kind)
		case seen[n]:
			return nil, invalidf("meters[%d]: %s is named twice", i, n.subject)
		case outside(m.GetCharge(), maxCount), outside(m.GetHave(), maxCount), outside(m.GetDesiredShort(), maxCount), outside(m.GetDesiredCalm(), maxCount):
			return nil, invalidf("meters[%d]: amounts must lie between 0 and %d", i, maxCount)
		case len(m.GetReturns()) > maxReturned:
			return nil, invalidf("meters[%d]: at most %d returns", i, maxReturned)
		}
		seen[n] = true
		asks[i] = ledger.LimitAsk{
			Subject: n.subject, Kind: ledger.LimitKind(n.kind), Limit: min(max(m.GetLimit(), 0), maxCount), Charge: m.GetCharge(),
			Have: m.GetHave(), Short: m.GetDesiredShort(), Calm: m.GetDesiredCalm(),
		}
		for _, r := range m.GetReturns() {
			if r.GetUsed() < 0 || r.GetUsed() > r.GetGranted() || outside(r.GetGranted(), maxCount) {
				return nil, invalidf("meters[%d]: a return has 0 ≤ used ≤ granted ≤ %d", i, maxCount)
			}
			asks[i].Returns = append(asks[i].Returns, ledger.PermitReturn{Cell: r.GetCell(), Granted: r.GetGranted(), Used: r.GetUsed()})
		}
	}
	return asks, nil
}

func decodeLimitWants(wants []*ledgerv1.LimitWant, meters int) ([]ledger.LimitWant, error) {
	out := make([]ledger.LimitWant, len(wants))
	for i, w := range wants {
		if len(w.GetNeeds()) > 3*maxEntities {
			return nil, invalidf("wants[%d] has at most %d needs", i, 3*maxEntities)
		}
		for j, n := range w.GetNeeds() {
			if int64(n.GetMeter()) >= int64(meters) || outside(n.GetAmount(), maxCount) {
				return nil, invalidf("wants[%d]: a need has a meter of the call, and an amount between 0 and %d", i, maxCount)
			}
			for _, other := range w.GetNeeds()[:j] {
				if other.GetMeter() == n.GetMeter() {
					return nil, invalidf("wants[%d]: meter %d is named twice", i, n.GetMeter())
				}
			}
			out[i] = append(out[i], ledger.LimitNeed{Ask: int(n.GetMeter()), Amount: n.GetAmount()})
		}
	}
	return out, nil
}

func outside(n, most int64) bool { return n < 0 || n > most }

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func encodeLimits(sync store.LimitSync, r store.LimitResult) *ledgerv1.LimitsResponse {
	resp := &ledgerv1.LimitsResponse{
		Seq: sync.Seq, Replayed: r.Replayed, WindowMs: sync.Window.Length.Milliseconds(), ShortMs: sync.Window.Short().Milliseconds(),
		CalmMs: sync.Window.Calm().Milliseconds(), CellMs: sync.Window.Cell().Milliseconds(),
	}
	for _, g := range r.Grants {
		resp.Grants = append(resp.Grants, &ledgerv1.LimitGrant{
			Amount: g.Amount, Cell: g.Cell, Settled: g.Settled, UseMs: g.Use.Milliseconds(), Rest: g.Rest, KeepMs: g.Keep.Milliseconds(),
			Free: g.Free, ResetMs: g.Reset.Milliseconds(), Calm: g.Calm,
		})
	}
	for _, v := range r.Verdicts {
		resp.Verdicts = append(resp.Verdicts, &ledgerv1.LimitVerdict{Granted: v.Granted, Meter: uint32(v.Ask), RetryMs: encodeRetry(v.Retry)})
	}
	return resp
}

// encodeRetry rounds up: a retry that comes too early is refused again.
func encodeRetry(d time.Duration) int64 {
	switch d {
	case ledger.RetryUnknown:
		return 0
	case ledger.RetryNever:
		return -1
	}
	return (d + time.Millisecond - 1).Milliseconds()
}

// keyLimits are the limits of a key itself, as /key/generate took them. A limit that is
// set to 0 or below admits nothing.
func keyLimits(k *store.Key) []*ledgerv1.LimitSubject {
	return limitsOf(store.KeyEntity(k.ID), k.SettingsJSON)
}

// limitsOf are the limits in the settings of an entity.
func limitsOf(name, settings string) []*ledgerv1.LimitSubject {
	var set struct {
		RPM      *float64 `json:"rpm_limit"`
		TPM      *float64 `json:"tpm_limit"`
		Parallel *float64 `json:"max_parallel_requests"`
	}
	if json.Unmarshal([]byte(settings), &set) != nil || set.RPM == nil && set.TPM == nil && set.Parallel == nil {
		return nil
	}
	return []*ledgerv1.LimitSubject{{Name: name, Rpm: limitOf(set.RPM), Tpm: limitOf(set.TPM), Parallel: limitOf(set.Parallel)}}
}

// limitOf is a limit as the protocol has it: 0 for none, below 0 for nothing.
func limitOf(n *float64) int64 {
	switch {
	case n == nil:
		return 0
	case *n < 1:
		return -1
	}
	return int64(min(*n, float64(maxCount)))
}
