// Package gateway wires one worker: it makes the parts that a request passes,
// starts them in order, and stops them so that no record is lost.
package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/config"
	"github.com/penstock-gateway/penstock/internal/hangup"
	"github.com/penstock-gateway/penstock/internal/hold"
	"github.com/penstock-gateway/penstock/internal/journal"
	"github.com/penstock-gateway/penstock/internal/keyring"
	"github.com/penstock-gateway/penstock/internal/lifecycle"
	"github.com/penstock-gateway/penstock/internal/limit"
	"github.com/penstock-gateway/penstock/internal/proxy"
	"github.com/penstock-gateway/penstock/internal/record"
	"github.com/penstock-gateway/penstock/internal/route"
	"github.com/penstock-gateway/penstock/internal/telemetry"
	"github.com/penstock-gateway/penstock/internal/tokens"
	"github.com/penstock-gateway/penstock/internal/upstream"
)

// ErrFenced means that the ledger has closed this worker's life, after an outage
// longer than the ttl: it must start anew, with a new epoch.
var ErrFenced = errors.New("the ledger has closed this worker's life; it has to restart")

// Config of a worker. Listener, RunDir, PodUID and Config are required.
type Config struct {
	Config   *config.Config
	Listener net.Listener
	// RunDir holds the sockets of the pod's other processes and the journals.
	RunDir string
	PodUID string
	Index  int
	// Workers is how many workers share this machine's memory; default 1.
	Workers int
	// Grace bounds the stop: what is in flight may end, records are flushed.
	Grace  time.Duration
	Logger *slog.Logger
}

// Sockets of a pod, in its run directory.
const (
	LedgerSocket    = "ledger.sock"
	AdminSocket     = "admin.sock"
	TelemetrySocket = "telemetry.sock"
	JournalFolder   = "journal"
)

// worker is one process life.
type worker struct {
	cfg     Config
	conn    *grpc.ClientConn
	journal *journal.Journal
	records *record.Recorder
	holds   *hold.Manager
	rates   *limit.Manager
	keys    *keyring.Keyring
	metrics *telemetry.Metrics
	client  *upstream.Client
	watcher *hangup.Watcher
	counter *tokens.Counter
	warming sync.WaitGroup
	proxy   *proxy.Proxy
	fenced  chan struct{}
}

// Run serves until ctx ends, then drains. It returns ErrFenced when the worker
// has to be started anew.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Grace == 0 {
		cfg.Grace = 30 * time.Second
	}
	w, err := newWorker(cfg)
	if err != nil {
		return err
	}
	defer w.close()
	return w.group().Run(ctx)
}

func newWorker(cfg Config) (*worker, error) {
	limitMemory(cfg.Workers)
	w := &worker{cfg: cfg, fenced: make(chan struct{})}
	identity := journal.Identity{PodUID: cfg.PodUID, Index: uint32(cfg.Index)}
	if _, err := rand.Read(identity.Epoch[:]); err != nil {
		return nil, fmt.Errorf("cannot draw an epoch: %w", err)
	}
	holder := &ledgerv1.Holder{PodUid: identity.PodUID, Index: identity.Index, Epoch: identity.Epoch[:]}
	if err := w.connectLedger(identity, holder); err != nil {
		w.close()
		return nil, err
	}
	if err := w.buildProxy(identity); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// connectLedger makes the parts that speak to the collector. The connection is
// lazy: a worker starts, and serves what needs no ledger, while the collector is away.
func (w *worker) connectLedger(identity journal.Identity, holder *ledgerv1.Holder) error {
	var err error
	w.conn, err = grpc.NewClient("unix://"+filepath.Join(w.cfg.RunDir, LedgerSocket),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(quickReconnect))
	if err != nil {
		return fmt.Errorf("cannot prepare the connection to the spend-collector: %w", err)
	}
	ledger := ledgerv1.NewLedgerClient(w.conn)
	w.journal, err = journal.Create(journal.Config{Root: filepath.Join(w.cfg.RunDir, JournalFolder), Identity: identity})
	if err != nil {
		return fmt.Errorf("cannot create the spend journal: %w", err)
	}
	log := w.cfg.Logger
	w.records = record.New(record.Config{Journal: w.journal, Client: ledger, Holder: holder, Logger: log})
	w.holds = hold.New(hold.Config{
		Client: ledger, Holder: holder, JournalDir: identity.Folder(), Acked: w.records.Acked, Logger: log,
		OnFenced: func() { close(w.fenced) },
	})
	w.rates = limit.New(limit.Config{Client: ledger, Holder: holder, LongestRequest: longestRequest(w.cfg.Config), Logger: log})
	keys := keyring.Config{
		Client: ledger, Holder: holder, Logger: log,
		OnChange: func(hash [32]byte) {
			name := "key:" + hex.EncodeToString(hash[:])
			w.holds.Recall(name)
			w.rates.Recall(name)
		},
		OnChangeAll: func() { w.holds.RecallAll(); w.rates.RecallAll() },
	}
	if master := w.cfg.Config.MasterKey.Reveal(); master != "" {
		keys.MasterHash = sha256.Sum256([]byte(master))
	}
	w.keys = keyring.New(keys)
	return nil
}

func (w *worker) buildProxy(identity journal.Identity) error {
	cfg := w.cfg
	var err error
	if w.counter, err = tokens.NewCounter(); err != nil {
		return fmt.Errorf("cannot load the token tables: %w", err)
	}
	w.metrics = telemetry.New(telemetry.Config{
		Worker: telemetry.Worker{PodUID: identity.PodUID, Index: identity.Index, Epoch: identity.Epoch},
		Socket: filepath.Join(cfg.RunDir, TelemetrySocket), Logger: cfg.Logger,
	})
	w.metrics.JournalFill.Bind(w.journalFill)
	w.metrics.UnackedRecords.Bind(func() float64 { return float64(w.journal.Stats().Unacked) })
	w.metrics.OldestUnacked.Bind(func() float64 { return w.journal.Stats().Oldest.Seconds() })
	w.client = upstream.New(upstream.Config{})
	w.watcher, err = hangup.NewWatcher(hangup.Config{WriteIdle: cfg.Config.Settings.ClientWriteIdle, Logger: cfg.Logger})
	if err != nil {
		return fmt.Errorf("cannot watch client connections: %w", err)
	}
	limits := limitsOf(cfg.Config.Settings, cfg.Workers)
	w.proxy, err = proxy.New(proxy.Config{
		Config: cfg.Config, Routes: route.New(cfg.Config), Keys: w.keys, Holds: w.holds, Limits: w.rates, Records: w.records, Client: w.client,
		Tokens: w.counter, Metrics: w.metrics, Logger: cfg.Logger, AdminSocket: filepath.Join(cfg.RunDir, AdminSocket),
		MaxInFlight: limits.requests, MaxBytesInFlight: limits.bytes, Ready: w.ready,
	})
	return err
}

// journalFill is the share of the journal's room that is taken.
func (w *worker) journalFill() float64 {
	s := w.journal.Stats()
	return 1 - float64(s.FreeBytes)/float64(max(1, s.TotalBytes))
}

// ready says whether the worker can admit a request now.
func (w *worker) ready() error {
	select {
	case <-w.fenced:
		return ErrFenced
	default:
		return nil
	}
}

// group orders the parts. On the way down the server goes first, then leases are
// returned and records flushed, and the sidecar hears the last counts.
func (w *worker) group() *lifecycle.Group {
	g := lifecycle.New(lifecycle.Config{StopTimeout: w.cfg.Grace, Logger: w.cfg.Logger})
	g.Add(lifecycle.Part{Name: "token tables", Start: w.warmTokens, Stop: func(context.Context) error { w.warming.Wait(); return nil }})
	g.Add(lifecycle.Part{Name: "metrics", Start: w.metrics.Start, Stop: w.metrics.Stop})
	g.Add(lifecycle.Part{Name: "records", Start: func(context.Context) error { w.records.Start(); return nil }, Stop: w.records.Stop})
	g.Add(lifecycle.Part{Name: "keys", Start: w.keys.Start, Stop: w.keys.Stop})
	g.Add(lifecycle.Part{Name: "holds", Start: w.holds.Start, Stop: w.holds.Stop})
	g.Add(lifecycle.Part{Name: "rate limits", Start: w.rates.Start, Stop: w.rates.Stop})
	g.Add(lifecycle.Part{Name: "server", Run: w.serve, Stop: w.proxy.Shutdown})
	return g
}

// warmTokens loads the commonest table beside the start, so that neither the start
// nor the first request waits for it.
func (w *worker) warmTokens(context.Context) error {
	w.warming.Go(func() { w.counter.Warm(tokens.O200kBase) })
	return nil
}

func (w *worker) serve() error {
	served := make(chan error, 1)
	go func() { served <- w.proxy.Serve(w.watcher.Listener(w.cfg.Listener)) }()
	select {
	case err := <-served:
		return err
	case <-w.fenced:
		return ErrFenced
	}
}

// close gives back what was made, whatever was made of it.
func (w *worker) close() {
	if w.journal != nil {
		if err := w.journal.Stop(); err != nil {
			w.cfg.Logger.Warn("cannot stop the journal", "error", err)
		}
	}
	if w.client != nil {
		w.client.Close()
	}
	if w.watcher != nil {
		w.watcher.Close()
	}
	if w.conn != nil {
		w.conn.Close()
	}
}
