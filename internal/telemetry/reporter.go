package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// retryEvery is the pause before the sidecar is tried again. It must stay well below
// the time that a new sidecar waits for its workers before it serves their sums.
const retryEvery = 500 * time.Millisecond

// reporter sends frames from one goroutine. Only this goroutine ever waits for the
// sidecar; values are cumulative, so whatever it could not send is in the next frame.
type reporter struct {
	cfg      Config
	registry *registry

	life     context.Context // ends when stop gives up
	giveUp   context.CancelFunc
	stopping chan struct{}
	done     chan struct{}
	once     sync.Once
	started  bool
}

func newReporter(cfg Config, registry *registry) *reporter {
	life, giveUp := context.WithCancel(context.Background())
	return &reporter{cfg: cfg, registry: registry, life: life, giveUp: giveUp,
		stopping: make(chan struct{}), done: make(chan struct{})}
}

func (r *reporter) start() {
	if r.cfg.Socket == "" {
		return
	}
	r.started = true
	go r.run()
}

func (r *reporter) stop(ctx context.Context) error {
	defer r.giveUp()
	if !r.started {
		return nil
	}
	r.once.Do(func() { close(r.stopping) })
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		r.giveUp()
		<-r.done
		return fmt.Errorf("cannot send the last telemetry frame: %w", ctx.Err())
	}
}

func (r *reporter) run() {
	defer close(r.done)
	away, lastTry := false, false
	for {
		err := r.session(func() {
			if away {
				r.cfg.Logger.Info("telemetry is reported again", slog.String("socket", r.cfg.Socket))
			}
			away = false
		})
		if err == nil || lastTry || r.life.Err() != nil {
			return
		}
		if !away { // once per outage, not per attempt
			away = true
			r.cfg.Logger.Warn("cannot report telemetry, counting goes on", slog.String("socket", r.cfg.Socket), slog.Any("error", err))
		}
		select {
		case <-r.stopping:
			lastTry = true // it may be back by now
		case <-time.After(retryEvery):
		}
	}
}

// session reports over one connection until the reporter stops (nil) or the sidecar
// is gone. connected is called after the first frame.
func (r *reporter) session(connected func()) error {
	ctx, cancel := context.WithCancel(r.life)
	defer cancel()
	conn, err := r.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // its report has ended or is lost already
	stream, err := telemetryv1.NewTelemetryClient(conn).Report(ctx)
	if err != nil {
		return fmt.Errorf("cannot open the report: %w", err)
	}
	frames := &framer{registry: r.registry, worker: r.cfg.Worker.proto()}
	if err := send(stream, frames); err != nil {
		return err
	}
	connected()
	tick := time.NewTicker(r.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := send(stream, frames); err != nil {
				return err
			}
		case <-r.stopping:
			return finish(stream, frames)
		}
	}
}

func (r *reporter) dial() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///metrics-sidecar",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", r.cfg.Socket)
		}))
	if err != nil {
		return nil, fmt.Errorf("cannot use the telemetry socket %s: %w", r.cfg.Socket, err)
	}
	return conn, nil
}

type reportStream = grpc.ClientStreamingClient[telemetryv1.Frame, telemetryv1.ReportSummary]

func send(stream reportStream, frames *framer) error {
	err := stream.Send(frames.next(time.Now()))
	if errors.Is(err, io.EOF) { // gRPC tells why only to a reader
		_, err = stream.CloseAndRecv()
	}
	if err != nil {
		return fmt.Errorf("cannot send a frame: %w", err)
	}
	return nil
}

// finish sends the last frame and waits for the sidecar's word that it has it.
func finish(stream reportStream, frames *framer) error {
	if err := send(stream, frames); err != nil {
		return err
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		return fmt.Errorf("cannot end the report: %w", err)
	}
	return nil
}
