// Package stack starts the pod as it is in production, for tests and measurements:
// gateway, spend-collector, metrics-sidecar and PgBouncer as processes of their own, in
// front of a real PostgreSQL and of a provider that keeps its own ledger.
package stack

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/test/pg"
)

const (
	database = "penstock"
	// startTimeout bounds how long the pod may take until it answers. A machine that
	// runs other tests at the same time is slow.
	startTimeout = 60 * time.Second
	stopGrace    = 40 * time.Second
)

// Process is one of the stack's programs.
type Process string

// The processes. Worker is one of the gateway's: the gateway itself when it has one.
const (
	Gateway      Process = "gateway"
	Worker       Process = "worker"
	Collector    Process = "spend-collector"
	Sidecar      Process = "metrics-sidecar"
	FakeUpstream Process = "fake-upstream"
	PgBouncer    Process = "pgbouncer"
	Postgres     Process = "postgres"
)

// Stack is a running pod. Its methods may be called from several goroutines; Stop
// once, at the end.
type Stack struct {
	cfg     Config
	dir     string
	client  *http.Client
	shared  *shared
	bouncer *pg.Bouncer
	podUID  string
	port    int
	metrics int

	mu        sync.Mutex
	processes map[Process]*process
}

// Start starts everything and returns when a request can be served. A program that
// dies is started again until Stop; what failed is in the error with its log's end.
func Start(ctx context.Context, cfg Config) (*Stack, error) {
	// The path of a unix socket has at most 107 bytes, so that TMPDIR should be short.
	dir, err := os.MkdirTemp("", "psk")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder (TMPDIR): %w", err)
	}
	s := &Stack{
		cfg: cfg.withDefaults(), dir: dir, processes: map[Process]*process{},
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, step := range []func(context.Context) error{s.startShared, s.startBouncer, s.startPod, s.ready} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("%w\n%s", err, s.Logs()), s.Stop())
		}
	}
	return s, nil
}

// startShared starts what all pods share, or takes it from the other pod.
func (s *Stack) startShared(ctx context.Context) error {
	if other := s.cfg.Beside; other != nil {
		s.shared = other.shared
		return nil
	}
	s.shared = &shared{}
	if err := s.startDatabase(ctx); err != nil {
		return err
	}
	return s.startFake(ctx)
}

func (s *Stack) startDatabase(ctx context.Context) error {
	server, err := pg.Start(ctx, pg.Config{})
	if err != nil {
		return err
	}
	s.shared.servers = []*pg.Server{server}
	direct, err := server.CreateDatabase(ctx, database)
	if err != nil {
		return err
	}
	if _, err := postgres.Migrate(ctx, direct, postgres.Options{}); err != nil {
		return err
	}
	if s.cfg.Relayed {
		if s.shared.relay, err = newRelay(server.Address()); err != nil {
			return err
		}
	}
	return s.shared.use(ctx, server)
}

func (s *Stack) startBouncer(ctx context.Context) (err error) {
	cfg := pg.BouncerConfig{Server: s.postgres()}
	if r := s.shared.relay; r != nil {
		cfg.ServerURL = "postgres://postgres:postgres@" + r.address() + "/postgres?sslmode=disable"
	}
	s.bouncer, err = pg.StartBouncer(ctx, cfg)
	return err
}

func (s *Stack) startFake(ctx context.Context) error {
	if err := s.spawn(FakeUpstream, program{args: []string{"--listen", "127.0.0.1:0"}}); err != nil {
		return err
	}
	return poll(ctx, func() error {
		text, err := os.ReadFile(s.process(FakeUpstream).log)
		if err != nil {
			return err
		}
		line, _, whole := strings.Cut(string(text), "\n")
		_, url, found := strings.Cut(line, "listening on ")
		if !whole || !found {
			return errors.New("fake-upstream has not said yet where it listens")
		}
		s.shared.fakeURL = url
		return nil
	})
}

func (s *Stack) startPod(context.Context) error {
	var err error
	if s.port, err = pg.FreePort(); err != nil {
		return err
	}
	if s.metrics, err = pg.FreePort(); err != nil {
		return err
	}
	path := filepath.Join(s.dir, "config.yaml")
	if err := os.WriteFile(path, []byte(s.cfg.yaml(s.shared.fakeURL)), 0o600); err != nil {
		return fmt.Errorf("cannot write the configuration: %w", err)
	}
	var uid [4]byte
	_, _ = rand.Read(uid[:]) // never fails
	s.podUID = "pod-" + hex.EncodeToString(uid[:])
	env := []string{"LITELLM_MASTER_KEY=" + masterKey, "PENSTOCK_RUN_DIR=" + s.RunDir(), "POD_UID=" + s.podUID}
	return errors.Join(
		s.spawn(Collector, program{env: append(env, "DATABASE_URL="+s.bouncer.URL(database)), args: s.cfg.CollectorArgs}),
		s.spawn(Sidecar, program{env: env, args: []string{"--listen", "127.0.0.1:" + strconv.Itoa(s.metrics)}}),
		s.spawn(Gateway, program{env: append(env, s.cfg.GatewayEnv...), cpus: s.cfg.GatewayCPUs, args: []string{
			"--config", path, "--host", "127.0.0.1", "--port", strconv.Itoa(s.port), "--workers", strconv.Itoa(s.cfg.Workers),
		}}),
	)
}

// RunDir is the folder of the pod's sockets and journals.
func (s *Stack) RunDir() string { return filepath.Join(s.dir, "run") }

// PodUID is the pod's name in the ledger.
func (s *Stack) PodUID() string { return s.podUID }

// Relay is between PgBouncer and PostgreSQL; nil without Config.Relayed.
func (s *Stack) Relay() *Relay { return s.shared.relay }

// ready waits until keys can be made and the gateway admits.
func (s *Stack) ready(ctx context.Context) error {
	return poll(ctx, func() error {
		if _, err := s.fetch(ctx, "http://"+s.Address()+"/health/readiness"); err != nil {
			return err
		}
		_, err := s.NewKey(ctx, KeyOptions{})
		return err
	})
}

// spawn completes a program with what all have in common and starts it.
func (s *Stack) spawn(name Process, p program) error {
	p.name, p.path = string(name), filepath.Join(s.cfg.BinDir, string(name))
	p.env = append([]string{"PATH=" + os.Getenv("PATH"), "GORACE=halt_on_error=1"}, p.env...)
	started, err := spawn(p, s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.processes[name] = started
	s.mu.Unlock()
	s.cfg.Logger.Debug("started", "program", p.name, "pid", started.pid())
	return nil
}

// process is nil for one that was not started.
func (s *Stack) process(name Process) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[name]
}

// Address is the gateway's host and port.
func (s *Stack) Address() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// AdminKey is the master key.
func (s *Stack) AdminKey() string { return masterKey }

// FakeURL is the fake upstream's base, without /v1.
func (s *Stack) FakeURL() string { return s.shared.fakeURL }

// Kill9 ends a program with kill -9, waiting for one that is just being started
// again. All but PgBouncer and PostgreSQL are started again by themselves; those two
// by Restart. Of several workers it takes the one that has worked most: connections are
// not spread evenly, and killing an idle one would prove nothing.
func (s *Stack) Kill9(ctx context.Context, name Process) error {
	switch name {
	case PgBouncer:
		return s.bouncer.Kill()
	case Postgres:
		return s.postgres().Kill()
	}
	_, err := s.Signal(ctx, name, syscall.SIGKILL)
	return err
}

// Signal sends a signal to a program, of several workers to the one that has worked
// most, and tells which process got it.
func (s *Stack) Signal(ctx context.Context, name Process, sig syscall.Signal) (pid int, err error) {
	err = poll(ctx, func() error {
		pids, err := s.pids(name)
		if err != nil {
			return err
		}
		pid = pids[0]
		if err := syscall.Kill(pid, sig); err != nil {
			return fmt.Errorf("cannot send %s to %s: %w", sig, name, err)
		}
		return nil
	})
	return pid, err
}

// Restart starts PgBouncer or PostgreSQL again, on the same port.
func (s *Stack) Restart(ctx context.Context, name Process) error {
	switch name {
	case PgBouncer:
		return s.bouncer.Restart(ctx)
	case Postgres:
		return s.postgres().Restart(ctx)
	}
	return fmt.Errorf("cannot restart %s: it is started again by itself", name)
}

// pids are the processes behind a name: at least one, the busiest worker first.
func (s *Stack) pids(name Process) ([]int, error) {
	switch name {
	case PgBouncer:
		return []int{s.bouncer.PID()}, nil
	case Postgres:
		return []int{s.postgres().PID()}, nil
	case Worker:
		if s.cfg.Workers == 1 {
			return s.pids(Gateway)
		}
		workers := children(s.process(Gateway).pid())
		if len(workers) == 0 {
			return nil, errors.New("cannot find a worker: the gateway has none right now")
		}
		slices.SortFunc(workers, func(a, b int) int { return cmp.Compare(UsageOf(b).CPU, UsageOf(a).CPU) })
		return workers, nil
	}
	p := s.process(name)
	if p == nil {
		return nil, fmt.Errorf("cannot find %s: it was not started", name)
	}
	return []int{p.pid()}, nil
}

// Usage is what a program and its children have taken since it was started.
func (s *Stack) Usage(name Process) (Usage, error) {
	pids, err := s.pids(name)
	if err != nil {
		return Usage{}, err
	}
	var sum Usage
	for _, pid := range pids {
		u := UsageOf(pid)
		sum.CPU, sum.RSS = sum.CPU+u.CPU, sum.RSS+u.RSS
	}
	return sum, nil
}

// Restarts is how often a program was started again.
func (s *Stack) Restarts(name Process) int {
	p := s.process(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// Logs are the ends of all logs, for a failure's report.
func (s *Stack) Logs() string {
	var b strings.Builder
	for _, name := range []Process{Gateway, Collector, Sidecar, FakeUpstream} {
		if p := s.process(name); p != nil {
			fmt.Fprintf(&b, "--- %s\n%s", name, p.tail())
		}
	}
	return b.String()
}

// Stop ends everything in a pod's order and deletes the folder. It says which program
// did not end well, and which one has panicked or raced at any time.
func (s *Stack) Stop() error {
	var errs []error
	for _, name := range []Process{Gateway, Sidecar, Collector, FakeUpstream} {
		p := s.process(name)
		if p == nil {
			continue
		}
		if err := p.stop(stopGrace); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s", err, p.tail()))
		}
		errs = append(errs, p.defect())
	}
	if s.bouncer != nil {
		errs = append(errs, s.bouncer.Stop())
	}
	if s.cfg.Beside == nil && s.shared != nil {
		errs = append(errs, s.shared.stop())
	}
	s.client.CloseIdleConnections()
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// soon is how often a state is looked at that changes within milliseconds.
const soon = 20 * time.Millisecond

// poll calls check until it succeeds or ctx ends.
func poll(ctx context.Context, check func() error) error { return pollEvery(ctx, soon, check) }

func pollEvery(ctx context.Context, every time.Duration, check func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait any longer: %w", err)
		case <-tick.C:
		}
	}
}
