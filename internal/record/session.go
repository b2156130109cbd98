package record

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/journal"
)

// batchBytes bounds a message well below gRPC's 4 MiB.
const batchBytes = 1 << 20

// session is the state of one stream.
type session struct {
	r        *Recorder
	conn     grpc.BidiStreamingClient[ledgerv1.RecordBatch, ledgerv1.RecordAck]
	wake     chan struct{} // an ack came
	watchdog *time.Timer   // ends the session when nothing is acked for AckTimeout

	mu      sync.Mutex // also held while payloads are read: an ack gives their room back
	sent    uint64     // last number sent
	rewound bool       // since the last progress
}

// run sends what the journal has until ctx ends or a send fails; the reason of a
// failed send comes from receive.
func (s *session) run(ctx context.Context) {
	for s.drain() == nil {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-s.r.cfg.Journal.Notify():
			s.linger(ctx)
		}
	}
	// Send fails when the stream is over, and receive then knows why.
	<-ctx.Done()
}

// linger lets a message grow for BatchWait, unless it is full already.
func (s *session) linger(ctx context.Context) {
	s.mu.Lock()
	waiting := s.r.NextSeq() - 1 - s.sent
	s.mu.Unlock()
	if waiting >= uint64(s.r.cfg.BatchRows) {
		return
	}
	wait := time.NewTimer(s.r.cfg.BatchWait)
	defer wait.Stop()
	select {
	case <-ctx.Done():
	case <-wait.C:
	}
}

// drain sends full messages as long as there are any, and then what is left.
func (s *session) drain() error {
	for {
		batch, more := s.take()
		if len(batch) == 0 {
			return nil
		}
		if err := s.conn.Send(&ledgerv1.RecordBatch{Holder: s.r.cfg.Holder, Records: batch}); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// take reads the next rows and counts them as sent. more says that it stopped at
// the size of a message and not at the end of the journal or of the window.
func (s *session) take() (batch []*ledgerv1.SpendRecord, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	acked, cfg := s.r.Acked(), &s.r.cfg
	window := cfg.Window - int(s.sent-acked)
	rows := cfg.Journal.Pending(s.sent, min(cfg.BatchRows, window))
	if len(rows) > 0 && s.sent == acked {
		s.watchdog.Reset(cfg.AckTimeout) // the time runs from the first row that waits
	}
	bytes := 0
	for _, row := range rows {
		if bytes += len(row.Payload); bytes > batchBytes && len(batch) > 0 {
			return batch, true
		}
		batch = append(batch, s.r.decode(row))
		s.sent = row.Seq
	}
	return batch, len(rows) == cfg.BatchRows
}

// decode reads a row. One that cannot be read, which only a defect can bring
// about, must not keep those behind it.
func (r *Recorder) decode(row journal.Closed) *ledgerv1.SpendRecord {
	rec, err := Decode(row)
	if err == nil {
		return rec
	}
	r.cfg.Logger.Error("a record in the journal cannot be read and is booked as lost", "seq", row.Seq, "error", err)
	id := journal.Identity{PodUID: r.cfg.Holder.GetPodUid(), Index: r.cfg.Holder.GetIndex()}
	copy(id.Epoch[:], r.cfg.Holder.GetEpoch())
	return Lost(id, row.Seq, time.Now())
}

// receive handles acks until the stream is over.
func (s *session) receive() error {
	for {
		ack, err := s.conn.Recv()
		if err != nil {
			return fmt.Errorf("cannot receive acks: %w", err)
		}
		s.ack(ack.GetLastSeq())
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// ack takes the collector's cursor. One that has moved gives room back. One that
// has not, while rows are under way, may mean that rows before them are missing:
// everything from the cursor on is sent again, once, because it may as well be an
// old ack that was late; if it stays without progress, the watchdog makes a new stream.
func (s *session) ack(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg, acked := &s.r.cfg, s.r.Acked()
	if last := s.r.NextSeq() - 1; seq > last {
		cfg.Logger.Error("the collector acked a record that was never closed", "acked", seq, "last", last)
		seq = last
	}
	if seq < acked {
		cfg.Logger.Error("the collector's cursor is behind what it had acked: the database has lost commits", "acked", acked, "cursor", seq)
	}
	if seq > acked {
		cfg.Journal.Ack(seq)
		s.r.advance(seq)
		s.sent, s.rewound = max(s.sent, seq), false
		s.watchdog.Reset(cfg.AckTimeout)
		if s.sent == seq {
			s.watchdog.Stop()
		}
		return
	}
	if s.sent > acked && !s.rewound {
		s.sent, s.rewound = acked, true
	}
}

// advance publishes a new ack.
func (r *Recorder) advance(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acked = seq
	close(r.moved)
	r.moved = make(chan struct{})
}
