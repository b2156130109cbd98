// Command gateway is the request's process: it authenticates, counts, holds,
// routes, streams and records. It never touches a database.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/penstock-gateway/penstock/internal/version"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "gateway --config config.yaml",
		Short: "Serve OpenAI-compatible requests in front of model providers",
		Long: `gateway is the pod's front process. It expects the spend-collector's and the
metrics-sidecar's sockets in --run-dir and starts without them: requests that need
the ledger are answered 503 until it is there.`,
		Example: `  gateway --config config.yaml
  gateway --config config.yaml --check
  gateway --config config.yaml --port 4000 --workers 2 --run-dir /run/penstock`,
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}
