package main

import (
	"cmp"
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

	"github.com/penstock-gateway/penstock/internal/config"
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
OpenAI and Anthropic where OPENAI_API_KEY or ANTHROPIC_API_KEY is set.

The master key, for /key/* and /spend/*, is general_settings.master_key of --config,
else LITELLM_MASTER_KEY (or PENSTOCK_MASTER_KEY) of the environment, else one that is
made at the first start and kept in the data folder.`,
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
	f.StringVar(&o.metrics, "metrics-listen", "127.0.0.1:9090", "address of /metrics and /rates; '': none")
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
	log := o.logger(cmd)
	cfg, err := o.load(log)
	if err != nil {
		return err
	}
	folder, err := openFolder(o.data)
	if err != nil {
		return err
	}
	lock, err := folder.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	master := findMasterKey(cfg, folder, os.LookupEnv)
	if err := cfg.Export(); err != nil {
		return err
	}
	if cfg.MasterKey.IsZero() {
		if cfg.MasterKey, err = folder.masterKey(); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	db, err := openDatabase(ctx, cmp.Or(o.databaseURL, cfg.DatabaseURL.Reveal()), folder)
	if err != nil {
		return err
	}
	defer db.Close()
	key, err := folder.firstKey(ctx, db)
	if err != nil {
		return err
	}
	l, err := o.listen()
	if err != nil {
		return err
	}
	defer l.Close()
	s := &server{options: o, config: cfg, folder: folder, db: db, listener: l, log: log, out: cmd.OutOrStdout()}
	s.greeting = greeting{address: local(l.Addr()), folder: folder, config: cfg, master: master, key: key}
	return s.run(ctx, stop)
}

func (o *serveOptions) logger(cmd *cobra.Command) *slog.Logger {
	level := slog.LevelWarn
	if o.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

func (o *serveOptions) listen() (net.Listener, error) {
	address := net.JoinHostPort(o.host, strconv.Itoa(o.port))
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("cannot listen on %s: it is taken; does another Penstock run? choose --port", address)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen (--host, --port): %w", err)
	}
	return l, nil
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
