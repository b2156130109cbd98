package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/gateway"
	"github.com/penstock-gateway/penstock/internal/lifecycle"
	"github.com/penstock-gateway/penstock/internal/sidecar"
)

// server is one run of the all-in-one.
type server struct {
	options  *serveOptions
	config   *config.Config
	folder   folder
	db       database
	listener net.Listener
	greeting greeting
	log      *slog.Logger
	out      io.Writer

	metrics *sidecar.Server
	serving context.Context // ends when the gateway has to, or has
}

// run serves until ctx ends. untrap gives signals their usual effect back, so that a
// second Ctrl-C ends the process at once: the journals keep what is not booked yet.
func (s *server) run(ctx context.Context, untrap func()) error {
	group, err := s.wire()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, untrap)()
	group.Add(lifecycle.Part{
		Name:  "greeting",
		Start: func(ctx context.Context) error { s.greet(ctx); return nil },
		Stop: func(context.Context) error { // the first to stop
			untrap() // before the promise below is made
			if ctx.Err() != nil {
				fmt.Fprintf(s.out, "stopping: %s, at most %v; Ctrl-C again to stop now\n", s.inFlight(), s.options.grace)
			}
			return nil
		},
	})
	if err := group.Run(ctx); err != nil {
		return err
	}
	fmt.Fprintln(s.out, "stopped: every record is booked")
	return nil
}

// wire puts the three services together. They speak over the same unix sockets as
// in a pod, so that a laptop runs the code that a cluster runs.
func (s *server) wire() (*lifecycle.Group, error) {
	o, runDir := s.options, s.folder.runDir()
	coll, err := collector.New(collector.Config{
		Store: s.db, RunDir: runDir, MasterKeySHA256: sha256.Sum256([]byte(s.config.MasterKey.Reveal())), Logger: s.log,
		BatchWait: 20 * time.Millisecond, // one person waits for /spend/logs, not a fleet
	})
	if err != nil {
		return nil, err
	}
	s.metrics = sidecar.New(sidecar.Config{
		Socket: filepath.Join(runDir, gateway.TelemetrySocket), Listen: o.metrics, Logger: s.log, State: s.folder.file("metrics.state"),
	})
	g := lifecycle.New(lifecycle.Config{StopTimeout: o.grace + 10*time.Second, Logger: s.log})
	g.Add(lifecycle.Part{Name: "metrics-sidecar", Start: s.startMetrics, Stop: s.metrics.Stop})
	g.Add(lifecycle.Part{Name: "spend-collector", Start: coll.Start, Stop: coll.Stop})
	var end context.CancelFunc
	s.serving, end = context.WithCancel(context.Background())
	g.Add(lifecycle.Part{
		Name: "gateway",
		Run: func() error {
			defer end()
			return gateway.Run(s.serving, gateway.Config{
				Config: s.config, Listener: s.listener, RunDir: runDir, PodUID: s.folder.podUID(), Grace: o.grace, Logger: s.log,
			})
		},
		Stop: func(context.Context) error { end(); return nil },
	})
	return g, nil
}

// startMetrics names the flag of this program where the address is at fault.
func (s *server) startMetrics(ctx context.Context) error {
	err := s.metrics.Start(ctx)
	var op *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is taken; does another Penstock run? choose --metrics-listen, or '' for none", s.options.metrics)
	case errors.As(err, &op) && op.Net == "tcp":
		return fmt.Errorf("cannot listen (--metrics-listen): %w", op)
	}
	return err
}

// greet waits until the gateway answers and then tells a newcomer what to do next.
// Nothing is said of a start that failed.
func (s *server) greet(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.serving, cancel)()
	if !alive(ctx, s.greeting.address) {
		return
	}
	if a := s.metrics.Address(); a != nil {
		s.greeting.metrics = local(a)
	}
	s.greeting.print(s.out)
}

// alive asks the gateway over its own port; the answer waits until it accepts.
func alive(ctx context.Context, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/health/liveness", nil)
	if err != nil {
		return false
	}
	direct := &http.Transport{DisableKeepAlives: true} // no proxy
	resp, err := direct.RoundTrip(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// inFlight tells how many requests are in flight, as the sidecar last heard it.
func (s *server) inFlight() string {
	req, err := http.NewRequest(http.MethodGet, "/rates", nil)
	if err != nil {
		return unknownInFlight
	}
	p := page{header: http.Header{}}
	s.metrics.Handler().ServeHTTP(&p, req)
	var rates sidecar.Rates
	if p.status != http.StatusOK || json.Unmarshal(p.body.Bytes(), &rates) != nil {
		return unknownInFlight
	}
	return count(int(rates.InFlightRequests), "request") + " in flight"
}

// unknownInFlight is said in the first seconds, before the sidecar knows.
const unknownInFlight = "what is in flight may end"

// page keeps the answer of a handler in this process.
type page struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (p *page) Header() http.Header         { return p.header }
func (p *page) WriteHeader(status int)      { p.status = status }
func (p *page) Write(b []byte) (int, error) { return p.body.Write(b) }
