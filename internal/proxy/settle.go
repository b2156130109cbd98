package proxy

import (
	"time"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/money"
	"github.com/penstock-gateway/penstock/internal/telemetry"
)

// open writes the journal's open entry: from here on the request is booked
// whatever happens to this process. It holds the record as it stands if nothing
// more is ever heard: everything that was held.
func (r *request) open() *Refusal {
	d := r.deployment
	r.record = &ledgerv1.SpendRecord{
		RequestId: r.id, KeyId: r.key.ID, KeyAlias: r.key.Alias, UserId: r.key.UserID, TeamId: r.key.TeamID,
		OrganizationId: r.key.OrganizationID, Tags: r.tags(), EndUser: r.endUser(), CallType: "chat_completion",
		RequestedModel: r.chat.Model, Model: d.Model, ModelId: d.ID, Provider: d.Provider, ApiBase: d.APIBase,
		StartMs: r.start.UnixMilli(), EndMs: r.start.UnixMilli(), Stream: r.chat.Stream, Attempts: 1, OutputCap: r.outputCap,
		Status: ledgerv1.SpendRecord_STATUS_INTERRUPTED, Estimated: true, ClientIp: r.clientIP(),
		Usage: &ledgerv1.Usage{InputTokens: r.input},
	}
	if d.Price != nil {
		r.record.PriceVersion = d.Price.Version
	}
	if r.hold != nil {
		r.record.HoldNano, r.record.CostNano = r.hold.Amount(), r.hold.Amount()
		r.record.Charges = r.hold.Charges(r.hold.Amount())
	}
	ticket, err := r.p.cfg.Records.Open(r.record)
	if err != nil {
		r.releaseHold()
		r.p.cfg.Logger.Warn("cannot open a journal entry", "error", err)
		return refuseLedger("the spend journal is full: the spend-collector or its database is behind; retry shortly")
	}
	r.ticket, r.opened = ticket, true
	r.p.cfg.Metrics.AdmittedRequests.Inc()
	r.p.cfg.Metrics.AdmittedInputTokens.Add(r.input)
	if r.injectsCap() {
		r.p.cfg.Metrics.CapInjected.Inc()
	}
	return nil
}

func (r *request) releaseHold() {
	if r.hold != nil {
		r.hold.Release()
	}
}

// outcome is how a dispatched request ended.
type outcome struct {
	status     ledgerv1.SpendRecord_Status
	httpStatus int
	errorCode  string
	usage      money.Usage
	estimated  bool // the usage was counted here
	upstreamID string
}

// settle books the request: the cost from its usage, the journal's close entry,
// then the hold out and the cost in. It comes before the last byte of the answer
// leaves, exactly once.
func (r *request) settle(o outcome) {
	if r.settled {
		return
	}
	r.settled = true
	r.settleLimits(o.usage.Input, o.usage.Output)
	cost := r.price(o.usage)
	rec := r.record
	now := time.Now()
	rec.EndMs, rec.Status, rec.HttpStatus, rec.ErrorCode = now.UnixMilli(), o.status, int32(o.httpStatus), o.errorCode
	rec.Usage = &ledgerv1.Usage{
		InputTokens: o.usage.Input, OutputTokens: o.usage.Output, CachedTokens: o.usage.Cached,
		CacheWriteTokens: o.usage.CacheWrite, ReasoningTokens: o.usage.Reasoning,
	}
	rec.CostNano, rec.Estimated, rec.UpstreamId = cost, o.estimated, o.upstreamID
	rec.Attempts = uint32(max(1, r.attempts))
	if !r.firstToken.IsZero() {
		rec.FirstTokenMs = r.firstToken.UnixMilli()
	}
	rec.Charges = nil
	if r.hold != nil {
		rec.Charges = r.hold.Charges(cost)
	}
	seq, err := r.p.cfg.Records.Close(r.ticket, rec)
	if err != nil {
		// The open entry stays: the record is booked at all that was held.
		r.p.cfg.Logger.Error("cannot close a journal entry", "request_id", r.id, "error", err)
	} else if r.hold != nil {
		r.hold.Settle(cost, seq)
	}
	r.measure(o, cost, now)
}

// price is what the usage costs. A usage whose parts do not add up is priced as far
// as it goes, and counted.
func (r *request) price(u money.Usage) int64 {
	if r.deployment.Price == nil {
		return 0
	}
	cost, clamp := r.deployment.Price.Charge(u)
	if clamp != 0 {
		r.p.cfg.Metrics.UsageRejected.With(r.group.Name).Inc()
		r.p.cfg.Logger.Warn("usage does not add up", "request_id", r.id, "model_id", r.deployment.ID, "clamped", clamp.String())
	}
	return cost
}

func (r *request) measure(o outcome, cost int64, now time.Time) {
	m, model, alias := r.p.cfg.Metrics, r.group.Name, r.key.Alias
	m.Requests.With(model, telemetry.StatusLabel(o.httpStatus), alias).Inc()
	m.InputTokens.With(model, alias).Add(o.usage.Input)
	m.OutputTokens.With(model, alias).Add(o.usage.Output)
	m.SpendNano.With(model, alias).Add(cost)
	m.Duration.With(model).Observe(now.Sub(r.start))
	m.Overhead.With(model).Observe(now.Sub(r.start) - r.upstream)
	if !r.firstToken.IsZero() {
		m.TimeToFirst.With(model).Observe(r.firstToken.Sub(r.start))
	}
	if o.estimated {
		m.Estimated.With(model).Inc()
	}
	if r.hold != nil && cost > r.hold.Amount() {
		m.OverrunNano.With(model).Add(cost - r.hold.Amount())
	}
	if o.status == ledgerv1.SpendRecord_STATUS_CLIENT_CLOSED {
		m.ClientGone.Inc()
	}
}
