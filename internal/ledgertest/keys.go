package ledgertest

import (
	"context"
	"encoding/hex"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

type keys struct {
	rows    map[string]*ledgerv1.Key
	log     []string      // id of each change; the position of log[i] is base+i+1
	base    int64         // changes that are no longer kept
	changed chan struct{} // closed and renewed at each change
}

func newKeys() keys {
	return keys{rows: map[string]*ledgerv1.Key{}, base: 1, changed: make(chan struct{})}
}

// PutKey creates or changes a key and tells the change.
func (l *Ledger) PutKey(k *ledgerv1.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := proto.CloneOf(k)
	row.Version = l.keys.base + int64(len(l.keys.log)) + 1
	l.keys.rows[k.GetId()] = row
	l.note(k.GetId())
}

// DeleteKey removes a key and tells the change.
func (l *Ledger) DeleteKey(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.keys.rows, id)
	l.note(id)
}

// ForgetChanges drops the log of changes, so that whoever comes with an older
// position has to forget every key.
func (l *Ledger) ForgetChanges() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys.base += int64(len(l.keys.log))
	l.keys.log = nil
}

func (l *Ledger) note(id string) {
	l.keys.log = append(l.keys.log, id)
	close(l.keys.changed)
	l.keys.changed = make(chan struct{})
}

// Authenticate looks a key up.
func (l *Ledger) Authenticate(_ context.Context, req *ledgerv1.AuthenticateRequest) (*ledgerv1.AuthenticateResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.arrive("Authenticate"); err != nil {
		return nil, err
	}
	row := l.keys.rows[hex.EncodeToString(req.GetKeyHash())]
	if row == nil {
		return &ledgerv1.AuthenticateResponse{}, nil
	}
	return &ledgerv1.AuthenticateResponse{Found: true, Key: proto.CloneOf(row)}, nil
}

// changesBeat is how often a quiet Changes stream repeats its position.
const changesBeat = 5 * time.Second

// Changes tells its position at once, then each change, and repeats its position
// while nothing changes.
func (l *Ledger) Changes(req *ledgerv1.ChangesRequest, stream grpc.ServerStreamingServer[ledgerv1.ChangesResponse]) error {
	after, first := req.GetAfter(), true
	for {
		l.mu.Lock()
		resp, changed, broken, away := l.changesAfter(after), l.keys.changed, l.broken, l.down
		l.mu.Unlock()
		if away {
			return errAway
		}
		if first || resp.GetAll() || len(resp.GetKeyIds()) > 0 {
			if err := stream.Send(resp); err != nil {
				return err
			}
			after, first = resp.GetPosition(), false
		}
		select {
		case <-changed:
		case <-time.After(changesBeat):
			first = true
		case <-broken:
			return errAway
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func (l *Ledger) changesAfter(after int64) *ledgerv1.ChangesResponse {
	resp := &ledgerv1.ChangesResponse{Position: l.keys.base + int64(len(l.keys.log))}
	switch {
	case after == 0:
	case after < l.keys.base:
		resp.All = true
	default:
		resp.KeyIds = append(resp.KeyIds, l.keys.log[after-l.keys.base:]...)
	}
	return resp
}

// Record commits what comes and acks it.
func (l *Ledger) Record(stream grpc.BidiStreamingServer[ledgerv1.RecordBatch, ledgerv1.RecordAck]) error {
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		last, err := l.Commit(batch.GetHolder(), batch.GetRecords()...)
		if err != nil {
			return err
		}
		if err := stream.Send(&ledgerv1.RecordAck{LastSeq: last}); err != nil {
			return err
		}
	}
}
