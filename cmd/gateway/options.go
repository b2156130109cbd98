package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/gateway"
	"github.com/penstock-gateway/penstock/internal/supervise"
)

type options struct {
	config      string
	host        string
	port        int
	workersText string
	workers     int
	runDir      string
	podUID      string
	grace       time.Duration
	check       bool
	verbose     bool
}

// maxWorkers is far beyond the cores of a machine that a pod gets.
const maxWorkers = 256

func (o *options) addFlags(f *pflag.FlagSet) {
	hostname, _ := os.Hostname() // a name is only a default
	f.StringVarP(&o.config, "config", "c", "", "model configuration in LiteLLM's YAML (required)")
	f.StringVar(&o.host, "host", "0.0.0.0", "address to listen on")
	f.IntVar(&o.port, "port", 4000, "port to listen on")
	f.StringVar(&o.workersText, "workers", envOr("NUM_WORKERS", "1"), "worker processes that share the port; one uses all cores (env NUM_WORKERS)")
	f.StringVar(&o.runDir, "run-dir", envOr("PENSTOCK_RUN_DIR", "/run/penstock"), "folder of the pod's sockets and journals (env PENSTOCK_RUN_DIR)")
	f.StringVar(&o.podUID, "pod-uid", envOr("POD_UID", hostname), "the pod's unique id (env POD_UID)")
	f.DurationVar(&o.grace, "grace", 30*time.Second, "time for what is in flight to end when stopping")
	f.BoolVar(&o.check, "check", false, "read the configuration, say what is wrong with it, and exit")
	f.BoolVar(&o.verbose, "verbose", false, "log at debug level")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "num_workers" || name == "num-workers" {
			name = "workers"
		}
		return pflag.NormalizedName(name)
	})
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func (o *options) run(cmd *cobra.Command) error {
	// First of all, so that a stop in the middle of a start is a stop like any other.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if o.config == "" {
		return errors.New("cannot start without --config: give the path of a model configuration (see docs/reference.md)")
	}
	var err error
	if o.workers, err = strconv.Atoi(o.workersText); err != nil || o.workers < 1 || o.workers > maxWorkers {
		return fmt.Errorf("cannot start --workers %s (env NUM_WORKERS): a number from 1 to %d", o.workersText, maxWorkers)
	}
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	cfg, warnings, err := config.Load(config.Source{Path: o.config, Getenv: os.LookupEnv})
	index, supervised := supervise.WorkerIndex()
	if !supervised {
		for _, w := range warnings {
			log.Warn(w.Text, "code", w.Code, "details", strings.Join(w.Details, ", "))
		}
	}
	if err != nil {
		return err
	}
	if o.check {
		fmt.Fprintf(cmd.OutOrStdout(), "%s is good: deployments %d, checksum %s\n", o.config, len(cfg.Deployments), cfg.Checksum)
		return nil
	}
	if err := cfg.Export(); err != nil {
		return err
	}
	if o.workers > 1 && !supervised {
		return o.superviseWorkers(ctx, log)
	}
	return o.serve(ctx, cfg, index, log.With("worker", index))
}

func (o *options) address() string { return net.JoinHostPort(o.host, strconv.Itoa(o.port)) }

// superviseWorkers holds the listening socket and keeps the workers alive.
func (o *options) superviseWorkers(ctx context.Context, log *slog.Logger) error {
	socket, err := supervise.Listener(o.address())
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program to start workers: %w", err)
	}
	return supervise.Run(ctx, supervise.Config{
		Command: append([]string{self}, os.Args[1:]...), N: o.workers, Files: []*os.File{socket},
		Grace: o.grace + 5*time.Second, Logger: log,
	})
}

func (o *options) serve(ctx context.Context, cfg *config.Config, index int, log *slog.Logger) error {
	listen := func() (net.Listener, error) { return net.Listen("tcp", o.address()) }
	if _, supervised := supervise.WorkerIndex(); supervised {
		listen = func() (net.Listener, error) { return supervise.InheritedListener(0) }
	}
	l, err := listen()
	if err != nil {
		return fmt.Errorf("cannot listen on %s (--host, --port): %w", o.address(), err)
	}
	log.Info("gateway listens", "address", l.Addr().String(), "deployments", len(cfg.Deployments), "config", cfg.Checksum)
	err = gateway.Run(ctx, gateway.Config{
		Config: cfg, Listener: l, RunDir: o.runDir, PodUID: o.podUID, Index: index, Workers: o.workers, Grace: o.grace, Logger: log,
	})
	log.Info("gateway stopped")
	return err
}
