package main

import (
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/penstock-gateway/penstock/internal/store/postgres"
	"github.com/penstock-gateway/penstock/internal/telemetry"
)

// pools is the way of PgBouncer's figures to the metrics-sidecar.
type pools struct {
	console *postgres.Console
	metrics *telemetry.Pool
}

// newPools connects to nothing yet.
func (o *options) newPools(url string, log *slog.Logger) (pools, error) {
	console, err := postgres.NewConsole(url)
	if err != nil {
		return pools{}, err
	}
	worker := telemetry.Worker{Role: telemetry.RoleCollector}
	if uid, ok := o.getenv("POD_UID"); ok && uid != "" {
		worker.PodUID = uid
	} else if worker.PodUID, err = os.Hostname(); err != nil {
		worker.PodUID = "unknown" // the epoch tells processes apart
	}
	_, _ = rand.Read(worker.Epoch[:]) // never fails
	return pools{console: console, metrics: telemetry.NewPool(telemetry.Config{
		Worker: worker, Socket: filepath.Join(o.runDir, "telemetry.sock"), Logger: log,
	})}, nil
}
