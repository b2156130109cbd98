package store

import "time"

// Pools is what a connection pooler before the database says about itself, all its pools
// together.
type Pools struct {
	ServersUsed    int           // connections to the database that serve a transaction, or are being opened or checked
	ServersIdle    int           // connections to the database that wait for work
	ClientsActive  int           // clients that are connected and do not wait
	ClientsWaiting int           // clients that wait for a connection to the database
	MaxWait        time.Duration // how long the first of them has waited

	// Totals since the pooler was started.
	Transactions int64
	Waited       time.Duration // by all clients together
}
