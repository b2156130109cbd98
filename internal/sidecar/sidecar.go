// Package sidecar merges the telemetry frames of all workers of a pod and serves the
// sums: as Prometheus text, and as rates for scaling. It never asks a worker anything.
package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	telemetryv1 "github.com/penstock-gateway/penstock/api/telemetry/v1"
	"github.com/penstock-gateway/penstock/internal/unixsocket"
)

// Config says where frames come in and sums go out.
type Config struct {
	Socket string // path of telemetry.sock; the folder must exist
	Listen string // address of the HTTP endpoint, e.g. ":9090"; empty: only Handler
	// State is a file that keeps the counts of workers that are gone over a restart of
	// the sidecar; empty: those counts live as long as the process.
	State string
	// Settle is how long a new sidecar waits for its workers before it serves their
	// sums: a scrape in between would see totals that went down. Default 2 s.
	Settle time.Duration
	Tick   time.Duration // between samples of the rates, default 1 s
	Logger *slog.Logger  // default slog.Default()
}

// Server is one sidecar. Its methods may be called concurrently.
type Server struct {
	cfg     Config
	merger  *merger
	rates   *rates
	state   *stateFile
	handler http.Handler

	rpc      *grpc.Server
	http     *http.Server
	address  net.Addr
	stopTick chan struct{}
	running  sync.WaitGroup
}

// New builds a sidecar; it opens nothing yet.
func New(cfg Config) *Server {
	if cfg.Settle <= 0 {
		cfg.Settle = 2 * time.Second
	}
	if cfg.Tick <= 0 {
		cfg.Tick = time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	s := &Server{cfg: cfg, merger: newMerger(), stopTick: make(chan struct{})}
	s.rates = newRates(cfg.Settle, cfg.Tick)
	s.state = &stateFile{path: cfg.State}
	s.handler = s.routes()
	return s
}

// Handler serves /metrics, /rates and /health; it answers from New on.
func (s *Server) Handler() http.Handler { return s.handler }

// Address is where HTTP is served, after Start; nil without Config.Listen.
func (s *Server) Address() net.Addr { return s.address }

// Start opens the socket and the HTTP endpoint. The counts of a former life that cannot
// be read are logged and left behind: metrics are no reason not to start. After an
// error nothing runs, and a sidecar that serves already is not disturbed.
func (s *Server) Start(context.Context) error {
	if err := s.state.load(s.merger); err != nil {
		s.cfg.Logger.Warn("cannot take over the counts of workers that are gone", slog.Any("error", err))
	}
	web, err := s.listenWeb() // before the socket: whoever fails here has touched nothing of another sidecar
	if err != nil {
		return err
	}
	listener, err := unixsocket.Listen(s.cfg.Socket)
	if err != nil {
		if web != nil {
			web.Close()
		}
		return fmt.Errorf("cannot serve in --run-dir: %w", err)
	}
	if web != nil {
		s.address = web.Addr()
		s.http = &http.Server{Handler: s.handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
		s.running.Go(func() { s.served("HTTP", s.http.Serve(web)) })
	}
	s.rpc = grpc.NewServer(grpc.MaxRecvMsgSize(maxFrameBytes), grpc.MaxConcurrentStreams(maxWorkers),
		grpc.WaitForHandlers(true)) // the state is kept after each report has ended
	telemetryv1.RegisterTelemetryServer(s.rpc, &reports{merger: s.merger})
	s.rates.begin(time.Now(), s.merger)
	s.running.Go(func() { s.served("gRPC", s.rpc.Serve(listener)) })
	s.running.Go(s.tick)
	return nil
}

// listenWeb binds --listen; nil without one.
func (s *Server) listenWeb() (net.Listener, error) {
	if s.cfg.Listen == "" {
		return nil, nil
	}
	web, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on --listen %s: %w", s.cfg.Listen, err)
	}
	return web, nil
}

// Stop ends the reports, which workers take up again with the next sidecar, and keeps
// the counts of those that are gone. Call it once, after Start.
func (s *Server) Stop(ctx context.Context) error {
	s.rpc.Stop() // a graceful stop would wait for workers, which never end their reports
	close(s.stopTick)
	var failed error
	if s.http != nil {
		if err := s.http.Shutdown(ctx); err != nil {
			failed = errors.Join(fmt.Errorf("cannot end the scrapes: %w", err), s.http.Close())
		}
	}
	s.running.Wait()
	return errors.Join(failed, s.state.save(s.merger))
}

func (s *Server) served(what string, err error) {
	if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
		s.cfg.Logger.Error("cannot go on serving "+what, slog.Any("error", err))
	}
}

// tick samples the rates and keeps the state file current, off every request's way.
func (s *Server) tick() {
	ticker := time.NewTicker(s.cfg.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-s.stopTick:
			return
		case now := <-ticker.C:
			s.rates.sample(now, s.merger)
			if err := s.state.saveIfChanged(s.merger); err != nil {
				s.cfg.Logger.Warn("cannot keep the counts of workers that are gone", slog.Any("error", err))
			}
		}
	}
}
