// Package supervise keeps a program running: it restarts it in milliseconds,
// passes listening sockets down, and stops it with its own process.
//
// A listening socket that the supervisor holds stays open while the program is
// away: connections queue in the kernel and are served after the restart. The
// program may run as several workers that share the socket, and its connections
// about evenly.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// What a child is told in its environment.
const (
	envIndex     = "PENSTOCK_WORKER_INDEX"
	envListeners = "PENSTOCK_LISTENERS"
	envWorkers   = "PENSTOCK_WORKERS"
)

// Config of Run.
type Config struct {
	// Command is the program and its arguments.
	Command []string
	// N is the number of workers. Zero means 1.
	N int
	// Files are passed to every worker, for InheritedListener. They stay open.
	Files []*os.File
	// Env is added to the supervisor's own environment, as "NAME=value".
	Env []string
	// Grace is how long workers may take to end after the stop signal before
	// they are killed. Zero means 30 s.
	Grace time.Duration
	// Logger is told of every end and restart. Nil means slog.Default.
	Logger *slog.Logger
}

func (cfg Config) withDefaults() (Config, error) {
	switch {
	case len(cfg.Command) == 0 || cfg.Command[0] == "":
		return cfg, errors.New("cannot supervise without a Command")
	case cfg.N < 0:
		return cfg, fmt.Errorf("cannot supervise N = %d workers", cfg.N)
	case cfg.Grace < 0:
		return cfg, fmt.Errorf("cannot use Grace %s: it is negative", cfg.Grace)
	}
	if cfg.N == 0 {
		cfg.N = 1
	}
	if cfg.Grace == 0 {
		cfg.Grace = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return cfg, nil
}

// Run starts the workers and restarts each one that ends, until ctx is done or
// the process gets SIGTERM or SIGINT. Then it passes the stop on (SIGTERM for
// ctx) and returns when all workers have ended: nil when each of them ended
// with status 0 or by that signal, else the first error. SIGHUP is passed on
// and changes nothing else. A program that cannot be started at all is an
// error at once. Workers cannot outlive this process, even when it is killed.
//
// Run takes over SIGTERM, SIGINT and SIGHUP of the process while it runs.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	files, err := plain(cfg.Files)
	defer closeAll(files)
	if err != nil {
		return err
	}
	cfg.Files = files
	tally, err := newTally(len(files), cfg.N)
	if err != nil {
		return err
	}
	defer tally.close()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)

	workers := make([]*worker, cfg.N)
	running, ctx := errgroup.WithContext(ctx)
	for i := range workers {
		workers[i] = &worker{cfg: cfg, index: i, tally: tally, stop: make(chan struct{})}
		running.Go(workers[i].run)
	}
	ended := make(chan error, 1)
	go func() { ended <- running.Wait() }()
	return forward(ctx, cfg, workers, signals, ended)
}

// forward passes signals and the end of ctx on until all workers have ended.
func forward(ctx context.Context, cfg Config, workers []*worker, signals <-chan os.Signal, ended <-chan error) error {
	var deadline <-chan time.Time
	pass := func(sig os.Signal) {
		for _, w := range workers {
			w.signal(sig)
		}
		if sig != syscall.SIGHUP && deadline == nil {
			deadline = time.After(cfg.Grace)
		}
	}
	done := ctx.Done()
	for {
		select {
		case <-done:
			done = nil
			pass(syscall.SIGTERM)
		case sig := <-signals:
			pass(sig)
		case <-deadline:
			cfg.Logger.Error("workers did not end within Grace and are killed", "grace", cfg.Grace.String())
			for _, w := range workers {
				w.signal(syscall.SIGKILL)
			}
		case err := <-ended:
			return err
		}
	}
}

// WorkerIndex gives this process's index below N. It is false when the process
// was not started by a supervisor.
func WorkerIndex() (int, bool) {
	i, err := strconv.Atoi(os.Getenv(envIndex))
	return i, err == nil && i >= 0
}
