package collector

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/store"
)

type recordStream = grpc.BidiStreamingServer[ledgerv1.RecordBatch, ledgerv1.RecordAck]

// record serves one stream of records. One goroutine reads, the lanes commit, and
// this one sends the acks. It returns when all that was read is acked and no more
// comes, when a batch cannot be committed, or when the worker has gone.
func (c *Collector) record(stream recordStream) error {
	c.stats.streams.Add(1)
	defer c.stats.streams.Add(-1)
	acks := newAckBox()
	received := make(chan error, 1)
	go func() { received <- c.receive(stream, acks) }()

	stopping := c.stopping.Done()
	for {
		select {
		case err := <-received:
			acks.end(err)
		case <-stopping:
			stopping = nil
			acks.end(errStopping)
		case <-acks.wake:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
		done, err := sendAck(stream, acks)
		if done || err != nil {
			return c.rpcError("Record", err)
		}
	}
}

// sendAck sends what is acked and says whether the stream is done.
func sendAck(stream recordStream, acks *ackBox) (bool, error) {
	ack, fresh := acks.take()
	if fresh {
		if err := stream.Send(&ledgerv1.RecordAck{LastSeq: ack}); err != nil {
			return true, err
		}
	}
	return acks.verdict()
}

// receive reads batches into the holder's lane until the worker closes its side or
// the box takes no more.
func (c *Collector) receive(stream recordStream, acks *ackBox) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	// A push that waits for room would hold the stop up.
	defer context.AfterFunc(c.stopping, cancel)()

	var holder store.HolderID
	for {
		batch, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		rows, id, err := decodeBatch(batch, holder)
		if err != nil {
			return err
		}
		holder = id
		if !acks.expect() {
			return errStopping
		}
		c.stats.received.Add(int64(len(rows)))
		if err := c.lanes.push(ctx, holder, &item{rows: rows, at: time.Now(), done: acks.done}); err != nil {
			acks.withdraw()
			return errStopping
		}
	}
}

// decodeBatch checks a batch of a stream that has carried records of holder so far.
func decodeBatch(batch *ledgerv1.RecordBatch, holder store.HolderID) ([]store.Record, store.HolderID, error) {
	id, err := holderID(batch.GetHolder())
	if err != nil {
		return nil, "", err
	}
	if holder != "" && id != holder {
		return nil, "", invalidf("a stream carries the records of one holder")
	}
	rows, err := decodeRecords(batch.GetRecords())
	return rows, id, err
}
