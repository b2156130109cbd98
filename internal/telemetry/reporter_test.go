package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
)

// listener is a sidecar that hands frames to the test.
type listener struct {
	telemetryv1.UnimplementedTelemetryServer
	frames chan *telemetryv1.Frame
	ended  chan error
}

func (l *listener) Report(s grpc.ClientStreamingServer[telemetryv1.Frame, telemetryv1.ReportSummary]) error {
	for {
		frame, err := s.Recv()
		if errors.Is(err, io.EOF) {
			l.ended <- nil
			return s.SendAndClose(&telemetryv1.ReportSummary{})
		}
		if err != nil {
			l.ended <- err
			return err
		}
		l.frames <- frame
	}
}

// listen starts a sidecar on path; the returned function kills it.
func listen(t *testing.T, path string) (*listener, func()) {
	t.Helper()
	_ = os.Remove(path)
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{frames: make(chan *telemetryv1.Frame, 10_000), ended: make(chan error, 100)}
	server := grpc.NewServer()
	telemetryv1.RegisterTelemetryServer(server, l)
	go func() { _ = server.Serve(socket) }()
	t.Cleanup(server.Stop)
	return l, server.Stop
}

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tel") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "t.sock")
}

func started(t *testing.T, path string) *Metrics {
	t.Helper()
	m := New(Config{Socket: path, Interval: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReporterSendsALastFrame(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	l, _ := listen(t, path)
	m := started(t, path)
	if first := <-l.frames; !first.Full {
		t.Error("the first frame of a report must be full")
	}
	m.CapInjected.Add(7)
	if err := m.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-l.ended; err != nil {
		t.Errorf("the report was cut: %v", err)
	}
	last := 0.0
	for len(l.frames) > 0 {
		for _, p := range (<-l.frames).Points {
			last = max(last, p.Value)
		}
	}
	if last != 7 {
		t.Errorf("what was counted just before the stop arrived as %v, want 7", last)
	}
}

func TestReporterComesBackWithAFullFrame(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	first, kill := listen(t, path)
	m := started(t, path)
	<-first.frames
	m.ClientGone.Add(5)
	kill()
	second, _ := listen(t, path)
	m.ClientGone.Inc()
	frame := <-second.frames
	if !frame.Full || frame.Worker == nil {
		t.Fatal("a new sidecar must be told everything")
	}
	if p := point(t, frame, "penstock_client_gone_total"); p.Value != 6 {
		t.Errorf("the new sidecar hears of %v, want all 6", p.Value)
	}
	if err := m.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestADeadSidecarHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why    string
		socket func(t *testing.T) string
	}{
		{"no socket configured: nothing runs", func(*testing.T) string { return "" }},
		{"no file", socketPath},
		{"a file without a listener, as a killed sidecar leaves it", func(t *testing.T) string {
			path := socketPath(t)
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			m := started(t, c.socket(t))
			m.ClientGone.Inc()
			if err := m.Stop(t.Context()); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
}

func TestStopGivesUpOnAStalledSidecar(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	socket, err := net.Listen("unix", path) // takes connections into its backlog and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	m := started(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stop must tell that the last frame did not leave: %v", err)
	}
}
