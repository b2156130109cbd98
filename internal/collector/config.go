package collector

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/telemetry"
)

// DefaultTTL is how long a worker may go on without the database.
const DefaultTTL = time.Minute

// Names inside the run directory.
const (
	ledgerSocket = "ledger.sock"
	adminSocket  = "admin.sock"
	journalRoot  = "journal"
)

// Config is what a collector needs. Zero values of the tuning fields mean their
// defaults.
type Config struct {
	// Store is the database. The caller opens it, and closes it after Stop.
	Store store.Store
	// RunDir holds the two sockets and the journals of the pod's workers.
	RunDir string
	// MasterKeySHA256 guards the admin API. The key itself is not kept.
	MasterKeySHA256 [32]byte
	// Pools reads the figures of the PgBouncer before the database; nil: there is none to
	// ask. It is called from one goroutine.
	Pools func(context.Context) (store.Pools, error)
	// PoolMetrics takes the figures. The caller starts and stops it.
	PoolMetrics *telemetry.Pool
	// Logger takes everything worth a line; it never gets a secret. Default: slog.Default.
	Logger *slog.Logger

	TTL       time.Duration // a holder's life without a heartbeat; default 60 s
	BatchRows int           // a commit starts at this many waiting rows; default 5,000
	BatchWait time.Duration // … or when the first has waited this long; default 200 ms
	PollEvery time.Duration // key changes; default 300 ms, jittered
	ScanEvery time.Duration // folders of dead workers; default 1 s
	GapWait   time.Duration // a gap in the records that lasts so long was made by a lost commit; default 10 s
	// LimitWindow is what rpm and tpm are counted over; default one minute.
	LimitWindow time.Duration
	StopWait    time.Duration // a stop's wait for a database that takes nothing; default 3 s
}

func (c *Config) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("cannot build a collector without a store")
	case c.RunDir == "":
		return errors.New("cannot build a collector without a run directory (--run-dir)")
	case (c.Pools == nil) != (c.PoolMetrics == nil):
		return errors.New("cannot report PgBouncer's figures without both a reader and a place for them")
	case c.MasterKeySHA256 == [32]byte{}:
		return errors.New("cannot guard the admin API without a master key (LITELLM_MASTER_KEY)")
	case c.TTL < 0, c.BatchRows < 0, c.BatchWait < 0, c.PollEvery < 0, c.ScanEvery < 0, c.GapWait < 0, c.StopWait < 0, c.LimitWindow < 0:
		return errors.New("cannot build a collector with a negative interval or size")
	}
	return nil
}

func (c *Config) setDefaults() {
	setDefault(&c.TTL, DefaultTTL)
	setDefault(&c.BatchRows, 5000)
	setDefault(&c.BatchWait, 200*time.Millisecond)
	setDefault(&c.PollEvery, 300*time.Millisecond)
	setDefault(&c.ScanEvery, time.Second)
	setDefault(&c.GapWait, 10*time.Second)
	setDefault(&c.StopWait, 3*time.Second)
	setDefault(&c.LimitWindow, DefaultLimitWindow)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// reapMargin is how long after its expiry a holder is left alone: a worker stops
// holding at a margin before the expiry, and clocks and messages need some room.
func (c *Config) reapMargin() time.Duration { return c.TTL / 6 }

func (c *Config) ledgerPath() string  { return filepath.Join(c.RunDir, ledgerSocket) }
func (c *Config) adminPath() string   { return filepath.Join(c.RunDir, adminSocket) }
func (c *Config) journalPath() string { return filepath.Join(c.RunDir, journalRoot) }
