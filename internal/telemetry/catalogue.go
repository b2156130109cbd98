package telemetry

// Kind is how a metric's values behave.
type Kind uint8

// The kinds of metric.
const (
	KindCounter Kind = iota + 1
	KindGauge
	KindHistogram
)

func (k Kind) String() string {
	switch k {
	case KindCounter:
		return "counter"
	case KindGauge:
		return "gauge"
	case KindHistogram:
		return "histogram"
	}
	return "unknown"
}

// Desc declares a metric. Gauges whose name ends in _ratio or _seconds are merged over
// workers by maximum, all others by sum.
type Desc struct {
	Name    string
	Help    string
	Kind    Kind
	Labels  []string
	Buckets []float64 // seconds, ascending, without +Inf
	// Nano says that handles take billionths of the exposed unit: nano-dollars.
	Nano bool
}

// Catalogue lists every metric that a worker has, in the order of the table.
func Catalogue() []Desc {
	rows := new(Metrics).table()
	descs := make([]Desc, len(rows))
	for i, row := range rows {
		descs[i] = row.Desc
	}
	return descs
}

type row struct {
	Desc
	field binder
}

// Buckets follow what is measured: a request with a long stream, a gateway's own share
// of it, and the wait for a first token.
func durationBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}
}

func overheadBuckets() []float64 {
	return []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
}

func firstTokenBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2, 3, 5, 10, 20, 30, 60, 120}
}

// table is the one place where metrics are declared. Order is for readers: labels that
// fold first when a metric is full come last.
func (m *Metrics) table() []row {
	return append(append(m.progressTable(), m.outcomeTable()...), m.stateTable()...)
}

func (m *Metrics) progressTable() []row {
	return []row{
		{Desc{Name: "penstock_admitted_requests_total", Kind: KindCounter,
			Help: "Requests that passed every check and were sent on; counted at admission."}, &m.AdmittedRequests},
		{Desc{Name: "penstock_admitted_input_tokens_total", Kind: KindCounter,
			Help: "Prompt tokens of admitted requests; counted at admission."}, &m.AdmittedInputTokens},
		{Desc{Name: "penstock_delivered_output_tokens_total", Kind: KindCounter,
			Help: "Output tokens as they are delivered, while a stream runs."}, &m.DeliveredOutputTokens},
		{Desc{Name: "penstock_in_flight_requests", Kind: KindGauge,
			Help: "Requests that are being served."}, &m.InFlightRequests},
		{Desc{Name: "penstock_in_flight_body_bytes", Kind: KindGauge,
			Help: "Bytes of request bodies held in memory."}, &m.InFlightBodyBytes},
	}
}

func (m *Metrics) outcomeTable() []row {
	modelKey := []string{"model", "key_alias"}
	model := []string{"model"}
	return []row{
		{Desc{Name: "penstock_requests_total", Kind: KindCounter, Labels: []string{"model", "status", "key_alias"},
			Help: "Requests that ended, by the status the client got."}, &m.Requests},
		{Desc{Name: "penstock_input_tokens_total", Kind: KindCounter, Labels: modelKey,
			Help: "Prompt tokens as booked when a request settles."}, &m.InputTokens},
		{Desc{Name: "penstock_output_tokens_total", Kind: KindCounter, Labels: modelKey,
			Help: "Output tokens as booked when a request settles."}, &m.OutputTokens},
		{Desc{Name: "penstock_spend_usd_total", Kind: KindCounter, Labels: modelKey, Nano: true,
			Help: "US dollars as booked when a request settles."}, &m.SpendNano},
		{Desc{Name: "penstock_request_duration_seconds", Kind: KindHistogram, Labels: model, Buckets: durationBuckets(),
			Help: "Time from a request's first byte to its answer's last."}, &m.Duration},
		{Desc{Name: "penstock_overhead_seconds", Kind: KindHistogram, Labels: model, Buckets: overheadBuckets(),
			Help: "The gateway's own share of a request's time, without the upstream's."}, &m.Overhead},
		{Desc{Name: "penstock_time_to_first_token_seconds", Kind: KindHistogram, Labels: model, Buckets: firstTokenBuckets(),
			Help: "Time from a request's first byte to its answer's first token."}, &m.TimeToFirst},
		{Desc{Name: "penstock_refusals_total", Kind: KindCounter, Labels: []string{"reason"},
			Help: "Requests that ended early in the gateway, by reason."}, &m.Refusals},
		{Desc{Name: "penstock_upstream_attempts_total", Kind: KindCounter, Labels: []string{"provider", "outcome"},
			Help: "Attempts at an upstream, by how they ended."}, &m.Attempts},
		{Desc{Name: "penstock_client_gone_total", Kind: KindCounter,
			Help: "Requests whose client left before the answer's end."}, &m.ClientGone},
		{Desc{Name: "penstock_usage_rejected_total", Kind: KindCounter, Labels: model,
			Help: "Answers whose reported usage was not believable and was replaced by a count."}, &m.UsageRejected},
		{Desc{Name: "penstock_estimated_total", Kind: KindCounter, Labels: model,
			Help: "Requests booked from an estimate."}, &m.Estimated},
		{Desc{Name: "penstock_overrun_usd_total", Kind: KindCounter, Labels: model, Nano: true,
			Help: "US dollars that a provider billed beyond the hold."}, &m.OverrunNano},
		{Desc{Name: "penstock_output_cap_injected_total", Kind: KindCounter,
			Help: "Requests that got an output cap because the client gave none."}, &m.CapInjected},
		{Desc{Name: "penstock_count_waits_total", Kind: KindCounter,
			Help: "Large prompts that waited for others to be counted first."}, &m.CountWaits},
	}
}

func (m *Metrics) stateTable() []row {
	return []row{
		{Desc{Name: "penstock_journal_fill_ratio", Kind: KindGauge,
			Help: "Share of the journal that is in use; the fullest worker's."}, &m.JournalFill},
		{Desc{Name: "penstock_unacked_records", Kind: KindGauge,
			Help: "Spend records that the collector has not acknowledged yet."}, &m.UnackedRecords},
		{Desc{Name: "penstock_oldest_unacked_seconds", Kind: KindGauge,
			Help: "Age of the oldest spend record that is not acknowledged; the worst worker's."}, &m.OldestUnacked},
		{Desc{Name: "penstock_series_folded_total", Kind: KindCounter,
			Help: "Measurements that went to a series named other because their metric was full."}, &m.SeriesFolded},
	}
}
