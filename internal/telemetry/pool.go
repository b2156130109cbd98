package telemetry

import "context"

// RoleCollector is the role of a process that reports a Pool and serves no requests.
const RoleCollector = "spend-collector"

// Pool is what a spend-collector reports: how its pod's connections to the database are
// used. It may be used by any number of goroutines. Fields are read, never replaced.
type Pool struct {
	Up           Gauge       // 1 while the pooler's figures are read
	Servers      Vec1[Gauge] // state: used, idle
	Clients      Vec1[Gauge] // state: active, waiting
	MaxWait      GaugeFunc   // seconds
	Transactions Counter
	Wait         Counter // Add takes nanoseconds

	folded   Counter // labels are few and fixed, so it stays 0
	reporter *reporter
}

// PoolCatalogue lists every metric of a Pool.
func PoolCatalogue() []Desc {
	rows := new(Pool).table()
	descs := make([]Desc, len(rows))
	for i, row := range rows {
		descs[i] = row.Desc
	}
	return descs
}

func (p *Pool) table() []row {
	state := []string{"state"}
	return []row{
		{Desc{Name: "penstock_pool_up", Kind: KindGauge,
			Help: "1 while PgBouncer tells its figures to the spend-collector."}, &p.Up},
		{Desc{Name: "penstock_pool_server_connections", Kind: KindGauge, Labels: state,
			Help: "PgBouncer's connections to PostgreSQL that are used, or idle."}, &p.Servers},
		{Desc{Name: "penstock_pool_client_connections", Kind: KindGauge, Labels: state,
			Help: "Clients of PgBouncer that are active, or waiting for a connection to PostgreSQL."}, &p.Clients},
		{Desc{Name: "penstock_pool_max_wait_seconds", Kind: KindGauge,
			Help: "How long the client that has waited longest for a connection to PostgreSQL waits."}, &p.MaxWait},
		{Desc{Name: "penstock_pool_transactions_total", Kind: KindCounter,
			Help: "Transactions that passed PgBouncer."}, &p.Transactions},
		{Desc{Name: "penstock_pool_wait_seconds_total", Kind: KindCounter, Nano: true,
			Help: "Time that clients of PgBouncer have waited for a connection to PostgreSQL."}, &p.Wait},
	}
}

// NewPool makes the set. It starts nothing.
func NewPool(cfg Config) *Pool {
	cfg.setDefaults(RoleCollector)
	p := &Pool{}
	r := &registry{maxSeries: cfg.MaxSeries, folded: &p.folded}
	for _, row := range p.table() {
		row.field.bind(r, r.addFamily(row.Desc))
	}
	p.reporter = newReporter(cfg, r)
	return p
}

// Start begins reporting, as Metrics.Start does.
func (p *Pool) Start(context.Context) error {
	p.reporter.start()
	return nil
}

// Stop ends it, as Metrics.Stop does.
func (p *Pool) Stop(ctx context.Context) error { return p.reporter.stop(ctx) }
