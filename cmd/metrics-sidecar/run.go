package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/penstock-gateway/penstock/internal/sidecar"
)

type options struct {
	runDir string
	listen string
}

func defaultRunDir() string {
	if dir := os.Getenv("PENSTOCK_RUN_DIR"); dir != "" {
		return dir
	}
	return "/run/penstock"
}

// run serves until a signal.
func (o *options) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.listen == "" {
		return errors.New("cannot serve without --listen")
	}
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := os.MkdirAll(o.runDir, 0o770); err != nil {
		return fmt.Errorf("cannot use --run-dir %s: %w", o.runDir, err)
	}
	server := sidecar.New(sidecar.Config{
		Socket: filepath.Join(o.runDir, "telemetry.sock"),
		State:  filepath.Join(o.runDir, "telemetry.state"),
		Listen: o.listen,
		Logger: logger,
	})
	if err := server.Start(ctx); err != nil {
		return err
	}
	logger.Info("metrics-sidecar serves", slog.String("address", server.Address().String()), slog.String("run_dir", o.runDir))
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return server.Stop(last)
}

// check is a probe for containers without a shell.
func (o *options) check(ctx context.Context) error {
	host, port, err := net.SplitHostPort(o.listen)
	if err != nil {
		return fmt.Errorf("cannot read --listen %s: %w", o.listen, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/health", nil)
	if err != nil {
		return fmt.Errorf("cannot ask --listen %s: %w", o.listen, err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the sidecar: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot call the sidecar well: /health answers %s", answer.Status)
	}
	return nil
}
