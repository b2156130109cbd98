// Package collector stands between the workers of a pod and the database: it
// serves the ledger on one unix socket and the admin API on another, and takes
// over what a dead worker left. It keeps no money in its memory: whatever it has
// not committed is still in a worker's journal, so it may be killed at any moment.
package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"

	ledgerv1 "github.com/penstock-gateway/penstock/api/ledger/v1"
	"github.com/penstock-gateway/penstock/internal/collector/admin"
	"github.com/penstock-gateway/penstock/internal/store"
	"github.com/penstock-gateway/penstock/internal/unixsocket"
)

// maxMessage bounds one message of a worker; 5,000 records are about 3 MiB.
const maxMessage = 16 << 20

// Collector serves one pod. Build it with New; it is started once and stopped once.
type Collector struct {
	cfg   Config
	log   *slog.Logger
	stats counters

	outage  *outage
	lanes   *lanes
	stuck   *stuck
	changes *changeHub
	rpc     *grpc.Server
	http    *http.Server

	// stopping ends when Stop begins, work when it has run out of time.
	stopping, work           context.Context
	beginStop, abandonCommit context.CancelFunc
	loops, servers           sync.WaitGroup
}

// New checks the configuration and builds a collector that is not serving yet.
func New(cfg Config) (*Collector, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	c := &Collector{cfg: cfg, log: cfg.Logger.With("component", "collector")}
	c.stopping, c.beginStop = context.WithCancel(context.Background())
	c.work, c.abandonCommit = context.WithCancel(context.Background())
	c.outage = newOutage(c.log)
	c.lanes = newLanes(c)
	c.stuck = newStuck(c)
	c.changes = newChangeHub(c)
	c.rpc = grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	ledgerv1.RegisterLedgerServer(c.rpc, service{c: c})
	c.http = &http.Server{
		Handler: admin.New(admin.Config{
			Store:           cfg.Store,
			MasterKeySHA256: cfg.MasterKeySHA256,
			Logger:          c.log,
		}),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute, // 10,000 rows to a slow reader
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(c.log.Handler(), slog.LevelWarn),
		// An administrator's slow report must not take the connection that requests need.
		BaseContext: func(net.Listener) context.Context { return store.WithAdmin(context.Background()) },
	}
	return c, nil
}

// Start opens both sockets and starts the maintenance loops. It does not need the
// database: a pod that starts during an outage comes up and waits. After an error
// nothing runs.
func (c *Collector) Start(context.Context) error {
	if err := os.MkdirAll(c.cfg.RunDir, 0o770); err != nil {
		return fmt.Errorf("cannot make the run directory (--run-dir): %w", err)
	}
	ledger, err := unixsocket.Listen(c.cfg.ledgerPath())
	if err != nil {
		return err
	}
	adminAPI, err := unixsocket.Listen(c.cfg.adminPath())
	if err != nil {
		ledger.Close()
		return err
	}
	c.serve("ledger", ledger, c.rpc.Serve)
	c.serve("admin", adminAPI, c.http.Serve)
	for _, loop := range []func(context.Context){c.changes.run, c.maintain, c.reap, newAdopter(c).run} {
		c.loops.Go(func() { loop(c.stopping) })
	}
	if c.cfg.Pools != nil {
		c.loops.Go(func() { newPoolWatch(c).run(c.stopping) })
	}
	c.log.Info("collector is serving", "run_dir", c.cfg.RunDir, "ttl", c.cfg.TTL.String())
	return nil
}

func (c *Collector) serve(name string, l net.Listener, serve func(net.Listener) error) {
	c.servers.Go(func() {
		err := serve(l)
		if err != nil && !errors.Is(err, http.ErrServerClosed) && c.stopping.Err() == nil {
			c.log.Error("cannot serve", "socket", name, "error", err)
		}
	})
}

// Stats returns the counters as they stand.
func (c *Collector) Stats() Stats { return c.stats.snapshot() }
