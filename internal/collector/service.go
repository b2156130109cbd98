package collector

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/store"
)

// callTimeout bounds one unary call's work in the database. A worker that waits
// longer has given up and asks again.
const callTimeout = 5 * time.Second

// service answers workers. Each unary call is one transaction of the store.
type service struct {
	ledgerv1.UnimplementedLedgerServer

	c *Collector
}

func (s service) Authenticate(ctx context.Context, req *ledgerv1.AuthenticateRequest) (*ledgerv1.AuthenticateResponse, error) {
	return answer(ctx, s.c, "Authenticate", func(ctx context.Context) (*ledgerv1.AuthenticateResponse, error) {
		id, err := hexHash(req.GetKeyHash())
		if err != nil {
			return nil, err
		}
		found, err := s.c.cfg.Store.Admit(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return &ledgerv1.AuthenticateResponse{}, nil
		case err != nil:
			return nil, err
		}
		return &ledgerv1.AuthenticateResponse{Found: true, Key: encodeKey(&found)}, nil
	})
}

func (s service) Subjects(ctx context.Context, req *ledgerv1.SubjectsRequest) (*ledgerv1.SubjectsResponse, error) {
	return answer(ctx, s.c, "Subjects", func(ctx context.Context) (*ledgerv1.SubjectsResponse, error) {
		if n := len(req.GetNames()); n > maxSubjects {
			return nil, invalidf("cannot look up %d subjects: want at most %d", n, maxSubjects)
		}
		found, err := s.c.subjects(ctx, req.GetNames(), req.GetCustomerBudgetId())
		if err != nil {
			return nil, err
		}
		return encodeSubjects(found), nil
	})
}

func (s service) Heartbeat(ctx context.Context, req *ledgerv1.HeartbeatRequest) (*ledgerv1.HeartbeatResponse, error) {
	return answer(ctx, s.c, "Heartbeat", func(ctx context.Context) (*ledgerv1.HeartbeatResponse, error) {
		holder, err := holderID(req.GetHolder())
		if err != nil {
			return nil, err
		}
		states, err := s.c.cfg.Store.Heartbeat(ctx, []store.HolderID{holder}, s.c.cfg.TTL)
		if err != nil {
			return nil, err
		}
		if len(states) != 1 || states[0].Holder != holder {
			return nil, errors.New("cannot renew the holder: the store answered for another one")
		}
		return &ledgerv1.HeartbeatResponse{
			SentMonotonicNs: req.GetSentMonotonicNs(),
			TtlMs:           s.c.cfg.TTL.Milliseconds(),
			Reaps:           states[0].Reaps,
			Fenced:          states[0].Fenced,
		}, nil
	})
}

func (s service) Grant(ctx context.Context, req *ledgerv1.GrantRequest) (*ledgerv1.GrantResponse, error) {
	return answer(ctx, s.c, "Grant", func(ctx context.Context) (*ledgerv1.GrantResponse, error) {
		grant, err := decodeGrant(req)
		if err != nil {
			return nil, err
		}
		result, err := s.c.cfg.Store.Grant(ctx, grant)
		if errors.Is(err, store.ErrGap) {
			s.c.stuck.fence(grant.Holder, "a grant follows one that the database does not know", "error", err)
		}
		if err != nil {
			return nil, err
		}
		s.c.stats.grants.Add(1)
		return encodeGrant(grant.Seq, result), nil
	})
}

func (s service) Return(ctx context.Context, req *ledgerv1.ReturnRequest) (*ledgerv1.ReturnResponse, error) {
	return answer(ctx, s.c, "Return", func(ctx context.Context) (*ledgerv1.ReturnResponse, error) {
		holder, err := holderID(req.GetHolder())
		if err != nil {
			return nil, err
		}
		leases, err := decodeReturn(req)
		if err != nil {
			return nil, err
		}
		pending, err := s.c.cfg.Store.Return(ctx, holder, leases)
		if err != nil {
			return nil, err
		}
		return encodeReturn(leases, pending), nil
	})
}

func (s service) Trim(ctx context.Context, req *ledgerv1.TrimRequest) (*ledgerv1.TrimResponse, error) {
	return answer(ctx, s.c, "Trim", func(ctx context.Context) (*ledgerv1.TrimResponse, error) {
		holder, err := holderID(req.GetHolder())
		if err != nil {
			return nil, err
		}
		leases, err := decodeTrim(req)
		if err != nil {
			return nil, err
		}
		return &ledgerv1.TrimResponse{}, s.c.cfg.Store.Trim(ctx, holder, leases)
	})
}

func (s service) Record(stream grpc.BidiStreamingServer[ledgerv1.RecordBatch, ledgerv1.RecordAck]) error {
	return s.c.record(stream)
}

func (s service) Changes(req *ledgerv1.ChangesRequest, stream grpc.ServerStreamingServer[ledgerv1.ChangesResponse]) error {
	return s.c.changes.serve(req, stream)
}

// answer runs one unary call within its time and gives its error a code.
func answer[T any](ctx context.Context, c *Collector, method string, call func(context.Context) (*T, error)) (*T, error) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := call(limited)
	if err != nil {
		return nil, c.rpcError(method, err)
	}
	return resp, nil
}
