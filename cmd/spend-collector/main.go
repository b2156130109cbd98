// Command spend-collector is the pod's only way to the database: it authenticates
// keys, leases money to the workers, commits their records, and serves the admin API.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/version"
)

func main() {
	if err := command(os.LookupEnv).ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "spend-collector:", err)
		os.Exit(1)
	}
}

// command is the program with the environment that getenv knows.
func command(getenv func(string) (string, bool)) *cobra.Command {
	o := &options{getenv: getenv}
	cmd := &cobra.Command{
		Use:   "spend-collector",
		Short: "Keeps keys, budgets and spend records in PostgreSQL for the workers of one pod",
		Long: `spend-collector serves the ledger (gRPC) on RUN-DIR/ledger.sock and the admin API
(HTTP) on RUN-DIR/admin.sock. It starts and waits while the database is away.

The master key is read from the environment (PENSTOCK_MASTER_KEY, LITELLM_MASTER_KEY)
or from general_settings.master_key of --config, never from a flag.`,
		Example: `  DATABASE_URL=postgres://penstock@127.0.0.1:6432/penstock LITELLM_MASTER_KEY=sk-… spend-collector
  spend-collector --config config.yaml --run-dir /run/penstock --ttl 60s
  spend-collector --config config.yaml --check`,
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}
