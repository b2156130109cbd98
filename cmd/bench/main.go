// Command bench proves and measures the four processes as they are deployed: smoke
// counts every request while processes are killed, run measures.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Prove and measure the gateway with real processes around it",
		Long: `bench starts gateway, spend-collector, metrics-sidecar and PgBouncer from --bin, a
PostgreSQL of its own, and a provider that keeps its own ledger, all on free ports of
this machine. It needs the Debian packages postgresql and pgbouncer; run also haproxy.`,
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(newSmoke(), newRun())
	return cmd
}
