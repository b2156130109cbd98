package collector

import "sync/atomic"

// Stats counts what a collector did since its start.
type Stats struct {
	Grants           int64 // grants answered, replays included
	RecordStreams    int64 // open now
	RecordsReceived  int64 // rows that came in over streams, replays included
	RecordsCommitted int64 // rows whose commit was acked
	Commits          int64
	CommitRetries    int64 // commits tried again because the database was away
	Gaps             int64 // batches that started beyond the cursor
	Refused          int64 // calls refused as invalid
	Unavailable      int64 // calls answered with Unavailable
	Adopted          int64 // journals of dead workers taken over
	Interrupted      int64 // requests booked at their hold, because their worker died
	Lost             int64 // records of dead workers that could not be read, booked at no cost
	AdoptFailures    int64
	Reaped           int64 // holders charged as lost
	Fenced           int64 // holders closed because the database lost what they had
	Buried           int64 // records of dead workers booked as dead letters, for want of a lease
}

// counters is Stats while it is being counted.
type counters struct {
	streams                                             atomic.Int64
	grants, received, committed, commits, retries, gaps atomic.Int64
	refused, unavailable, adopted, interrupted          atomic.Int64
	lost, adoptFailures, reaped, fenced, buried         atomic.Int64
}

func (c *counters) snapshot() Stats {
	return Stats{
		Grants:           c.grants.Load(),
		RecordStreams:    c.streams.Load(),
		RecordsReceived:  c.received.Load(),
		RecordsCommitted: c.committed.Load(),
		Commits:          c.commits.Load(),
		CommitRetries:    c.retries.Load(),
		Gaps:             c.gaps.Load(),
		Refused:          c.refused.Load(),
		Unavailable:      c.unavailable.Load(),
		Adopted:          c.adopted.Load(),
		Interrupted:      c.interrupted.Load(),
		Lost:             c.lost.Load(),
		AdoptFailures:    c.adoptFailures.Load(),
		Reaped:           c.reaped.Load(),
		Fenced:           c.fenced.Load(),
		Buried:           c.buried.Load(),
	}
}
