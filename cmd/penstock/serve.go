package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/gateway"
	"github.com/penstock-gateway/penstock/internal/lifecycle"
	"github.com/penstock-gateway/penstock/internal/sidecar"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/internal/store/sqlite"
)

type serveOptions struct {
	config      string
	host        string
	port        int
	metrics     string
	data        string
	databaseURL string
	grace       time.Duration
	verbose     bool
}

func newServe() *cobra.Command {
	o := &serveOptions{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run gateway, spend-collector and metrics in this process",
		Long: `serve runs the whole gateway in one process, with SQLite in a data folder or with
PostgreSQL. Without --config it serves the built-in mock model, and the models of
OpenAI and Anthropic where OPENAI_API_KEY or ANTHROPIC_API_KEY is set.`,
		Example: `  penstock serve
  penstock serve --config config.yaml --port 8080
  penstock serve --database-url postgres://penstock@localhost:5432/penstock`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.config, "config", "c", "", "model configuration in LiteLLM's YAML")
	f.StringVar(&o.host, "host", "127.0.0.1", "address to listen on")
	f.IntVar(&o.port, "port", 4000, "port to listen on")
	f.StringVar(&o.metrics, "metrics-listen", "127.0.0.1:9090", "address of /metrics and /rates; empty: none")
	f.StringVar(&o.data, "data", envOr("PENSTOCK_DATA", ".penstock"), "data folder (env PENSTOCK_DATA)")
	f.StringVar(&o.databaseURL, "database-url", "", "use this PostgreSQL, migrated by 'penstock migrate' (env DATABASE_URL)")
	f.DurationVar(&o.grace, "grace", 30*time.Second, "time for what is in flight to end when stopping")
	f.BoolVar(&o.verbose, "verbose", false, "log at debug level")
	return cmd
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func (o *serveOptions) run(cmd *cobra.Command) error {
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	cfg, err := o.load(log)
	if err != nil {
		return err
	}
	if err := cfg.Export(); err != nil {
		return err
	}
	folder, err := openFolder(o.data)
	if err != nil {
		return err
	}
	ownMaster := cfg.MasterKey.IsZero()
	if ownMaster {
		if cfg.MasterKey, err = folder.masterKey(); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	st, err := o.openStore(ctx, cfg, folder)
	if err != nil {
		return err
	}
	defer st.Close()
	key, err := folder.firstKey(ctx, st)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("cannot listen (--host, --port): %w", err)
	}
	group, err := o.wire(cfg, st, folder, l, log)
	if err != nil {
		return err
	}
	greet(cmd.OutOrStdout(), greeting{address: l.Addr().String(), metrics: o.metrics, key: key, folder: folder, config: cfg, ownMaster: ownMaster})
	err = group.Run(ctx)
	if err == nil {
		fmt.Fprintln(cmd.OutOrStdout(), "stopped: every record is booked")
	}
	return err
}

func (o *serveOptions) load(log *slog.Logger) (*config.Config, error) {
	var cfg *config.Config
	var warnings []config.Warning
	var err error
	if o.config == "" {
		cfg, warnings, err = config.Default(os.LookupEnv)
	} else {
		cfg, warnings, err = config.Load(config.Source{Path: o.config, Getenv: os.LookupEnv})
	}
	for _, w := range warnings {
		log.Warn(w.Text, "code", w.Code, "details", strings.Join(w.Details, ", "))
	}
	return cfg, err
}

// openStore prefers what the command line says, then the configuration and the
// environment; without a URL it is SQLite in the data folder.
func (o *serveOptions) openStore(ctx context.Context, cfg *config.Config, folder folder) (store.Store, error) {
	url := o.databaseURL
	if url == "" {
		url = cfg.DatabaseURL.Reveal()
	}
	if url == "" {
		return sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(folder.path, "penstock.db")})
	}
	st, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		return nil, err
	}
	if err := st.Ping(ctx); err != nil {
		st.Close()
		return nil, fmt.Errorf("cannot reach the database (--database-url, DATABASE_URL): %w", err)
	}
	return st, nil
}

// wire puts the three services together. They speak over the same unix sockets as
// in a pod, so that a laptop runs the code that a cluster runs.
func (o *serveOptions) wire(cfg *config.Config, st store.Store, folder folder, l net.Listener, log *slog.Logger) (*lifecycle.Group, error) {
	coll, err := collector.New(collector.Config{
		Store: st, RunDir: folder.runDir(), MasterKeySHA256: sha256.Sum256([]byte(cfg.MasterKey.Reveal())), Logger: log,
		BatchWait: 20 * time.Millisecond, // one person waits for /spend/logs, not a fleet
	})
	if err != nil {
		return nil, err
	}
	metrics := sidecar.New(sidecar.Config{
		Socket: filepath.Join(folder.runDir(), gateway.TelemetrySocket), Listen: o.metrics, Logger: log,
		State: filepath.Join(folder.path, "metrics.state"),
	})
	g := lifecycle.New(lifecycle.Config{StopTimeout: o.grace + 10*time.Second, Logger: log})
	g.Add(lifecycle.Part{Name: "metrics-sidecar", Start: metrics.Start, Stop: metrics.Stop})
	g.Add(lifecycle.Part{Name: "spend-collector", Start: coll.Start, Stop: coll.Stop})
	ctx, cancel := context.WithCancel(context.Background())
	g.Add(lifecycle.Part{
		Name: "gateway",
		Run: func() error {
			defer cancel()
			return gateway.Run(ctx, gateway.Config{
				Config: cfg, Listener: l, RunDir: folder.runDir(), PodUID: folder.podUID(), Grace: o.grace, Logger: log,
			})
		},
		Stop: func(context.Context) error { cancel(); return nil },
	})
	return g, nil
}

var errNotPrivate = errors.New("it is readable by others: chmod 600")
