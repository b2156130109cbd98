package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock-gateway/penstock/internal/collector"
	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/store/postgres"
)

// Bounds of --ttl: a worker renews itself several times in it, and money of a dead
// one waits for it.
const (
	minTTL = 3 * time.Second
	maxTTL = time.Hour
)

// maxKeepDays is a hundred years.
const maxKeepDays = 36_500

// telemetryGoodbye bounds the wait for a metrics-sidecar at the end.
const telemetryGoodbye = time.Second

type options struct {
	getenv func(string) (string, bool)

	config      string
	runDir      string
	databaseURL string
	ttl         time.Duration
	poolSize    int32
	keepDays    int
	grace       time.Duration
	check       bool
	verbose     bool
}

func (o *options) addFlags(f *pflag.FlagSet) {
	runDir := "/run/penstock"
	if dir, ok := o.getenv("PENSTOCK_RUN_DIR"); ok && dir != "" {
		runDir = dir
	}
	f.StringVarP(&o.config, "config", "c", "", "LiteLLM's YAML, for general_settings.master_key and database_url; optional")
	f.StringVar(&o.runDir, "run-dir", runDir, "folder of the pod's sockets and journals (env PENSTOCK_RUN_DIR)")
	// The environment is read later: a default would stand in the help with its password.
	f.StringVar(&o.databaseURL, "database-url", "", "PostgreSQL, of PgBouncer or direct (env DATABASE_URL, which keeps it out of the process list)")
	f.DurationVar(&o.ttl, "ttl", collector.DefaultTTL, "how long workers go on without the database")
	f.IntVar(&o.keepDays, "keep-days", 0, "drop records that are older than so many days; 0: keep all; sums and budgets stay")
	f.Int32Var(&o.poolSize, "pool-size", 3, "database connections: one for commits, one for administrators, the rest for requests")
	f.DurationVar(&o.grace, "grace", 30*time.Second, "time to commit what has arrived when stopping")
	f.BoolVar(&o.check, "check", false, "say whether the settings are good, and exit")
	f.BoolVar(&o.verbose, "verbose", false, "log at debug level")
}

// secrets are the two settings that are never printed.
type secrets struct {
	databaseURL config.Secret
	masterKey   config.Secret
}

// errBadURL has no reason, because that may repeat parts of the URL.
var errBadURL = errors.New("cannot read the database URL (--database-url, DATABASE_URL): want postgres://user@host:port/database")

func (o *options) run(cmd *cobra.Command) error {
	log := o.logger(cmd)
	found, err := o.secrets(log)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	st, err := postgres.Open(ctx, postgres.Config{URL: found.databaseURL.Reveal(), MaxConns: o.poolSize, KeepDays: o.keepDays})
	if err != nil {
		return errBadURL
	}
	defer st.Close()
	pool, err := o.newPools(found.databaseURL.Reveal(), log)
	if err != nil {
		return errBadURL
	}
	defer pool.console.Close()
	c, err := collector.New(collector.Config{
		Store:           st,
		Pools:           pool.console.Pools,
		PoolMetrics:     pool.metrics,
		RunDir:          o.runDir,
		MasterKeySHA256: sha256.Sum256([]byte(found.masterKey.Reveal())),
		TTL:             o.ttl,
		Logger:          log,
	})
	if err != nil {
		return err
	}
	if o.check {
		fmt.Fprintln(cmd.OutOrStdout(), "the settings are good")
		return nil
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	_ = pool.metrics.Start(ctx) // it never fails
	<-ctx.Done()
	stop() // a second signal ends the process at once
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.grace)
	defer cancel()
	err = c.Stop(last)
	goodbye, cancelGoodbye := context.WithTimeout(context.WithoutCancel(ctx), telemetryGoodbye)
	defer cancelGoodbye()
	_ = pool.metrics.Stop(goodbye) // a sidecar that is away misses the last figures
	return err
}

func (o *options) logger(cmd *cobra.Command) *slog.Logger {
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

// secrets checks the settings and finds the secrets: the flag first, then the
// configuration file, then the environment.
func (o *options) secrets(log *slog.Logger) (secrets, error) {
	switch {
	case o.ttl < minTTL || o.ttl > maxTTL:
		return secrets{}, fmt.Errorf("cannot use --ttl %v: want %v to %v", o.ttl, minTTL, maxTTL)
	case o.keepDays < 0 || o.keepDays > maxKeepDays:
		return secrets{}, fmt.Errorf("cannot use --keep-days %d: want 0 (keep all) to %d", o.keepDays, maxKeepDays)
	case o.poolSize < 1 || o.poolSize > 100:
		return secrets{}, fmt.Errorf("cannot use --pool-size %d: want 1 to 100", o.poolSize)
	case o.grace < 0:
		return secrets{}, fmt.Errorf("cannot use --grace %v: want 0 or more", o.grace)
	}
	found, err := o.fromConfig(log)
	if err != nil {
		return secrets{}, err
	}
	if o.databaseURL != "" {
		found.databaseURL = config.NewSecret(o.databaseURL)
	}
	switch {
	case found.databaseURL.IsZero():
		return secrets{}, errors.New("cannot start without a database: set DATABASE_URL or --database-url")
	case found.masterKey.IsZero():
		return secrets{}, errors.New("cannot guard the admin API without a master key: set LITELLM_MASTER_KEY")
	}
	return found, nil
}

func (o *options) fromConfig(log *slog.Logger) (secrets, error) {
	if o.config == "" {
		return secrets{
			databaseURL: o.firstEnv("DATABASE_URL"),
			masterKey:   o.firstEnv("PENSTOCK_MASTER_KEY", "LITELLM_MASTER_KEY"),
		}, nil
	}
	cfg, warnings, err := config.Load(config.Source{Path: o.config, Getenv: o.getenv})
	for _, w := range warnings {
		// The gateway warns of the same file; here they are only of use to look closer.
		log.Debug(w.Text, "code", w.Code, "details", strings.Join(w.Details, ", "))
	}
	if err != nil {
		return secrets{}, err
	}
	return secrets{databaseURL: cfg.DatabaseURL, masterKey: cfg.MasterKey}, nil
}

// firstEnv is the first of the variables that has a value.
func (o *options) firstEnv(names ...string) config.Secret {
	for _, name := range names {
		if v, _ := o.getenv(name); v != "" {
			return config.NewSecret(v)
		}
	}
	return config.Secret{}
}
