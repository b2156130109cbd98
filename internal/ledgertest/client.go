package ledgertest

import (
	"context"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
)

// Fault is what happens to one unary call on its way.
type Fault struct {
	Delay       time.Duration // before it arrives; a caller that gives up meanwhile does not stop it
	LoseRequest bool          // it never arrives
	LoseReply   bool          // it is done, and the caller sees an error
	Duplicate   bool          // it arrives once more, before some later call
}

// SetPlan sets what decides each unary call's fault by its method ("Grant"); nil:
// none. The plan is called under the ledger's lock and must not call the ledger.
func (l *Ledger) SetPlan(plan func(method string) Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.plan = plan
}

// GoAway makes every call fail as unavailable and breaks the streams, as when the
// collector is dead, until ComeBack.
func (l *Ledger) GoAway() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	l.breakStreams()
}

// ComeBack ends GoAway.
func (l *Ledger) ComeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// BreakStreams breaks the streams that are open now, as a restart of the collector does.
func (l *Ledger) BreakStreams() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breakStreams()
}

func (l *Ledger) breakStreams() {
	close(l.broken)
	l.broken = make(chan struct{})
}

// Client returns a client of the ledger that needs no socket and suffers the
// plan's faults.
func (l *Ledger) Client() ledgerv1.LedgerClient { return &client{l} }

type client struct{ l *Ledger }

func (c *client) Authenticate(ctx context.Context, in *ledgerv1.AuthenticateRequest, _ ...grpc.CallOption) (*ledgerv1.AuthenticateResponse, error) {
	return call(ctx, c.l, "Authenticate", in, c.l.Authenticate)
}

func (c *client) Heartbeat(ctx context.Context, in *ledgerv1.HeartbeatRequest, _ ...grpc.CallOption) (*ledgerv1.HeartbeatResponse, error) {
	return call(ctx, c.l, "Heartbeat", in, c.l.Heartbeat)
}

func (c *client) Grant(ctx context.Context, in *ledgerv1.GrantRequest, _ ...grpc.CallOption) (*ledgerv1.GrantResponse, error) {
	return call(ctx, c.l, "Grant", in, c.l.Grant)
}

func (c *client) Return(ctx context.Context, in *ledgerv1.ReturnRequest, _ ...grpc.CallOption) (*ledgerv1.ReturnResponse, error) {
	return call(ctx, c.l, "Return", in, c.l.Return)
}

func (c *client) Trim(ctx context.Context, in *ledgerv1.TrimRequest, _ ...grpc.CallOption) (*ledgerv1.TrimResponse, error) {
	return call(ctx, c.l, "Trim", in, c.l.Trim)
}

// call carries one unary call through its fault. Messages are copied, as a wire does.
func call[Req, Res proto.Message](ctx context.Context, l *Ledger, method string, in Req, do func(context.Context, Req) (Res, error)) (Res, error) {
	var none Res
	in = proto.CloneOf(in)
	again := func() { _, _ = do(context.WithoutCancel(ctx), in) }
	f := l.nextFault(method)
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
			l.arriveLater(again)
			return none, ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if f.LoseRequest {
		return none, errAway
	}
	if f.Duplicate {
		l.arriveLater(again)
	}
	out, err := do(ctx, in)
	if err != nil || f.LoseReply {
		return none, errAway
	}
	return proto.CloneOf(out), nil
}

// nextFault lets late requests arrive and asks the plan.
func (l *Ledger) nextFault(method string) Fault {
	l.mu.Lock()
	late := l.late
	if len(late) < 3 { // some stay for later, so that they overtake and are overtaken
		late = nil
	}
	l.late = l.late[len(late):]
	var f Fault
	if l.plan != nil {
		f = l.plan(method)
	}
	l.mu.Unlock()
	for _, do := range late {
		do()
	}
	return f
}

func (l *Ledger) arriveLater(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, do)
}

func (c *client) Record(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[ledgerv1.RecordBatch, ledgerv1.RecordAck], error) {
	p := newPipe[ledgerv1.RecordBatch, ledgerv1.RecordAck](ctx, c.l)
	go func() { p.end(c.l.Record(serverEnd[ledgerv1.RecordBatch, ledgerv1.RecordAck]{pipe: p})) }()
	return clientEnd[ledgerv1.RecordBatch, ledgerv1.RecordAck]{pipe: p}, nil
}

func (c *client) Changes(ctx context.Context, in *ledgerv1.ChangesRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[ledgerv1.ChangesResponse], error) {
	p := newPipe[ledgerv1.ChangesRequest, ledgerv1.ChangesResponse](ctx, c.l)
	in = proto.CloneOf(in)
	go func() { p.end(c.l.Changes(in, serverEnd[ledgerv1.ChangesRequest, ledgerv1.ChangesResponse]{pipe: p})) }()
	return clientEnd[ledgerv1.ChangesRequest, ledgerv1.ChangesResponse]{pipe: p}, nil
}

// pipe is a stream without a socket.
type pipe[Up, Down any] struct {
	ctx    context.Context
	broken <-chan struct{} // the stream breaks
	up     chan *Up
	closed chan struct{} // the client sends no more
	down   chan *Down
	done   chan struct{} // the server's handler has returned err
	err    error
}

func newPipe[Up, Down any](ctx context.Context, l *Ledger) *pipe[Up, Down] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &pipe[Up, Down]{
		ctx: ctx, broken: l.broken, up: make(chan *Up), closed: make(chan struct{}),
		down: make(chan *Down), done: make(chan struct{}),
	}
}

func (p *pipe[Up, Down]) end(err error) {
	p.err = err
	if err == nil {
		p.err = io.EOF
	}
	close(p.done)
}

type clientEnd[Up, Down any] struct {
	grpc.ClientStream
	*pipe[Up, Down]
}

func (c clientEnd[Up, Down]) Context() context.Context { return c.ctx }

func (c clientEnd[Up, Down]) CloseSend() error {
	close(c.closed)
	return nil
}

func (c clientEnd[Up, Down]) Send(m *Up) error {
	select {
	case c.up <- m:
		return nil
	case <-c.done:
		return io.EOF
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

func (c clientEnd[Up, Down]) Recv() (*Down, error) {
	select {
	case m := <-c.down:
		return m, nil
	case <-c.done:
		return nil, c.err
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
}

type serverEnd[Up, Down any] struct {
	grpc.ServerStream
	*pipe[Up, Down]
}

func (s serverEnd[Up, Down]) Context() context.Context { return s.ctx }

func (s serverEnd[Up, Down]) Send(m *Down) error {
	select {
	case s.down <- m:
		return nil
	case <-s.broken:
		return errAway
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s serverEnd[Up, Down]) Recv() (*Up, error) {
	select {
	case m := <-s.up:
		return m, nil
	case <-s.closed:
		return nil, io.EOF
	case <-s.broken:
		return nil, errAway
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}
